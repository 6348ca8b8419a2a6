const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;
const CLOSE_BRACE = 0x7d;
/** In short strings, and in those full of escaped quotes, reading each byte beats a search for the next quote. */
const NEAR = 64;

/** Counts the objects, arrays and commas of a JSON text. Stops at `max + 1`. */
export function countStructure(json: Buffer, max: number): number {
  let count = 0;
  for (let at = 0; at < json.length && count <= max; at++) {
    const byte = json[at];
    if (byte === COMMA || byte === BRACE || byte === BRACKET) count++;
    else if (byte === QUOTE) at = endOfString(json, at + 1);
  }
  return count;
}

/** Whether a JSON text of an object or a list goes to its end: as many are closed as are open, and no string is open. */
export function isClosed(json: Buffer): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = endOfString(json, at + 1);
      if (at === json.length) return false;
    } else if (byte === BRACE || byte === BRACKET) depth++;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--;
  }
  return depth === 0;
}

/** Names are told apart by so many bits of their hashes. */
const HASH_BITS = 20;

/** Counts the different names of members in a JSON text, or of twenty thousand some hundred fewer. Stops at `max + 1`. */
export function countNames(json: Buffer, max: number): number {
  const seen = new Uint8Array(2 ** HASH_BITS);
  let count = 0;
  for (let at = 0; at < json.length && count <= max; at++) {
    if (json[at] !== QUOTE) continue;
    const end = endOfString(json, at + 1);
    let next = end + 1;
    while (isSpace(json[next])) next++;
    if (json[next] === COLON) {
      const slot = hashOf(json, at + 1, end);
      count += 1 - (seen[slot] ?? 1);
      seen[slot] = 1;
    }
    at = end;
  }
  return count;
}

/** FNV-1a of these bytes, folded. */
function hashOf(json: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ (json[at] ?? 0), 0x01000193);
  return ((hash >>> HASH_BITS) ^ hash) & (2 ** HASH_BITS - 1);
}

/** Where the string ends whose first byte behind the quote is at `from`: the index of its closing quote, or the length. */
export function endOfString(json: Buffer, from: number): number {
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

/** Whether a byte is what JSON allows between its tokens. */
export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Whether an odd number of backslashes comes before `at`, counted back to `from` at most. */
function isEscaped(json: Buffer, at: number, from: number): boolean {
  let before = at;
  while (before > from && json[before - 1] === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}
