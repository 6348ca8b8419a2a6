import { isUtf8 } from 'node:buffer';
import { lookThrough, rawJSON, withNumbersOf } from '../../lib/exact-json.ts';
import { isObject, type Json } from '../../lib/json.ts';
import { DialectError, isFreeData } from '../dialects/index.ts';
import { endOfString, isSpace } from '../../lib/json-structure.ts';

/** Servers written with serde_json refuse more than 128. */
const MAX_DEPTH = 100;
const BYTE_ORDER_MARK = 0xef;
const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Fields by which a server or this gateway decides. */
const DECIDING: ReadonlySet<string> = new Set(
  `model models messages input prompt query documents system instructions content output role type tools tool_choice stream
  stream_options include_usage n n_cmpl n_predict best_of max_tokens max_completion_tokens max_output_tokens min_tokens store modality
  previous_response_id background cache_salt extra_key prompt_cache_key text url image_url video_url audio_url file_url
  image video audio input_audio source data file file_data file_id`.split(/\s+/),
);
/** Capitals, and the two letters beyond ASCII that readers which ignore case take for `s` and `k`. */
const NOT_LOWER = /[A-Z\u017f\u212a]/;

/**
 * Parses a body that all servers read in one way. Where readers differ, the servers of some would take another model or
 * another limit than the one that was checked here: they take the first or the last of two equal names, ignore case (Go),
 * or replace what is no text. @throws DialectError 400
 */
export function parseBody(bytes: Buffer): unknown {
  if (bytes[0] === BYTE_ORDER_MARK && bytes[1] === 0xbb) throw notJson('it begins with a byte order mark');
  if (!isUtf8(bytes)) throw notJson('it is not in UTF-8');
  const text = bytes.toString('utf8');
  const body = parsed(text);
  // Numbers at the top are for the gateway or the server, all others that are kept are read by nobody here.
  const written = lookThrough(text, 1);
  // A name that stands twice is read once.
  if (structureOf(body) !== written.pieces) {
    const name = nameTwice(bytes);
    throw ambiguous(name, `The name '${name}' stands twice in one object of the request body. Send it once.`);
  }
  return withWholeSeed(withNumbersOf(body, written, isUnread), text);
}

/** Fields at the top in which the gateway reads numbers. */
const READ: ReadonlySet<string> = new Set(['tools', 'thinking', 'reasoning', 'prompt']);

function isUnread(name: string, parent: Json, isTop: boolean): boolean {
  return (isTop && !READ.has(name)) || isFreeData(name, parent, isTop);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw notJson();
  }
}

function notJson(why?: string): DialectError {
  const reason = why === undefined ? '' : `: ${why}`;
  return new DialectError({
    status: 400,
    message: `The request body is not valid JSON${reason}.`,
    code: 'invalid_json',
  });
}

function ambiguous(param: string, message: string): DialectError {
  return new DialectError({ status: 400, message, code: 'ambiguous_json', param });
}

/**
 * Checks each value, and counts the objects, arrays and commas that it takes to write them, each name once.
 * @throws DialectError 400
 */
function structureOf(body: unknown): number {
  // Of what is visited; longer where something deeper was before.
  const path: (string | number)[] = [];
  const visit = (value: unknown, isFree: boolean, depth: number): number => {
    if (typeof value === 'string') {
      if (!value.isWellFormed()) throw halfPair(path.slice(0, depth));
      return 0;
    }
    if (typeof value === 'number') {
      if (!Number.isFinite(value)) throw tooLarge(path.slice(0, depth));
      return 0;
    }
    if (typeof value !== 'object' || value === null) return 0;
    if (depth === MAX_DEPTH)
      throw ambiguous(at(path.slice(0, 1)), `The request body is more than ${MAX_DEPTH} levels deep. Send it flatter.`);
    let inside = 0;
    let members = 0;
    if (Array.isArray(value)) {
      for (; members < value.length; members += 1) {
        path[depth] = members;
        inside += visit(value[members], isFree, depth + 1);
      }
      return inside + Math.max(1, members);
    }
    const object = value as Json;
    for (const name in object) {
      members += 1;
      path[depth] = name;
      if (!isFree) checkName(name, object, path, depth);
      inside += visit(object[name], isFree || isFreeData(name, object, depth === 0), depth + 1);
    }
    return inside + Math.max(1, members);
  };
  return visit(body, false, 0);
}

/** @param path its first steps, `depth` of them to the object and one to the name */
function checkName(name: string, object: Json, path: readonly (string | number)[], depth: number): void {
  if (!name.isWellFormed()) throw halfPair(path.slice(0, depth + 1));
  const meant = otherSpelling(name);
  if (meant === undefined || !(DECIDING.has(meant) || Object.hasOwn(object, meant))) return;
  const where = at(path.slice(0, depth + 1));
  throw ambiguous(where, `Some servers read '${where}' as '${meant}'. Write the name so, or leave it out.`);
}

function tooLarge(path: readonly (string | number)[]): DialectError {
  return ambiguous(at(path), `'${at(path)}' is too large a number. Send one that a double can hold.`);
}

function halfPair(path: readonly (string | number)[]): DialectError {
  return ambiguous(at(path), `'${at(path)}' has half of a surrogate pair, which is no character. Remove it.`);
}

/** The name as readers see it that ignore case, if it is another one. */
function otherSpelling(name: string): string | undefined {
  return NOT_LOWER.test(name) ? name.replaceAll('\u017f', 's').toLowerCase() : undefined;
}

/** Whether a server or this gateway decides by the field. */
export function isDeciding(name: string): boolean {
  return DECIDING.has(name);
}

function at(path: readonly (string | number)[]): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`))
    .join('')
    .toWellFormed()
    .slice(0, 200);
}

/** The first name that stands twice in one object. */
function nameTwice(json: Buffer): string {
  const open: Set<string>[] = [];
  for (let index = 0; index < json.length; index += 1) {
    const byte = json[index];
    if (byte === OPEN_OBJECT) open.push(new Set());
    else if (byte === CLOSE_OBJECT) open.pop();
    if (byte !== QUOTE) continue;
    const end = endOfString(json, index + 1);
    let next = end + 1;
    while (isSpace(json[next])) next += 1;
    const names = open.at(-1);
    if (json[next] === COLON && names !== undefined) {
      const name = JSON.parse(json.toString('utf8', index, end + 1)) as string;
      if (names.has(name)) return name.toWellFormed().slice(0, 200);
      names.add(name);
    }
    index = end;
  }
  return '';
}

/** A seed has 64 bits, of which a JavaScript number keeps 53. The rounded one would give another answer. */
function withWholeSeed(body: unknown, text: string): unknown {
  if (!isObject(body) || typeof body.seed !== 'number' || Number.isSafeInteger(body.seed)) return body;
  const written = [...text.matchAll(/"seed"\s*:\s*(-?\d{16,20})\b/g)].map(([, digits = '']) => digits);
  const whole = written.find((digits) => Number(digits) === body.seed);
  return whole === undefined ? body : { ...body, seed: rawJSON(whole) };
}
