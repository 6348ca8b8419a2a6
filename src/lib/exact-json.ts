import { randomUUID } from 'node:crypto';
import { isObject, type Json } from './json.ts';
import { endOfString } from './json-structure.ts';

/** Writes a number as it was read. TypeScript has no type for it yet. */
export const { rawJSON } = JSON as unknown as { rawJSON(this: void, text: string): unknown };

/** Whether the numbers inside of a field stay as they are written. */
export type Keeps = (name: string, parent: Json, isTop: boolean) => boolean;

/** Stands before a number in the text of a string. Nobody can write it in time. */
const MARK = `${randomUUID()}:`;

const QUOTE = 0x22;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const OPEN = new Set([0x5b, 0x7b]);
const CLOSE = new Set([0x5d, 0x7d]);
/** Shorter whole numbers are written as they were read. */
const SAFE_DIGITS = 15;

/**
 * The value of a JSON text with the numbers that JavaScript would write otherwise, such as 9223372036854775807 and 1.0, as
 * they are written there. In fields that are not kept, and at most `plainLevels` deep, numbers stay numbers: somebody
 * reads them. Not for values of which somebody reads a kept number.
 *
 * @param value what `JSON.parse` made of the text; returned as it is when it says the same
 */
export function withExactNumbers(value: unknown, json: Buffer, keeps: Keeps, plainLevels = 0): unknown {
  const marked = markNumbers(json, plainLevels);
  return marked === undefined ? value : restore(JSON.parse(marked), keeps, { isKept: false, isTop: true });
}

/** The text with each such number as a marked string; undefined when there is none. */
function markNumbers(json: Buffer, plainLevels: number): string | undefined {
  const pieces: string[] = [];
  let copied = 0;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at] ?? 0;
    if (byte === QUOTE) at = endOfString(json, at + 1);
    else if (OPEN.has(byte)) depth++;
    else if (CLOSE.has(byte)) depth--;
    else if (byte === MINUS || isDigit(byte)) {
      const end = endOfNumber(json, at);
      if (depth > plainLevels && isLossy(json, at, end)) {
        pieces.push(json.toString('utf8', copied, at), `"${MARK}${json.toString('latin1', at, end)}"`);
        copied = end;
      }
      at = end - 1;
    }
  }
  return pieces.length === 0 ? undefined : pieces.join('') + json.toString('utf8', copied);
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= 0x39;
}

/** Behind the number that begins at `from`: digits, a sign, a dot, and an exponent. */
function endOfNumber(json: Buffer, from: number): number {
  let at = from + 1;
  for (let byte = json[at] ?? 0; isDigit(byte) || isSign(byte); byte = json[at] ?? 0) at++;
  return at;
}

function isSign(byte: number): boolean {
  return byte === DOT || byte === MINUS || byte === 0x2b || byte === 0x45 || byte === 0x65;
}

function isLossy(json: Buffer, from: number, to: number): boolean {
  let isPlain = to - from <= SAFE_DIGITS && json[from + 1] !== ZERO;
  for (let at = from + 1; at < to && isPlain; at++) isPlain = isDigit(json[at] ?? 0);
  if (isPlain) return false;
  const text = json.toString('latin1', from, to);
  return String(Number(text)) !== text;
}

/** Changes the value in place. */
function restore(value: unknown, keeps: Keeps, { isKept, isTop }: { isKept: boolean; isTop: boolean }): unknown {
  if (typeof value === 'string' && value.startsWith(MARK)) {
    const text = value.slice(MARK.length);
    return isKept ? rawJSON(text) : Number(text);
  }
  if (Array.isArray(value)) {
    const list: unknown[] = value;
    for (const [index, inner] of list.entries()) {
      const read = restore(inner, keeps, { isKept, isTop: false });
      if (read !== inner) list[index] = read;
    }
  } else if (isObject(value)) {
    for (const [name, inner] of Object.entries(value)) {
      const read = restore(inner, keeps, { isKept: isKept || keeps(name, value, isTop), isTop: false });
      if (read !== inner) value[name] = read;
    }
  }
  return value;
}
