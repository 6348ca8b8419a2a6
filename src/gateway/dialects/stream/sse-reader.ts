import { DialectError } from '../errors.ts';

/** No event of any engine comes near this; a stream without line ends must not grow memory. */
const MAX_LINE_CHARS = 16 * 1024 * 1024;

/**
 * Server-sent events out of bytes cut anywhere, even inside a character. Calls back once per event with its data;
 * the `event:` field is not needed, because every dialect repeats it as `type`. Comments are skipped.
 */
export class SseReader {
  readonly #onData: (data: string) => void;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #data = '';

  constructor(onData: (data: string) => void) {
    this.#onData = onData;
  }

  /** Throws `DialectError` when a line exceeds 16 Mi characters. */
  push(chunk: Uint8Array): void {
    const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let to = text.indexOf('\n', from); to !== -1; to = text.indexOf('\n', from)) {
      this.#line(text, from, to);
      from = to + 1;
    }
    this.#rest = from === 0 ? text : text.slice(from);
    if (this.#rest.length > MAX_LINE_CHARS) {
      throw new DialectError({ status: 502, message: 'The model server sent an event that is too long.' });
    }
  }

  /** The stream ended: an event without its closing blank line still counts (some engines forget it). */
  end(): void {
    if (this.#rest !== '') this.#line(this.#rest, 0, this.#rest.length);
    this.#rest = '';
    this.#dispatch();
  }

  #line(text: string, from: number, to: number): void {
    const last = to > from && text.charCodeAt(to - 1) === 0x0d ? to - 1 : to;
    if (last === from) this.#dispatch();
    else if (text.startsWith('data:', from)) {
      const start = text.charCodeAt(from + 5) === 0x20 ? from + 6 : from + 5;
      const data = text.slice(start, last);
      this.#data = this.#data === '' ? data : `${this.#data}\n${data}`;
    }
  }

  #dispatch(): void {
    if (this.#data === '') return;
    const data = this.#data;
    this.#data = '';
    this.#onData(data);
  }
}
