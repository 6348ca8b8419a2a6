import { parseJson } from '../fields.ts';

const HEAD = /^\s*\{\s*"input"\s*:\s*"/;
/** Arguments that begin otherwise come as a whole, at their end. */
const HEAD_MAX = 64;
const UNICODE_ESCAPE = 6;
const FIRST_SURROGATE = /^\\u[dD][89abAB]/;

/**
 * Reads the free-form input of a custom tool while it comes, out of the arguments `{"input":"…"}` of the function that
 * stands for it.
 */
export class CustomInputReader {
  #pending = '';
  #state: 'head' | 'input' | 'rest' = 'head';
  /** What was given out. */
  #given = '';

  /** Takes a fragment of the arguments. Returns what it adds to the input. */
  push(fragment: string): string {
    if (this.#state === 'rest') return '';
    this.#pending += fragment;
    if (this.#state === 'head' && !this.#skipHead()) return '';
    const end = readable(this.#pending);
    const whole = this.#pending.slice(0, end);
    if (this.#pending[end] === '"') this.#state = 'rest';
    this.#pending = this.#pending.slice(end);
    return this.#give(whole);
  }

  /** The tool call is complete. Returns what is left of its whole input. */
  rest(input: string): string {
    return input.startsWith(this.#given) ? input.slice(this.#given.length) : '';
  }

  #skipHead(): boolean {
    const head = HEAD.exec(this.#pending)?.[0];
    if (head === undefined) {
      if (this.#pending.length > HEAD_MAX) this.#state = 'rest';
      return false;
    }
    this.#state = 'input';
    this.#pending = this.#pending.slice(head.length);
    return true;
  }

  /** Invalid JSON ends the reading: the whole arguments are the input then. */
  #give(escaped: string): string {
    const text = parseJson(`"${escaped.replaceAll(/[\n\r\t]/g, (each) => JSON.stringify(each).slice(1, -1))}"`);
    if (typeof text !== 'string') {
      this.#state = 'rest';
      return '';
    }
    this.#given += text;
    return text;
  }
}

/** How far the text of a JSON string can be read: up to its closing quote, or to an escape that is not complete. */
function readable(text: string): number {
  let at = 0;
  while (at < text.length && text[at] !== '"') {
    const length = text[at] === '\\' ? escapeLength(text, at) : 1;
    if (at + length > text.length) return at;
    at += length;
  }
  return at;
}

/** An emoji is two escapes, which make sense together alone. */
function escapeLength(text: string, at: number): number {
  if (text[at + 1] !== 'u') return 2;
  const second = at + UNICODE_ESCAPE;
  const isFirst = FIRST_SURROGATE.test(text.slice(at, second)) && '\\u'.startsWith(text.slice(second, second + 2));
  return isFirst ? 2 * UNICODE_ESCAPE : UNICODE_ESCAPE;
}
