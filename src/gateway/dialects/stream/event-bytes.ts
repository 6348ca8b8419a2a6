const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const BRACE = 0x7b;
const BLANK = Buffer.from('\n\n');
const BLANK_WITH_RETURNS = Buffer.from('\r\n\r\n');

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
  const returns = data.lastIndexOf(BLANK_WITH_RETURNS);
  return Math.max(plain === -1 ? 0 : plain + 2, returns === -1 ? 0 : returns + 4);
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
  if (data[at + 1] === NEWLINE) return true;
  return data[at - 1] === RETURN && data[at + 1] === RETURN && data[at + 2] === NEWLINE;
}

const DATA_FIELD = Buffer.from('data:');

/** Whether a chat event starts with `{"er` or `[`, with or without spaces: an error, or `[DONE]`. */
export function isChatErrorOrEnd(data: Buffer, from: number): boolean {
  let at = from + DATA_FIELD.length;
  if (data[at] === SPACE) at++;
  if (data[at] === 0x5b) return true;
  at++;
  if (data[at] === SPACE) at++;
  // `"er`: no other member of a chunk starts with this.
  return data[at] === 0x22 && data[at + 1] === 0x65 && data[at + 2] === 0x72;
}

/** The JSON text of an event. */
export function dataOf(event: string): string {
  return event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim())
    .join('\n');
}

/** Whether the value that starts at `at` is an object. */
export function valueIsObject(data: Buffer, at: number): boolean {
  return (data[at] === SPACE ? data[at + 1] : data[at]) === BRACE;
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
