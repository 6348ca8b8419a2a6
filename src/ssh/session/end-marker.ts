import { Transform, type TransformCallback } from 'node:stream';

/** How many bytes at the end of `bytes` could be the beginning of `marker`. */
function partialMarker(bytes: Buffer, marker: Buffer): number {
  for (let length = Math.min(bytes.length, marker.length - 1); length > 0; length -= 1) {
    if (bytes.subarray(bytes.length - length).equals(marker.subarray(0, length))) return length;
  }
  return 0;
}

/** Takes the end marker out of stderr and calls back at it. Bytes that could begin it wait for the next chunk. */
export class EndMarkerFilter extends Transform {
  readonly #marker: Buffer;
  readonly #onEnd: () => void;
  #waiting = Buffer.alloc(0);
  #hasEnded = false;

  constructor(marker: string, onEnd: () => void) {
    super();
    this.#marker = Buffer.from(marker);
    this.#onEnd = onEnd;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, next: TransformCallback): void {
    if (this.#hasEnded) {
      next(null, chunk);
      return;
    }
    const bytes = this.#waiting.length === 0 ? chunk : Buffer.concat([this.#waiting, chunk]);
    const at = bytes.indexOf(this.#marker);
    if (at < 0) {
      const length = bytes.length - partialMarker(bytes, this.#marker);
      this.#waiting = Buffer.from(bytes.subarray(length));
      next(null, bytes.subarray(0, length));
      return;
    }
    this.#hasEnded = true;
    this.#waiting = Buffer.alloc(0);
    this.#onEnd();
    next(null, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + this.#marker.length)]));
  }

  override _flush(next: TransformCallback): void {
    next(null, this.#waiting);
  }
}
