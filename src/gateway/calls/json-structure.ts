const QUOTE = 0x22;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
/** Where strings are short, or full of escaped quotes, looking at each byte beats a search for the next quote. */
const NEAR = 64;

/** How many objects, arrays and commas a JSON text has, or `max + 1` as soon as there are more than `max`. */
export function countStructure(json: Buffer, max: number): number {
  let count = 0;
  for (let at = 0; at < json.length && count <= max; at++) {
    const byte = json[at];
    if (byte === COMMA || byte === BRACE || byte === BRACKET) count++;
    else if (byte === QUOTE) at = endOfString(json, at + 1);
  }
  return count;
}

/** The place of the quote that ends the string whose text starts at `from`, or the length. */
function endOfString(json: Buffer, from: number): number {
  let at = from;
  for (;;) {
    for (const near = Math.min(at + NEAR, json.length); at < near; at++) {
      if (json[at] === QUOTE) return at;
      if (json[at] === BACKSLASH) at++;
    }
    const quote = json.indexOf(QUOTE, at);
    if (quote === -1) return json.length;
    if (!isEscaped(json, quote, at)) return quote;
    at = quote + 1;
  }
}

/** Whether an odd number of backslashes, none of them before `from`, stands before `at`. */
function isEscaped(json: Buffer, at: number, from: number): boolean {
  let before = at;
  while (before > from && json[before - 1] === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}
