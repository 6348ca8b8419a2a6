import { DialectError } from '../errors/dialect-error.ts';
import { LineEnds } from './line-ends.ts';

/** Far above the events of any engine. Bounds the memory that a stream without line ends takes. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;
/** Lines of one event. Engines send one, or a few for a text with line ends. */
const MAX_LINES = 4096;
/** Short pieces take many times their length in memory, so they are joined at this number. */
const MAX_PIECES = 4096;
/** A string, without its characters. */
const PIECE_BYTES = 32;

/** Characters of the end of a stream, with some white space. */
const DONE_MAX = 16;

/** Whether the data of an event is the end of a stream of OpenAI's. Some servers write white space around it. */
export function isDone(data: string): boolean {
  return data.length < DONE_MAX && data.trim() === '[DONE]';
}

/**
 * Calls back with the data of each event in bytes cut anywhere. Skips comments, and `event:`, which `type` repeats. The
 * field `error:`, which builds of llama.cpp before October 2025 send, becomes an error event.
 */
export class SseReader {
  readonly #onData: (data: string) => void;
  readonly #ends = new LineEnds();
  readonly #decoder = new TextDecoder();
  /** The line without an end so far, in pieces. Joining them at each chunk would copy a long line every time. */
  #pieces: string[] = [];
  #held = 0;
  #data = '';
  #lines = 0;

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** Throws `DialectError` when an event exceeds 16 Mi characters or 4096 lines. */
  push(chunk: Uint8Array): void {
    const bytes = this.#ends.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    const fresh = this.#decoder.decode(bytes, { stream: true });
    let to = fresh.indexOf('\n');
    if (to === -1) {
      this.#hold(fresh);
      return;
    }
    to += this.#held;
    const text = this.#take() + fresh;
    let from = 0;
    for (; to !== -1; to = text.indexOf('\n', from)) {
      this.#line(text, from, to);
      from = to + 1;
    }
    this.#hold(text.slice(from));
  }

  /** Bytes of memory, about. */
  get kept(): number {
    return 2 * (this.#held + this.#data.length) + PIECE_BYTES * this.#pieces.length;
  }

  /** All that came was whole events. */
  get isBetweenEvents(): boolean {
    return this.#held === 0 && this.#data === '';
  }

  /** The stream ended. An event without its closing blank line counts, because some engines forget it. */
  end(): void {
    const rest = this.#take();
    if (rest !== '') this.#line(rest, 0, rest.length);
    this.#dispatch();
  }

  #hold(text: string): void {
    if (text === '') return;
    this.#held += text.length;
    if (this.#held > MAX_EVENT_CHARS) throw tooLong();
    this.#pieces.push(text);
    if (this.#pieces.length >= MAX_PIECES) this.#pieces = [this.#pieces.join('')];
  }

  #take(): string {
    const text = this.#pieces.join('');
    this.#pieces = [];
    this.#held = 0;
    return text;
  }

  #line(text: string, from: number, to: number): void {
    const last = to > from && text.charCodeAt(to - 1) === 0x0d ? to - 1 : to;
    if (last === from) this.#dispatch();
    else if (text.startsWith('data:', from)) {
      const start = text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5;
      this.#add(text.slice(start, last));
    } else if (text.startsWith('error:', from)) this.#add(`{"error":${text.slice(from + 6, last)}}`);
  }

  #add(data: string): void {
    this.#data = this.#data === '' ? data : `${this.#data}\n${data}`;
    this.#lines += 1;
    if (this.#lines > MAX_LINES || this.#data.length > MAX_EVENT_CHARS) throw tooLong();
  }

  #dispatch(): void {
    this.#lines = 0;
    if (this.#data === '') return;
    const data = this.#data;
    this.#data = '';
    this.#onData(data);
  }
}

function tooLong(): DialectError {
  return new DialectError({ status: 502, message: 'The model server sent an event that is too long.' });
}
