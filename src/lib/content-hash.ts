import { createHash } from 'node:crypto';
import { isObject } from './json.ts';

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isObject(value)) return value;
  const entries = Object.entries(value)
    .filter(([, v]) => v !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([k, v]) => [k, canonical(v)]));
}

/** 32 hex digits of the SHA-256 of a JSON value. The order of keys, and those that are undefined, do not matter. */
export function contentHash(content: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(canonical(content)))
    .digest('hex')
    .slice(0, 32);
}
