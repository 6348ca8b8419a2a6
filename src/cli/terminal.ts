import { createInterface, type Interface } from 'node:readline';
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
  /** Whether results may have colours: on a terminal, unless NO_COLOR is set (no-color.org). */
  colour: boolean;
  /** Characters in a line of the results and of what is said; undefined where that is no screen. */
  columns: { out: number | undefined; say: number | undefined };
  /** Results. Resolves when more may be written. */
  out(text: string): Promise<void>;
  /** What is said to people beside the result: progress, warnings, questions. */
  say(text: string): void;
  /** One line from the person, which may be typed ahead. Throws when the input ends first. */
  ask(question: string): Promise<string>;
  /** One line that is not shown. Without a terminal: all of the input. */
  secret(question: string): Promise<string>;
  /** All of the input. */
  input(): Promise<string>;
}

/**
 * The one reader of what a person types. It takes all that was typed ahead, also what comes with an earlier answer, and
 * keeps it for the next question. Between questions the terminal is the program's: Ctrl-C ends it.
 */
class Lines {
  readonly #reader: Interface;
  readonly #kept: string[] = [];
  #waiting: ((line: string | undefined) => void) | undefined;
  #closed = false;
  /** Whether what is typed is shown. */
  #shown = true;

  constructor() {
    // Writes at once, so that nothing typed before waits until it would be shown.
    const write = (chunk: Buffer, _encoding: string, done: () => void): void => {
      if (this.#shown) process.stderr.write(chunk);
      done();
    };
    // The reader asks its output for the width, by which it edits lines that are longer.
    const output = Object.defineProperty(new Writable({ write }), 'columns', { get: () => process.stderr.columns });
    this.#reader = createInterface({ input: process.stdin, output, terminal: true, historySize: 0 });
    this.#reader.on('SIGINT', () => this.#reader.close());
    this.#reader.on('line', (line) => (this.#waiting === undefined ? this.#kept.push(line) : this.#answer(line)));
    this.#reader.on('close', () => {
      this.#closed = true;
      this.#answer(undefined);
    });
  }

  async ask(question: string): Promise<string> {
    const kept = this.#kept.shift();
    if (kept === undefined) return await this.#next(question);
    process.stderr.write(`${question}${kept}\n`);
    return kept;
  }

  /** Neither takes what was typed ahead nor leaves any: a pasted answer is no key, and a part of a key no answer. */
  async secret(question: string): Promise<string> {
    this.#shown = false;
    this.#drop();
    process.stderr.write(question);
    try {
      return await this.#next('');
    } finally {
      this.#drop();
      this.#shown = true;
      process.stderr.write('\n');
    }
  }

  async #next(question: string): Promise<string> {
    const answer = this.#closed ? undefined : await this.#read(question);
    if (answer !== undefined) return answer;
    if (this.#shown) process.stderr.write('\n');
    throw new CliFailure('Nothing was done.', { exitCode: EXIT.interrupted });
  }

  async #read(question: string): Promise<string | undefined> {
    const answered = new Promise<string | undefined>((resolve) => (this.#waiting = resolve));
    setRaw(true);
    this.#reader.setPrompt(question);
    this.#reader.prompt(true);
    const answer = await answered;
    if (this.#closed) return answer;
    this.#reader.pause();
    setRaw(false);
    return answer;
  }

  #answer(line: string | undefined): void {
    this.#waiting?.(line);
    this.#waiting = undefined;
  }

  #drop(): void {
    this.#kept.length = 0;
    if (this.#closed) return;
    for (const name of ['e', 'u']) this.#reader.write(null, { ctrl: true, name });
    this.#reader.pause();
  }
}

function setRaw(raw: boolean): void {
  if (process.stdin.isTTY) process.stdin.setRawMode(raw);
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
  let lines: Lines | undefined;
  return {
    interactive,
    screen: isatty(1),
    colour: isatty(1) && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb',
    // A terminal that says 0 does not know.
    columns: { out: process.stdout.columns || undefined, say: process.stderr.columns || undefined },
    out: (text) =>
      new Promise((resolve, reject) => {
        process.stdout.write(text, (error) => (error ? reject(new OutputClosed(error.message)) : resolve()));
      }),
    say: (text) => void process.stderr.write(`${withoutTokens(text)}\n`),
    ask: (question) => (lines ??= new Lines()).ask(question),
    secret: (question) => (isatty(0) ? (lines ??= new Lines()).secret(question) : textOf(process.stdin)),
    input: () => textOf(process.stdin),
  };
}
