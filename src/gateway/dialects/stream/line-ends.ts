const NEWLINE = 0x0a;
const RETURN = 0x0d;
const RETURNED = Buffer.from('\r');
const NO_BYTES = Buffer.alloc(0);

/**
 * Makes line feeds of carriage returns that stand alone, which end lines in event streams, too (WHATWG HTML, 9.2.6). All else
 * stays to the byte.
 */
export class LineEnds {
  /** Lines of this stream end so. */
  #isAlone = false;
  /** The last byte was a return, and nobody knows the next one. */
  #isHeld = false;

  push(bytes: Buffer): Buffer {
    const data = this.#isHeld ? Buffer.concat([RETURNED, bytes]) : bytes;
    this.#isHeld = false;
    let changed: Buffer | undefined;
    for (let at = data.indexOf(RETURN); at !== -1; at = data.indexOf(RETURN, at + 1)) {
      if (data[at + 1] === NEWLINE) continue;
      this.#isHeld = at === data.length - 1 && !this.#isAlone;
      if (this.#isHeld) return (changed ?? data).subarray(0, at);
      this.#isAlone = true;
      changed ??= Buffer.from(data);
      changed[at] = NEWLINE;
    }
    return changed ?? data;
  }

  /** The rest of the stream. */
  end(): Buffer {
    return this.#isHeld ? RETURNED : NO_BYTES;
  }
}
