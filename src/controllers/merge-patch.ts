import { isObject, type Json, sameJson } from '../lib/json.ts';

/** The JSON merge patch (RFC 7386) that makes `before` mean `after`; undefined when they mean the same. */
export function mergePatch(before: object, after: object): Json | undefined {
  const from = before as Json;
  const to = after as Json;
  const patch: Json = {};
  for (const key of Object.keys(from)) if (from[key] !== undefined && to[key] === undefined) patch[key] = null;
  for (const [key, value] of Object.entries(to)) {
    const old = from[key];
    if (value === undefined || sameJson(old, value)) continue;
    patch[key] = isObject(old) && isObject(value) ? mergePatch(old, value) : value;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
