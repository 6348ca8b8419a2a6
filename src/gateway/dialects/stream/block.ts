import { parseJson } from '../fields.ts';
import { withoutNull } from '../tool-arguments.ts';
import type { OutputItem } from '../types.ts';

/** One block of an answer on its way to the client. */
export interface Block {
  item: OutputItem;
  /** -1 until the client has got its start. */
  index: number;
  /** The text or arguments that the client has not got. Slicing it off the whole would copy it each time. */
  pending: string;
  /** Of a call: whether its arguments are whole. */
  scan: ArgumentsScan;
  /** The engine has ended the block. */
  sealed: boolean;
  /** The text has only white space so far. */
  blank: boolean;
  /** Fragments that were appended since the texts were one. */
  loose: number;
}

export function newBlock(item: OutputItem): Block {
  return {
    item,
    index: -1,
    pending: item.kind === 'call' ? item.arguments : item.text,
    scan: new ArgumentsScan(),
    sealed: false,
    blank: item.kind === 'text' && isBlank(item.text),
    loose: 0,
  };
}

export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Whether a block with a successor is complete. A call is once its JSON is whole: fragments may be interleaved. */
export function isComplete({ item, scan }: Block): boolean {
  return item.kind !== 'call' || scan.isWhole(item.arguments);
}

/** How a JSON object or list begins. */
const OPENS = /^[{[]/;

/**
 * Tells whether arguments that come in fragments are a whole JSON object or list. It reads each fragment once and
 * parses the arguments once, when their brackets have closed: a text that is no JSON then cannot become JSON.
 */
export class ArgumentsScan {
  #state: 'open' | 'closed' | 'whole' | 'broken' = 'open';
  #depth = 0;
  #inString = false;
  #escaped = false;

  /**
   * Takes a fragment, and returns what of it belongs to the arguments. Behind a whole JSON text some engines leak the
   * token that ends the answer, or the end of the model's own form of a call. Another JSON text is kept: it is broken,
   * and not for the gateway to choose from.
   *
   * @param before the fragments until now, joined
   */
  push(fragment: string, before: string): string {
    let at = 0;
    while (this.#state === 'open' && at < fragment.length) this.#read(fragment.charAt(at++));
    const tail = fragment.slice(at).trimStart();
    if (this.#state === 'open' || tail === '') return fragment;
    const own = fragment.slice(0, at);
    if (!OPENS.test(tail) && this.isWhole(before + own)) return own;
    this.#state = 'broken';
    return fragment;
  }

  /** @param text all fragments joined */
  isWhole(text: string): boolean {
    if (this.#state === 'closed') this.#state = parseJson(text.trimEnd()) === undefined ? 'broken' : 'whole';
    return this.#state === 'whole';
  }

  #read(char: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (char === '"') this.#inString = !this.#inString;
    else if (this.#inString) this.#escaped = char === '\\';
    else if (char === '{' || char === '[') this.#depth++;
    else if ((char === '}' || char === ']') && --this.#depth <= 0) this.#state = 'closed';
  }
}

/** The arguments of a call that came at once, as `ArgumentsScan.push` takes them. */
export function ownArguments(text: string): string {
  const last = text.trimEnd().at(-1);
  return last === '}' || last === ']' ? text : withoutNull(new ArgumentsScan().push(text, ''));
}
