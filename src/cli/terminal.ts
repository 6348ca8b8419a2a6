import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { isatty } from 'node:tty';
import { CliFailure, EXIT } from './failure.ts';
import { withoutTokens } from './text.ts';

/** Where the program reads and writes. */
export interface Terminal {
  /** Whether a person answers questions. */
  interactive: boolean;
  /** Whether results are drawn on a terminal. */
  screen: boolean;
  /** Characters in a line of the results and of what is said; undefined where that is no screen. */
  columns: { out: number | undefined; say: number | undefined };
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

/** The reader of the output has left, as `head` does: there is nobody to tell. */
class OutputClosed extends Error {
  override name = 'OutputClosed';
}

/** The terminal of the process. */
export function processTerminal(): Terminal {
  // The write that fails says it; without a listener the process would end on the spot.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const interactive = isatty(0) && isatty(2);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  return {
    interactive,
    screen: isatty(1),
    // A terminal that says 0 does not know.
    columns: { out: process.stdout.columns || undefined, say: process.stderr.columns || undefined },
    out: (text) =>
      new Promise((resolve, reject) => {
        process.stdout.write(text, (error) => (error ? reject(new OutputClosed(error.message)) : resolve()));
      }),
    say: (text) => void process.stderr.write(`${withoutTokens(text)}\n`),
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
