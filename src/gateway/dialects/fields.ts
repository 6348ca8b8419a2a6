import { invalid } from './errors/dialect-error.ts';
import type { Json } from './types.ts';

export function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function objectAt(value: unknown, path: string): Json {
  if (!isObject(value)) throw invalid(path, 'expected an object');
  return value;
}

export function arrayAt(value: unknown, path: string): unknown[] {
  if (!Array.isArray(value)) throw invalid(path, 'expected an array');
  return value;
}

export function stringAt(value: unknown, path: string): string {
  if (typeof value !== 'string') throw invalid(path, 'expected a string');
  return value;
}

/** A missing or null field is undefined: OpenAI's SDKs send nulls for "not set". */
export function optionalString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function optionalNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** A count that a server reports, 0 to 2^53 - 1; anything else is as good as none. */
export function optionalCount(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

export function optionalBoolean(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined;
}

/** The objects of an array that may be absent; anything else in it is skipped (upstream output, so tolerant). */
export function objectsOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
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

/** Parsed JSON, or undefined when the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** A string, or nothing for anything else. */
export function textValue(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A value as an error message shows it: short, and safe for any JSON (`String` throws on some objects). */
export function shown(value: unknown): string {
  return (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')).slice(0, 60);
}
