import { parseJson } from '../fields.ts';

/**
 * Tells whether arguments that come in fragments are a whole JSON object or list, looking at each fragment once.
 * They are parsed once, when their brackets have closed: what is no JSON then cannot become any by what follows.
 */
export class ArgumentsScan {
  #state: 'open' | 'closed' | 'whole' | 'broken' = 'open';
  #depth = 0;
  #inString = false;
  #escaped = false;

  push(fragment: string): void {
    let at = 0;
    while (this.#state === 'open' && at < fragment.length) this.#read(fragment.charAt(at++));
    if (this.#state !== 'open' && fragment.slice(at).trim() !== '') this.#state = 'broken';
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
