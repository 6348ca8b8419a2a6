import { DialectError } from '../errors/dialect-error.ts';

/** No event of any engine comes near this; a stream without line ends must not grow memory. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;
/** Of one event. Engines send one, or a few where a text has line ends. */
const MAX_LINES = 4096;
/** Pieces of a few characters each take many times their length. */
const MAX_PIECES = 4096;

/**
 * Server-sent events out of bytes cut anywhere, even inside a character. Calls back once per event with its data;
 * the `event:` field is not needed, because every dialect repeats it as `type`. Comments are skipped.
 */
export class SseReader {
  readonly #onData: (data: string) => void;
  readonly #decoder = new TextDecoder();
  /** The line that has no end yet, in pieces: joined at each chunk, a long one would cost its length every time. */
  #pieces: string[] = [];
  #held = 0;
  #data = '';
  #lines = 0;

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** Throws `DialectError` when an event exceeds 16 Mi characters or 4096 lines. */
  push(chunk: Uint8Array): void {
    const fresh = this.#decoder.decode(chunk, { stream: true });
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

  /** The stream ended: an event without its closing blank line still counts (some engines forget it). */
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
      const data = text.slice(start, last);
      this.#data = this.#data === '' ? data : `${this.#data}\n${data}`;
      this.#lines += 1;
      if (this.#lines > MAX_LINES || this.#data.length > MAX_EVENT_CHARS) throw tooLong();
    }
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
