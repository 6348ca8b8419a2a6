import { hash } from 'node:crypto';
import { isObject } from './json.ts';

/** Whether a field that is null counts, or equals one that is absent. An item of a list always counts. */
export type NullRule = 'nulls count' | 'nulls are absent';

function canonical(value: unknown, rule: NullRule): unknown {
  if (Array.isArray(value)) return value.map((item) => canonical(item, rule));
  if (!isObject(value)) return value;
  const entries = Object.entries(value)
    .filter(([, v]) => v !== undefined && (v !== null || rule === 'nulls count'))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([k, v]) => [k, canonical(v, rule)]));
}

/**
 * 32 hex digits of the SHA-256 of a JSON value. The order of fields, and those that are undefined, do not matter. Objects in
 * clusters have it: it must stay the same for ever.
 */
export function contentHash(content: unknown, rule: NullRule = 'nulls count'): string {
  return hash('sha256', JSON.stringify(canonical(content, rule)), 'hex').slice(0, 32);
}
