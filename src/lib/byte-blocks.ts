const SMALLEST = 1024;
const LARGEST = 256 * 1024;

/**
 * Bytes that come in pieces, copied into blocks: a byte that comes alone takes a byte, and not an object. Blocks grow with
 * what there is, so at most half of them, and one smallest block, is free.
 */
export class ByteBlocks {
  /** All but the last are full. */
  #blocks: Buffer[] = [];
  /** Of the last block. */
  #used = 0;
  #size = 0;
  #kept = 0;

  get size(): number {
    return this.#size;
  }

  /** Bytes of memory. */
  get kept(): number {
    return this.#kept;
  }

  add(piece: Uint8Array): void {
    for (let from = 0; from < piece.length;) {
      const block = this.#blockWithRoom();
      const part = piece.subarray(from, from + block.length - this.#used);
      block.set(part, this.#used);
      this.#used += part.length;
      from += part.length;
    }
    this.#size += piece.length;
  }

  #blockWithRoom(): Buffer {
    const last = this.#blocks.at(-1);
    if (last !== undefined && this.#used < last.length) return last;
    const next = Buffer.allocUnsafeSlow(Math.min(LARGEST, Math.max(SMALLEST, this.#kept)));
    this.#blocks.push(next);
    this.#used = 0;
    this.#kept += next.length;
    return next;
  }

  /** All bytes as one, which are kept here no longer. */
  take(): Buffer {
    const last = this.#blocks.pop();
    if (last === undefined) return Buffer.alloc(0);
    const end = last.subarray(0, this.#used);
    const all = this.#blocks.length === 0 ? end : Buffer.concat([...this.#blocks, end], this.#size);
    this.#blocks = [];
    this.#size = this.#kept = 0;
    return all;
  }
}
