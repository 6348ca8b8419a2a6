const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
/** No reason to stop is longer. */
const TEXT_CHARS = 32;
const BLANK = Buffer.from('\n\n');
const BLANK_WITH_RETURN = Buffer.from('\n\r\n');

/** A range of bytes, and what to forward instead. */
export interface Cut {
  from: number;
  to: number;
  replacement: Buffer | undefined;
}

/** The end of the last whole event, or 0. Events end with a blank line, with or without carriage returns. */
export function endOfLastEvent(data: Buffer): number {
  // Engines write whole events, so most chunks end with one.
  if (data[data.length - 1] === NEWLINE && data[data.length - 2] === NEWLINE) return data.length;
  const plain = data.lastIndexOf(BLANK);
  const returns = data.lastIndexOf(BLANK_WITH_RETURN);
  return Math.max(plain === -1 ? 0 : plain + 2, returns === -1 ? 0 : returns + 3);
}

/** The end of the event that starts at `from`, including its closing blank line if it has one. */
export function endOfEvent(data: Buffer, from: number): number {
  let to = data.indexOf(NEWLINE, from);
  while (to !== -1 && !isBeforeBlank(data, to)) to = data.indexOf(NEWLINE, to + 1);
  if (to === -1) return data.length;
  while (to < data.length && (data[to] === NEWLINE || data[to] === RETURN)) to++;
  return to;
}

/** Whether a blank line follows the line end at `at`. */
function isBeforeBlank(data: Buffer, at: number): boolean {
  return data[at + 1] === NEWLINE || (data[at + 1] === RETURN && data[at + 2] === NEWLINE);
}

const DATA = 0x64;
const EVENT_FIELD = 'event:';
const DATA_FIELD = 'data:';
const ERROR_FIELD = 'error:';
/** No name is longer. */
const NAME_CHARS = 18;

/**
 * Where the first field of an event begins, behind comments and lines that are no field, such as those of a JSON text.
 * `to` when it has none.
 */
export function skipComments(data: Buffer, from: number, to: number): number {
  let at = from;
  while (at < to && !isLetter(data[at] ?? 0)) at = nextLine(data, at, to);
  return at;
}

/** The names of fields are small letters. */
function isLetter(byte: number): boolean {
  return byte >= 0x61 && byte <= 0x7a;
}

function nextLine(data: Buffer, from: number, to: number): number {
  const end = data.indexOf(NEWLINE, from);
  return end === -1 || end >= to ? to : end + 1;
}

/** The start of the name of an event, whose field `event:` begins at `at`. The space after the colon is optional. */
export function nameOf(data: Buffer, at: number): string {
  const from = at + EVENT_FIELD.length + (data[at + EVENT_FIELD.length] === SPACE ? 1 : 0);
  return data.toString('latin1', from, from + NAME_CHARS);
}

/** Whether a name is the one that events have without a name, which says nothing. */
export function isGenericName(name: string): boolean {
  return name.startsWith('message') && /^message\r?(?:\n|$)/.test(name);
}

/**
 * Whether a chat event, whose first field is at `from`, starts as an error or is the end: `{"er`, `{"object":"error"`,
 * `{"type":"error"` or `[`, with or without spaces. Any other field than `data:` before it is skipped.
 */
export function isChatErrorOrEnd(data: Buffer, from: number, to: number): boolean {
  let at = from;
  while (at < to && data[at] !== DATA) {
    // `er`: the field `error:` of old llama.cpp.
    if (data[at] === 0x65 && (data[at + 1] === 0x72 || nameOf(data, at).startsWith('error'))) return true;
    at = nextLine(data, at, to);
  }
  at += DATA_FIELD.length;
  if (data[at] === SPACE) at++;
  if (data[at] === 0x5b) return true;
  at++;
  if (data[at] === SPACE) at++;
  if (data[at] !== 0x22) return false;
  // `"er`: no other member of a chunk starts with this.
  if (data[at + 1] === 0x65 && data[at + 2] === 0x72) return true;
  // `"o`, as in `object`, and `"t`, as in `type`.
  if (data[at + 1] !== 0x6f && data[at + 1] !== 0x74) return false;
  return /^"(?:object|type)" ?: ?"error"/.test(data.toString('latin1', at, at + 20));
}

/** The JSON text of an event. */
export function dataOf(event: string): string {
  return event
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith(DATA_FIELD)) return [line.slice(DATA_FIELD.length).trim()];
      return line.startsWith(ERROR_FIELD) ? [`{"error":${line.slice(ERROR_FIELD.length)}}`] : [];
    })
    .join('\n');
}

/**
 * Where the next member `name` is whose value begins with the byte `first`, or -1. Some engines put `"usage": null`
 * and `"finish_reason": null` into every chunk.
 */
export function nextValue(data: Buffer, { name, from, first }: { name: Buffer; from: number; first: number }): number {
  let at = data.indexOf(name, from);
  while (at !== -1 && firstByte(data, at + name.length) !== first) at = data.indexOf(name, at + name.length);
  return at;
}

/** The text that is the value of the last member `name`, cut behind 32 characters; undefined where it is none. */
export function lastText(data: Buffer, name: Buffer): string | undefined {
  const at = data.lastIndexOf(name);
  if (at === -1 || firstByte(data, at + name.length) !== QUOTE) return undefined;
  const from = data.indexOf(QUOTE, at + name.length) + 1;
  return data.toString('latin1', from, from + TEXT_CHARS).split('"', 1)[0];
}

function firstByte(data: Buffer, at: number): number | undefined {
  return data[at] === SPACE ? data[at + 1] : data[at];
}

/** Makes the cuts, which are in order. Returns undefined when nothing is left. */
export function applyCuts(data: Buffer, cuts: readonly Cut[]): Buffer | undefined {
  if (cuts.length === 0) return data;
  const kept: Buffer[] = [];
  let from = 0;
  for (const cut of cuts) {
    if (cut.from > from) kept.push(data.subarray(from, cut.from));
    if (cut.replacement !== undefined) kept.push(cut.replacement);
    from = cut.to;
  }
  if (from < data.length) kept.push(data.subarray(from));
  return kept.length === 0 ? undefined : Buffer.concat(kept);
}
