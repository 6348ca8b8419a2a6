import { ByteBlocks } from '../../lib/byte-blocks.ts';
import { type Dialect, usageAtEnd } from '../dialects/index.ts';
import { AnswerTooLongError, HELD_MAX, NO_FACTS, type AnswerFacts } from './answer-receiver.ts';

/** Bytes that are read of an answer. The server has done its work, and says behind it how much that was. */
const READ_MAX = 8 * HELD_MAX;
/** Bytes of the end that are kept of an answer that is too long. */
const TAIL = 65_536;
/** Bytes for which a token is counted where the server says nothing. With twenty log probabilities it takes some 2,500. */
const BYTES_OF_TOKEN = 32_768;

/** The bytes of a whole answer. */
export class HeldAnswer {
  readonly #blocks = new ByteBlocks();
  #size = 0;

  /** Returns false when no more should be read. */
  add(chunk: Buffer): boolean {
    this.#size += chunk.length;
    this.#blocks.add(chunk);
    // Copied, so that the rest is let go of.
    if (this.#isTooLong && this.#blocks.size > 2 * TAIL) this.#blocks.add(this.#blocks.take().subarray(-TAIL));
    return this.#size <= READ_MAX;
  }

  /** Bytes of memory. */
  get kept(): number {
    return this.#blocks.kept;
  }

  get #isTooLong(): boolean {
    return this.#size > HELD_MAX;
  }

  /** @throws AnswerTooLongError */
  whole(): Buffer {
    if (this.#isTooLong) throw new AnswerTooLongError(`The answer is longer than ${HELD_MAX} bytes.`);
    return this.#blocks.take();
  }

  /** What an answer costs that is too long to be passed on: what its end says, or the least that it may have been. */
  factsBeyond(dialect: Dialect, isPlain: boolean): AnswerFacts | undefined {
    if (!this.#isTooLong) return undefined;
    const usage = usageAtEnd(dialect, this.#blocks.take());
    const isCounted = usage !== undefined || isPlain;
    return { ...NO_FACTS, usage, estimatedOutputTokens: isCounted ? 0 : Math.floor(this.#size / BYTES_OF_TOKEN) };
  }
}
