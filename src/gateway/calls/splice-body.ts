import type { Json } from '../../lib/json.ts';
import { endOfString } from '../../lib/json-structure.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const SPACE = 0x20;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
/** A walk over more bytes would cost more than to write them again. Clients put the name of the model first. */
const WALKED_BYTES = 4096;

/**
 * The text of `after`, where `bytes` is the text of `before`. When no more is wanted than new members and new values near
 * the start, all else stays as the client wrote it, to the byte: a long body is not written again. Values are compared by
 * identity.
 *
 * @param bytes valid JSON of an object in which no name stands twice
 */
export function spliceBody(bytes: Buffer, before: Json, after: Json): Buffer {
  const changed = new Set(Object.keys(before).filter((name) => before[name] !== after[name]));
  const added = Object.keys(after).filter((name) => after[name] !== undefined && !Object.hasOwn(before, name));
  if (changed.size === 0 && added.length === 0) return bytes;
  const isLess = [...changed].some((name) => after[name] === undefined);
  const values = isLess ? [] : valuesOf(changed, bytes);
  if (values.length < changed.size) return Buffer.from(JSON.stringify(after));
  const members = added.map((name) => `${JSON.stringify(name)}:${JSON.stringify(after[name])}`);
  if (added.length > 0 && Object.keys(before).length > 0) members.push('');
  let at = bytes.indexOf(OPEN_OBJECT) + 1;
  const pieces = [bytes.subarray(0, at), Buffer.from(members.join(','))];
  for (const { name, start, end } of values) {
    pieces.push(bytes.subarray(at, start), Buffer.from(JSON.stringify(after[name])));
    at = end;
  }
  return Buffer.concat([...pieces, bytes.subarray(at)]);
}

interface Value {
  name: string;
  start: number;
  end: number;
}

/** Where the values of these members are, in their order; those that are not near the start are left out. */
function valuesOf(names: ReadonlySet<string>, bytes: Buffer): Value[] {
  const found: Value[] = [];
  const head = bytes.subarray(0, WALKED_BYTES);
  let at = skipSpace(head, head.indexOf(OPEN_OBJECT) + 1);
  while (head[at] === QUOTE && found.length < names.size) {
    const nameEnd = behindString(head, at);
    const start = skipSpace(head, head.indexOf(COLON, nameEnd) + 1);
    const end = endOfValue(head, start);
    if (end === head.length) break;
    const name = JSON.parse(head.toString('utf8', at, nameEnd)) as string;
    if (names.has(name)) found.push({ name, start, end });
    at = skipSpace(head, end);
    if (head[at] === COMMA) at = skipSpace(head, at + 1);
  }
  return found;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while ((bytes[at] ?? QUOTE) <= SPACE) at += 1;
  return at;
}

/** Behind the closing quote of the string that begins at `from`. */
function behindString(bytes: Buffer, from: number): number {
  return Math.min(endOfString(bytes, from + 1) + 1, bytes.length);
}

function endOfValue(bytes: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) at = behindString(bytes, at) - 1;
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      // The end of the outermost object, behind a number or a word.
      if (depth === 0) return at;
      depth -= 1;
    } else if (depth === 0 && (byte === COMMA || (byte ?? 0) <= SPACE)) return at;
    else continue;
    if (depth === 0) return at + 1;
  }
  return bytes.length;
}
