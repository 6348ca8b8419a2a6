const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const BRACE = 0x7b;
const QUOTE = 0x22;

/** A stretch of bytes, and what to forward in its place. */
export interface Cut {
  from: number;
  to: number;
  replacement: Buffer | undefined;
}

/** The end of the last whole event, or 0. Events end with a blank line, with or without carriage returns. */
export function endOfLastEvent(data: Buffer): number {
  const plain = data.lastIndexOf('\n\n');
  const returns = data.lastIndexOf('\r\n\r\n');
  return Math.max(plain === -1 ? 0 : plain + 2, returns === -1 ? 0 : returns + 4);
}

/** The whole event that contains the byte at `at`, with its closing blank line. */
export function eventAround(data: Buffer, at: number): { from: number; to: number } {
  const from = endOfLastEvent(data.subarray(0, at));
  const ends = [data.indexOf('\n\n', at), data.indexOf('\r\n\r\n', at)].filter((end) => end !== -1);
  let to = ends.length === 0 ? data.length : Math.min(...ends);
  while (to < data.length && (data[to] === NEWLINE || data[to] === RETURN)) to++;
  return { from, to };
}

/** The JSON text of an event. */
export function dataOf(event: string): string {
  return event
    .split('\n')
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).trim())
    .join('\n');
}

/** Whether the member whose name and colon end at `at` has an object (or, if allowed, a string) for a value. */
export function hasContent(data: Buffer, at: number, orString: boolean): boolean {
  const value = data[at] === SPACE ? data[at + 1] : data[at];
  return value === BRACE || (orString && value === QUOTE);
}

/** The bytes with the cuts made, or undefined when nothing is left. */
export function applyCuts(data: Buffer, cuts: readonly Cut[]): Buffer | undefined {
  if (cuts.length === 0) return data;
  const kept: Buffer[] = [];
  let from = 0;
  for (const cut of cuts.toSorted((a, b) => a.from - b.from)) {
    if (cut.from > from) kept.push(data.subarray(from, cut.from));
    if (cut.replacement !== undefined) kept.push(cut.replacement);
    from = Math.max(from, cut.to);
  }
  if (from < data.length) kept.push(data.subarray(from));
  return kept.length === 0 ? undefined : Buffer.concat(kept);
}
