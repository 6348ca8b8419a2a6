import type { AnswerChunk, Lines } from './lines.ts';

export type Chunk = Buffer | Lines | AnswerChunk;

/** The body of a watch or a log: chunks that come one after the other, until it ends or breaks. */
export class WatchStream implements AsyncIterable<Chunk> {
  readonly #chunks: Chunk[] = [];
  readonly #onClose: (() => void)[] = [];
  #waiting: { resolve: (result: IteratorResult<Chunk>) => void; reject: (error: Error) => void } | undefined;
  #error: Error | undefined;
  #isEnded = false;
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed || this.#isEnded;
  }

  push(chunk: Chunk): void {
    if (this.isClosed) return;
    if (this.#waiting === undefined) {
      this.#chunks.push(chunk);
      return;
    }
    const { resolve } = this.#waiting;
    this.#waiting = undefined;
    resolve({ value: chunk, done: false });
  }

  /** What came before is still read. */
  end(): void {
    this.#isEnded = true;
    this.#waiting?.resolve({ value: undefined, done: true });
    this.#waiting = undefined;
    if (this.#chunks.length === 0) this.#close();
  }

  destroy(error?: Error): this {
    if (this.#isClosed) return this;
    this.#error = error;
    this.#chunks.length = 0;
    this.#isEnded = true;
    if (error === undefined) this.#waiting?.resolve({ value: undefined, done: true });
    else this.#waiting?.reject(error);
    this.#waiting = undefined;
    this.#close();
    return this;
  }

  once(event: string, listener: () => void): this {
    if (event !== 'close') return this;
    if (this.#isClosed) listener();
    else this.#onClose.push(listener);
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterator<Chunk> {
    return {
      next: () => this.#next(),
      return: async () => {
        this.destroy();
        return { value: undefined, done: true };
      },
    };
  }

  #next(): Promise<IteratorResult<Chunk>> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) return Promise.resolve({ value: chunk, done: false });
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#isEnded) {
      this.#close();
      return Promise.resolve({ value: undefined, done: true });
    }
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const listener of this.#onClose) listener();
  }
}
