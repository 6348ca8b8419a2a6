import { withExactNumbers } from '../../lib/exact-json.ts';
import type { HistoryItem } from '../dialects/index.ts';

/** Characters of an id that can be found again. */
const ID_MAX = 512;
/** JSON has no line break but between values, so none is in a line. */
const ID = /^\{"id":("(?:[^"\\]|\\.)*")/;

/** Items as text: the JSON of each in a line, its id in front. Whoever wants a few of many items parses those alone. */
export function writeItems(items: readonly HistoryItem[]): string {
  return items.map(({ id, ...item }) => JSON.stringify(id === undefined ? item : { id, ...item })).join('\n');
}

/** Schemas of tools, and items as they were given, keep their numbers as they were written. All others are text here. */
export function readItems(lines: string): HistoryItem[] {
  const json = `[${lines.replaceAll('\n', ',')}]`;
  const items = JSON.parse(json) as HistoryItem[];
  if (!items.some(({ kind }) => kind === 'tools' || kind === 'given')) return items;
  return withExactNumbers(items, json, (name) => name === 'tools' || name === 'item') as HistoryItem[];
}

function* linesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const end = text.indexOf('\n', from);
    const to = end === -1 ? text.length : end;
    yield text.slice(from, to);
    from = to + 1;
  }
}

/** The lines of items from the index `from` to that before `to`. */
export function sliceLines(text: string, from: number, to: number): string[] {
  const lines: string[] = [];
  let index = 0;
  for (const line of linesOf(text)) {
    if (index >= to) break;
    if (index >= from) lines.push(line);
    index += 1;
  }
  return lines;
}

/** The index of the first item with the id; -1 when none has it. */
export function indexOfItem(text: string, id: string): number {
  const start = `{"id":${JSON.stringify(id)},`;
  const at = text.startsWith(start) ? 0 : text.indexOf(`\n${start}`) + 1;
  if (at === 0 && !text.startsWith(start)) return -1;
  let index = 0;
  for (let end = text.indexOf('\n'); end !== -1 && end < at; end = text.indexOf('\n', end + 1)) index += 1;
  return index;
}

/** The lines of the items with a wanted id, in order. */
export function linesById(text: string, wanted: ReadonlySet<string>): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of linesOf(text)) {
    const quoted = ID.exec(line.slice(0, ID_MAX))?.[1];
    const id = quoted === undefined ? undefined : (JSON.parse(quoted) as string);
    if (id === undefined || !wanted.has(id)) continue;
    const same = found.get(id);
    if (same === undefined) found.set(id, [line]);
    else same.push(line);
  }
  return found;
}
