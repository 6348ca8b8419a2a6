import { randomUUID } from 'node:crypto';
import { isObject, type Json } from './json.ts';

/** Writes a number as it was read. TypeScript has no type for it yet. */
export const { rawJSON } = JSON as unknown as { rawJSON(this: void, text: string): unknown };

/** Whether the numbers inside of a field stay as they are written. */
export type Keeps = (name: string, parent: Json, isTop: boolean) => boolean;

/** Stands before a number in the text of a string. Nobody can write it in time. */
const MARK = `${randomUUID()}:`;

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** Shorter whole numbers are written as they were read. */
const SAFE_DIGITS = 15;
/** In short strings, and in those full of escaped quotes, reading each character beats a search for the next quote. */
const NEAR = 16;

/** What one look at a JSON text finds. */
export interface Written {
  /** The objects, arrays and commas. */
  pieces: number;
  /** The text with each number that JavaScript would write otherwise as a marked string; undefined when there is none. */
  marked: string | undefined;
}

/**
 * The value of a JSON text with the numbers that JavaScript would write otherwise, such as 9223372036854775807 and 1.0, as
 * they are written there. In fields that are not kept numbers stay numbers: somebody reads them. Not for values of which
 * somebody reads a kept number.
 *
 * @param value what `JSON.parse` made of the text; returned as it is when it says the same
 */
export function withExactNumbers(value: unknown, text: string, keeps: Keeps): unknown {
  return withNumbersOf(value, lookThrough(text), keeps);
}

/** The same of a text that was looked through. */
export function withNumbersOf(value: unknown, { marked }: Written, keeps: Keeps): unknown {
  return marked === undefined ? value : restore(JSON.parse(marked), keeps, { isKept: false, isTop: true });
}

/** @param plainLevels at most so deep, no number is marked */
export function lookThrough(text: string, plainLevels = 0): Written {
  const marked: string[] = [];
  let copied = 0;
  let depth = 0;
  let pieces = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at + 1);
    else if (code === COMMA) pieces++;
    else if (code === BRACE || code === BRACKET) {
      pieces++;
      depth++;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth--;
    else if (code === MINUS || isDigit(code)) {
      const end = endOfNumber(text, at);
      if (depth > plainLevels && isLossy(text, at, end)) {
        marked.push(text.slice(copied, at), `"${MARK}${text.slice(at, end)}"`);
        copied = end;
      }
      at = end - 1;
    }
  }
  return { pieces, marked: marked.length === 0 ? undefined : marked.join('') + text.slice(copied) };
}

/** The index of the closing quote of the string whose first character is at `from`, or the length. */
function endOfString(text: string, from: number): number {
  let at = from;
  for (;;) {
    for (const near = at + NEAR; at < near; at++) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at;
      if (code === BACKSLASH) at++;
    }
    const quote = text.indexOf('"', at);
    if (quote === -1) return text.length;
    let before = quote;
    while (before > at && text.charCodeAt(before - 1) === BACKSLASH) before--;
    if ((quote - before) % 2 === 0) return quote;
    at = quote + 1;
  }
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

/** Behind the number that begins at `from`: digits, a sign, a dot, and an exponent. */
function endOfNumber(text: string, from: number): number {
  let at = from + 1;
  for (let code = text.charCodeAt(at); isDigit(code) || isSign(code); code = text.charCodeAt(at)) at++;
  return at;
}

function isSign(code: number): boolean {
  return code === DOT || code === MINUS || code === PLUS || code === 0x45 || code === 0x65;
}

function isLossy(text: string, from: number, to: number): boolean {
  let isPlain = to - from <= SAFE_DIGITS && text.charCodeAt(from + 1) !== ZERO;
  for (let at = from + 1; at < to && isPlain; at++) isPlain = isDigit(text.charCodeAt(at));
  if (isPlain) return false;
  const number = text.slice(from, to);
  return String(Number(number)) !== number;
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
