import { endOfString } from '../../../lib/json-structure.ts';
import { parseJson } from '../fields.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
/** How deep the members of the response are in an event. */
const DEPTH = 2;
const NAME = 'usage';
/** Far above the usage object of any engine. */
const MOST_BYTES = 4096;

/**
 * Finds the usage of the response in an event that is too long to be held, and so comes in pieces. It goes by the depth:
 * members of the same name elsewhere are what the caller sent, which servers repeat.
 */
export class UsageInPieces {
  /** The object, once it has come. */
  usage: unknown;
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** The start of the last string among the members of the response. */
  #name = '';
  /** The object so far. */
  #object: Buffer | undefined;

  push(piece: Buffer): void {
    let start = 0;
    for (let at = this.#inString ? this.#string(piece, 0) + 1 : 0; at < piece.length; at++) {
      const byte = piece[at];
      if (byte === QUOTE) at = this.#openString(piece, at);
      else if (byte === COMMA && this.#depth === DEPTH) this.#name = '';
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        if (byte === OPEN_OBJECT && this.#depth === DEPTH && this.#name === NAME) {
          this.#object = Buffer.alloc(0);
          start = at;
        }
        this.#depth += 1;
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        this.#depth -= 1;
        if (this.#depth === DEPTH && this.#object !== undefined) {
          this.#add(piece.subarray(start, at + 1));
          this.usage = parseJson(this.#object?.toString('utf8') ?? '') ?? this.usage;
          this.#object = undefined;
        }
      }
    }
    this.#add(piece.subarray(start));
  }

  #add(part: Buffer): void {
    if (this.#object === undefined) return;
    const isTooLong = this.#object.length + part.length > MOST_BYTES;
    this.#object = isTooLong ? undefined : Buffer.concat([this.#object, part]);
  }

  #openString(piece: Buffer, at: number): number {
    this.#inString = true;
    if (this.#depth === DEPTH) this.#name = '';
    return this.#string(piece, at + 1);
  }

  /** Reads on in a string. Returns where its closing quote is, or the length. */
  #string(piece: Buffer, from: number): number {
    const begin = from + (this.#isEscaped ? 1 : 0);
    const end = begin < piece.length ? endOfString(piece, begin) : piece.length;
    if (this.#depth === DEPTH && this.#name.length <= NAME.length)
      this.#name += piece.toString('latin1', from, Math.min(end, from + NAME.length + 1));
    this.#inString = end === piece.length;
    if (from < piece.length) this.#isEscaped = this.#inString && endsEscaped(piece, begin);
    return end;
  }
}

/** Whether a backslash at the end is of the byte behind it. */
function endsEscaped(piece: Buffer, from: number): boolean {
  let before = piece.length;
  while (before > from && piece[before - 1] === BACKSLASH) before--;
  return (piece.length - before) % 2 === 1;
}
