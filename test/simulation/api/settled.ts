import type { Json } from '../../../src/lib/json.ts';

/**
 * What a reader of its JSON has of a value: a copy without the fields that are undefined. Nobody may change it, so who
 * has one may share it, and what is settled already is not copied again.
 */
export function settled<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map((item: unknown) => settled(item) ?? null)) as T;
  const copy: Json = {};
  for (const [name, inner] of Object.entries(value)) if (inner !== undefined) copy[name] = settled(inner);
  return Object.freeze(copy) as T;
}
