import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { isatty } from 'node:tty';
import { CliFailure, EXIT } from './failure.ts';

/** Where the program reads and writes. */
export interface Terminal {
  /** Whether a person answers questions. */
  interactive: boolean;
  /** Whether results are drawn on a terminal. */
  screen: boolean;
  /** Results. Resolves when more may be written. */
  out(text: string): Promise<void>;
  /** What is said to people beside the result: progress, warnings, questions. */
  say(text: string): void;
  /** One line from the person. Throws when the input ends first. */
  ask(question: string): Promise<string>;
  /** One line that is not shown. Without a terminal: all of the input. */
  secret(question: string): Promise<string>;
  /** All of the input. */
  input(): Promise<string>;
}

async function line(question: string, output: NodeJS.WritableStream): Promise<string> {
  const reader = createInterface({ input: process.stdin, output, terminal: true });
  try {
    const ended = once(reader, 'close').then(() => undefined);
    process.stderr.write(question);
    reader.once('SIGINT', () => reader.close());
    const answer = await Promise.race([once(reader, 'line') as Promise<[string]>, ended]);
    if (answer !== undefined) return answer[0];
    process.stderr.write('\n');
    throw new CliFailure('Nothing was done.', { exitCode: EXIT.interrupted });
  } finally {
    reader.close();
  }
}

/** The terminal of the process. */
export function processTerminal(): Terminal {
  const interactive = isatty(0) && isatty(2);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  return {
    interactive,
    screen: isatty(1),
    out: (text) =>
      new Promise((resolve) => {
        process.stdout.write(text, () => resolve());
      }),
    say: (text) => void process.stderr.write(`${text}\n`),
    ask: (question) => line(question, process.stderr),
    secret: async (question) => {
      if (!isatty(0)) return await textOf(process.stdin);
      const answer = await line(question, silent);
      process.stderr.write('\n');
      return answer;
    },
    input: () => textOf(process.stdin),
  };
}
