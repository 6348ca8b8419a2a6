import { isObject, type Json, readJson } from '../../lib/json.ts';
import { invalid } from './errors/dialect-error.ts';

export function objectAt(value: unknown, path: string): Json {
  if (!isObject(value)) throw invalid(path, 'expected an object');
  return value;
}

/** Undefined where there is none. Throws DialectError for anything but an object. */
export function optionalObject(value: unknown, path: string): Json | undefined {
  return value === undefined || value === null ? undefined : objectAt(value, path);
}

export function arrayAt(value: unknown, path: string): unknown[] {
  if (!Array.isArray(value)) throw invalid(path, 'expected an array');
  return value;
}

export function stringAt(value: unknown, path: string): string {
  if (typeof value !== 'string') throw invalid(path, 'expected a string');
  return value;
}

/** Undefined for anything but a string. OpenAI's SDKs send null for a field that is not set. */
export function optionalString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function optionalNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A count that a server reports, 0 to 2^53 - 1. Anything else is undefined. */
export function optionalCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

export function optionalBoolean(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

/** The objects of an array that may be absent. Other members are skipped, because engines send many things. */
export function objectsOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** What `change` makes of the items of a list; the same list where it leaves each as it is. */
export function changedItems(given: unknown[], change: (item: unknown, position: number) => unknown[]): unknown[] {
  const changed = given.flatMap((item, position) => change(item, position));
  return changed.length === given.length && changed.every((item, at) => item === given[at]) ? given : changed;
}

/** The fields of `source` named in `names` that are set. */
export function pick(source: Json, names: readonly string[]): Json {
  const picked: Json = {};
  for (const name of names) {
    const value = source[name];
    if (value !== undefined && value !== null) picked[name] = value;
  }
  return picked;
}

/** Parsed JSON, or undefined when the text is not JSON or has too many levels. */
export function parseJson(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}

/** A string, empty for anything else. */
export function textValue(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A value in an error message: short, and safe for any JSON (`String` throws on some objects). */
export function excerpt(value: unknown): string {
  return (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')).slice(0, 60);
}

/** What engines read in every dialect, and the published ones have in chat at most. */
export const OF_ENGINES = [
  'frequency_penalty',
  'presence_penalty',
  'seed',
  'logit_bias',
  'chat_template_kwargs',
  'min_p',
  'repetition_penalty',
] as const;

/** The stop strings of a body in the form of OpenAI: one, or a list. Throws DialectError. */
export function parseStop(stop: unknown): string[] {
  if (stop === undefined || stop === null) return [];
  if (typeof stop === 'string') return [stop];
  return arrayAt(stop, 'stop').map((value, position) => stringAt(value, `stop[${position}]`));
}
