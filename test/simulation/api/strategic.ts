import { isObject, type Json, sameJson } from '../../../src/lib/json.ts';
import { inner } from './fields.ts';
import type { Schema } from './kinds.ts';
import { PatchError } from './patch.ts';

const DIRECTIVE = '$patch';
const RETAIN = '$retainKeys';
const DELETE_FROM = '$deleteFromPrimitiveList/';

/** A patch that is not written as one, and how the API server finds that. */
export class PatchFormatError extends PatchError {
  override name = 'PatchFormatError';
  readonly found: 'format' | 'directive' | 'value';

  constructor(message: string, found: PatchFormatError['found'] = 'format') {
    super(message);
    this.found = found;
  }
}

/** What a patch says of something that is not there; undefined when that is nothing. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain).filter((item) => item !== undefined);
  if (!isObject(value)) return value;
  if (value[DIRECTIVE] !== undefined) return undefined;
  // It would become a field.
  if (value[RETAIN] !== undefined) throw new PatchFormatError('A list is no text.', 'value');
  const left = Object.entries(value).map(([name, item]) => [name, item === null ? undefined : plain(item)] as const);
  return Object.fromEntries(left.filter(([, item]) => item !== undefined));
}

/** Items of the patch in its order, and each other one before the first of them that it stood before. */
function inOrder(
  items: readonly unknown[],
  original: readonly unknown[],
  patch: readonly unknown[],
  isSame: (one: unknown, other: unknown) => boolean,
): unknown[] {
  const placeIn = (list: readonly unknown[], item: unknown): number => list.findIndex((one) => isSame(one, item));
  const byPlace = (list: readonly unknown[]) => (a: unknown, b: unknown) => placeIn(list, a) - placeIn(list, b);
  const named = items.filter((item) => placeIn(patch, item) >= 0).toSorted(byPlace(patch));
  const others = items.filter((item) => placeIn(patch, item) < 0).toSorted(byPlace(original));
  const out: unknown[] = [];
  while (named.length > 0 && others.length > 0) {
    const [there, here] = [placeIn(original, named[0]), placeIn(original, others[0])];
    const isOther = there >= 0 && here >= 0 && here < there;
    out.push(isOther ? others.shift() : named.shift());
  }
  return [...out, ...named, ...others];
}

function byKey(original: readonly Json[], patch: readonly Json[], key: string, items: Schema | undefined): unknown[] {
  const isSame = (one: unknown, other: unknown): boolean => sameJson((one as Json)[key], (other as Json)[key]);
  if (patch.some((item) => item[key] === undefined && item[DIRECTIVE] !== 'replace'))
    throw new PatchFormatError(`An item has no ${key}.`);
  const plain = patch.filter((item) => item[DIRECTIVE] === undefined);
  if (patch.some((item) => item[DIRECTIVE] === 'replace')) return plain;
  const isDeleted = (one: Json): boolean => patch.some((item) => item[DIRECTIVE] === 'delete' && isSame(item, one));
  const left = original.filter((one) => !isDeleted(one));
  const changed = left.map((one) => {
    const item = plain.find((other) => isSame(other, one));
    return item === undefined ? one : mergedMap(one, item, items);
  });
  const added = plain.filter((item) => !left.some((one) => isSame(one, item)));
  return inOrder([...changed, ...added], left, plain, isSame);
}

function mergedList(original: readonly unknown[], patch: readonly unknown[], schema: Schema | undefined): unknown[] {
  if (schema?.['x-kubernetes-patch-strategy'] !== 'merge') return [...patch];
  const key = schema['x-kubernetes-patch-merge-key'];
  if (key !== undefined) return byKey(original as Json[], patch as Json[], key, schema.items);
  return inOrder([...new Set([...original, ...patch])], original, patch, Object.is);
}

function retained(original: Json, patch: Json): Json {
  const names = patch[RETAIN];
  if (!Array.isArray(names)) return original;
  const isKept = (name: string): boolean => names.includes(name);
  const strange = Object.entries(patch).find(
    ([name, value]) => value !== null && !name.startsWith('$') && !isKept(name),
  );
  if (strange !== undefined) throw new PatchFormatError(`The patch has ${strange[0]}, which it does not retain.`);
  return Object.fromEntries(Object.entries(original).filter(([name]) => isKept(name)));
}

function mergedMap(original: Json, patch: Json, schema: Schema | undefined): Json {
  const directive = patch[DIRECTIVE];
  if (directive === 'replace') return Object.fromEntries(Object.entries(patch).filter(([name]) => name !== DIRECTIVE));
  if (directive === 'delete') return {};
  if (directive !== undefined) throw new PatchFormatError('There is no such directive.', 'directive');
  const out = { ...retained(original, patch) };
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith(DELETE_FROM)) {
      const field = name.slice(DELETE_FROM.length);
      if (Array.isArray(out[field])) out[field] = out[field].filter((one) => !(value as unknown[]).includes(one));
    } else if (value === null) delete out[name];
    else if (!name.startsWith('$')) {
      const next = mergedValue(out[name], value, schema, name);
      // A list that was not there does not become an empty one.
      if (out[name] !== undefined || !Array.isArray(next) || next.length > 0) out[name] = next;
    }
  }
  return out;
}

function mergedValue(original: unknown, patch: unknown, schema: Schema | undefined, name: string): unknown {
  const under = inner(schema, name);
  if (isObject(original) && isObject(patch)) return mergedMap(original, patch, under);
  if (Array.isArray(original) && Array.isArray(patch)) return mergedList(original, patch, under);
  return plain(patch);
}

/** A strategic merge patch, as the fields of the kind have it. Throws PatchFormatError. */
export function strategicPatch(target: Json, patch: Json, schema: Schema): Json {
  return mergedMap(target, patch, schema);
}
