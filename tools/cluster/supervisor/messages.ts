import type { Progress, Step } from '../../lib/progress.ts';

/** What a supervisor in the background sends to the command that started it, until it is ready or has failed. */
export type SupervisorMessage =
  | { type: 'step'; step: Step }
  | { type: 'line'; text: string }
  | { type: 'end' }
  | { type: 'ready'; tour: string }
  | { type: 'failed'; text: string };

/** Progress that another process shows. */
export function remoteProgress(send: (message: SupervisorMessage) => void): Progress {
  return {
    step: (step) => send({ type: 'step', step }),
    line: (text) => send({ type: 'line', text }),
    end: () => send({ type: 'end' }),
  };
}

/** Shows a message of a supervisor. */
export function showMessage(message: SupervisorMessage, progress: Progress, print: (text: string) => void): void {
  if (message.type === 'step') progress.step(message.step);
  if (message.type === 'line') progress.line(message.text);
  if (message.type === 'end') progress.end();
  if (message.type === 'ready') print(message.tour);
  if (message.type === 'failed') print(message.text);
}
