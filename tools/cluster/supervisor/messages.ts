import type { Progress, Step } from '../../lib/progress.ts';

/** What a detached keeper tells the command that started it, until it is ready. */
export type KeeperMessage =
  | { type: 'step'; step: Step }
  | { type: 'line'; text: string }
  | { type: 'end' }
  | { type: 'ready'; tour: string }
  | { type: 'failed'; text: string };

/** Progress that is shown by another process. */
export function remoteProgress(send: (message: KeeperMessage) => void): Progress {
  return {
    step: (step) => send({ type: 'step', step }),
    line: (text) => send({ type: 'line', text }),
    end: () => send({ type: 'end' }),
  };
}

/** Shows a message of a keeper; true when it was the last one. */
export function showMessage(message: KeeperMessage, progress: Progress, print: (text: string) => void): boolean {
  if (message.type === 'step') progress.step(message.step);
  if (message.type === 'line') progress.line(message.text);
  if (message.type === 'end') progress.end();
  if (message.type === 'ready') print(message.tour);
  if (message.type === 'failed') print(message.text);
  return message.type === 'ready' || message.type === 'failed';
}
