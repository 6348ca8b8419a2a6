import { endOfString } from '../../../lib/json-structure.ts';
import { parseJson, textValue } from '../fields.ts';
import { tokensOfLength } from '../inspect/estimate-tokens.ts';
import type { Dialect } from '../types.ts';

/** Members that have what a model wrote, as servers write them: nothing inside of a string looks so. */
const TEXTS: Readonly<Record<Dialect, RegExp>> = {
  chat: /"(?:content|reasoning|reasoning_content|refusal|arguments|text|delta)" ?: ?"/g,
  responses: /"delta" ?: ?"/g,
  messages: /"(?:text|thinking|partial_json)" ?: ?"/g,
};
/** A string of JSON that is its own text. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** Texts that make more than so many tokens for each event come several tokens to an event. A few long words may be so by chance. */
const SEVERAL = 1.5;
const BY_CHANCE = 4;

/** The tokens of events of which most have one, unless their text says that they have several. */
export function tokensOfEvents(events: number, byText: number): number {
  return byText > SEVERAL * events + BY_CHANCE ? byText : events;
}

/** What came of an answer: how many events, and how much text they had. */
export class PassedText {
  readonly #texts: RegExp;
  #events = 0;
  #characters = 0;
  #bytes = 0;

  constructor(dialect: Dialect) {
    this.#texts = TEXTS[dialect];
  }

  /** Returns whether the event has text. */
  add(event: Buffer): boolean {
    this.#events += 1;
    const json = event.toString('latin1');
    let last = '';
    let hasText = false;
    this.#texts.lastIndex = 0;
    for (let found = this.#texts.exec(json); found !== null; found = this.#texts.exec(json)) {
      const from = this.#texts.lastIndex;
      const to = endOfString(event, from);
      this.#texts.lastIndex = to;
      const raw = json.slice(from, to);
      const text = PLAIN.test(raw) ? raw : textValue(parseJson(event.toString('utf8', from - 1, to + 1)));
      // Some servers write a thought under two names.
      if (text === '' || text === last) continue;
      last = text;
      hasText = true;
      this.#characters += text.length;
      this.#bytes += text === raw ? raw.length : Buffer.byteLength(text);
    }
    return hasText;
  }

  get tokens(): number {
    return tokensOfEvents(this.#events, tokensOfLength(this.#characters, this.#bytes));
  }

  clear(): void {
    this.#events = 0;
    this.#characters = 0;
    this.#bytes = 0;
  }
}
