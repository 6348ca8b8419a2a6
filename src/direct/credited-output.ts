import { Readable } from 'node:stream';
import type { Portion } from '../lib/shares.ts';

/** Bytes of one output that may always wait in this process. The pod begins with the same number. */
export const FIRST_WINDOW = 256 * 1024;
/** Bytes that may wait while there is room for it. A fast program fills the first window before its credit is back. */
export const LARGEST_WINDOW = 2 * 1024 * 1024;

// A Readable asks for more once it has less than this, and asks no second time before something is pushed. So the pod must
// be allowed to send by then: this is less than any window.
const ASK_BELOW = 64 * 1024;

/** One output of a program. The pod may send as many bytes more as were read. */
export class CreditedOutput {
  readonly readable: Readable;
  readonly #grant: (bytes: number) => void;
  readonly #portion: Portion;
  #window = FIRST_WINDOW;
  /** Bytes that the pod may still send. */
  #allowed = FIRST_WINDOW;
  #bytes = 0;
  #isRenewing = false;

  /** `grant` lets the pod send that many bytes more. A window beyond the first one comes out of `portion`. */
  constructor(grant: (bytes: number) => void, portion: Portion) {
    this.#grant = grant;
    this.#portion = portion;
    this.readable = new Readable({ highWaterMark: ASK_BELOW, read: () => this.#renewSoon() });
    this.readable.on('error', () => undefined);
  }

  /** Bytes that the pod may still send. */
  get allowed(): number {
    return this.#allowed;
  }

  /** Bytes that came so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether the pod was allowed to send these. */
  push(bytes: Buffer): boolean {
    this.#bytes += bytes.length;
    this.#allowed -= bytes.length;
    if (this.#allowed < 0) return false;
    if (this.readable.destroyed) return true;
    this.readable.push(bytes);
    this.#renewSoon();
    return true;
  }

  end(): void {
    this.#portion.change(FIRST_WINDOW - this.#window);
    this.#window = FIRST_WINDOW;
    if (!this.readable.destroyed) this.readable.push(null);
  }

  // A Readable asks for more before it takes out what was read.
  #renewSoon(): void {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    queueMicrotask(() => {
      this.#isRenewing = false;
      if (!this.readable.destroyed && !this.readable.readableEnded) this.#renew();
    });
  }

  #renew(): void {
    const taken = this.#window - this.#allowed - this.readable.readableLength;
    if (taken < this.#window / 4 && !(this.#allowed <= 0 && taken > 0)) return;
    const room = taken + this.#grow();
    this.#allowed += room;
    this.#grant(room);
  }

  /** Doubles the window of an output that flows. */
  #grow(): number {
    const more = Math.min(this.#window, LARGEST_WINDOW - this.#window, Math.max(0, this.#portion.left()));
    if (this.#bytes < 2 * this.#window || this.readable.readableLength > this.#window / 2) return 0;
    this.#window += more;
    this.#portion.change(more);
    return more;
  }
}
