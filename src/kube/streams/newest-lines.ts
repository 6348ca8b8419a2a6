import type { LogLine } from './pod-log.ts';

/** The newest lines of a log, as many as fit. */
export class NewestLines {
  readonly #most: { lines: number; bytes: number };
  #lines: LogLine[] = [];
  #first = 0;
  #bytes = 0;
  /** Whether lines gave way because of their bytes. */
  truncated = false;

  constructor(most: { lines: number; bytes: number }) {
    this.#most = most;
  }

  add(line: LogLine): void {
    const { lines, bytes } = this.#most;
    this.#lines.push(line);
    this.#bytes += Buffer.byteLength(line.text);
    while (this.#bytes > bytes || this.#lines.length - this.#first > lines) {
      if (this.#lines.length - this.#first <= lines) this.truncated = true;
      this.#bytes -= Buffer.byteLength(this.#lines[this.#first]?.text ?? '');
      this.#first += 1;
    }
    if (this.#first > lines) {
      this.#lines.splice(0, this.#first);
      this.#first = 0;
    }
  }

  get lines(): LogLine[] {
    return this.#lines.slice(this.#first);
  }
}
