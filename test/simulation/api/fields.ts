import { isObject, type Json, sameJson } from '../../../src/lib/json.ts';
import type { Schema } from './kinds.ts';

/** A set of paths. Elements of a path are written as in fieldsV1: `f:name`, `k:{"name":"c"}` and `v:"x"`. */
export interface Fields {
  /** Whether the path to here is in the set. */
  isMember: boolean;
  under: Map<string, Fields>;
}

export interface Comparison {
  added: Fields;
  modified: Fields;
  removed: Fields;
}

export function noFields(): Fields {
  return { isMember: false, under: new Map() };
}

export function isNone({ isMember, under }: Fields): boolean {
  return !isMember && under.size === 0;
}

function insert(fields: Fields, path: readonly string[]): void {
  let at = fields;
  for (const element of path) {
    let next = at.under.get(element);
    if (next === undefined) at.under.set(element, (next = noFields()));
    at = next;
  }
  at.isMember = true;
}

export function union(left: Fields, right: Fields): Fields {
  const under = new Map(left.under);
  for (const [element, inner] of right.under) {
    const known = left.under.get(element);
    under.set(element, known === undefined ? inner : union(known, inner));
  }
  return { isMember: left.isMember || right.isMember, under };
}

export function difference(left: Fields, right: Fields): Fields {
  const under = new Map(left.under);
  for (const [element, inner] of right.under) {
    const known = left.under.get(element);
    if (known === undefined) continue;
    const rest = difference(known, inner);
    if (isNone(rest)) under.delete(element);
    else under.set(element, rest);
  }
  return { isMember: left.isMember && !right.isMember, under };
}

export function intersection(left: Fields, right: Fields): Fields {
  const under = new Map<string, Fields>();
  for (const [element, inner] of right.under) {
    const known = left.under.get(element);
    const both = known === undefined ? undefined : intersection(known, inner);
    if (both !== undefined && !isNone(both)) under.set(element, both);
  }
  return { isMember: left.isMember && right.isMember, under };
}

/** The set with nothing at or under a path. */
export function cut(fields: Fields, [element = '', ...rest]: readonly string[]): Fields {
  const inner = fields.under.get(element);
  if (inner === undefined) return fields;
  const under = new Map(fields.under);
  const left = rest.length === 0 ? noFields() : cut(inner, rest);
  if (isNone(left)) under.delete(element);
  else under.set(element, left);
  return { ...fields, under };
}

function named(name: string): string {
  return `f:${name}`;
}

function isField(schema: Schema | undefined, name: string): boolean {
  return schema?.properties?.[name] !== undefined;
}

export function inner(schema: Schema | undefined, name: string): Schema | undefined {
  const { properties, additionalProperties } = schema ?? {};
  return properties?.[name] ?? (isObject(additionalProperties) ? additionalProperties : undefined);
}

/** How a value is owned: field by field, item by item, or as a whole. */
function shapeOf(value: unknown, schema: Schema | undefined): 'map' | 'list' | 'leaf' {
  if (Array.isArray(value)) {
    const type = schema?.['x-kubernetes-list-type'] ?? 'atomic';
    return type === 'atomic' ? 'leaf' : 'list';
  }
  return isObject(value) && schema?.['x-kubernetes-map-type'] !== 'atomic' ? 'map' : 'leaf';
}

function elementOf(item: unknown, schema: Schema | undefined): string {
  if (schema?.['x-kubernetes-list-type'] === 'set' || !isObject(item)) return `v:${JSON.stringify(item)}`;
  const keys = (schema?.['x-kubernetes-list-map-keys'] ?? []).toSorted();
  return `k:${JSON.stringify(Object.fromEntries(keys.map((key) => [key, item[key]])))}`;
}

function childrenOf(value: unknown, schema: Schema | undefined, shape: 'map' | 'list'): Map<string, unknown> {
  if (value === undefined) return new Map();
  if (shape === 'list') return new Map((value as unknown[]).map((item) => [elementOf(item, schema), item]));
  return new Map(
    Object.entries(value as Json).flatMap(([name, item]) => (item === undefined ? [] : [[named(name), item] as const])),
  );
}

function schemaUnder(schema: Schema | undefined, element: string): Schema | undefined {
  return element.startsWith('f:') ? inner(schema, element.slice(2)) : schema?.items;
}

/** The paths that a configuration names. */
export function fieldsOf(value: unknown, schema: Schema | undefined): Fields {
  const shape = shapeOf(value, schema);
  if (shape === 'leaf') return { isMember: true, under: new Map() };
  const under = new Map<string, Fields>();
  for (const [element, item] of childrenOf(value, schema, shape)) {
    const fields = fieldsOf(item, schemaUnder(schema, element));
    const isEmpty = isObject(item) && Object.keys(item).length === 0;
    if (shape === 'list' || isEmpty || !isField(schema, element.slice(2))) fields.isMember = true;
    if (!isNone(fields)) under.set(element, fields);
  }
  return { isMember: false, under };
}

/** The set with the fields of objects above its paths. Keys of maps and items of lists do not count. */
export function withParents(fields: Fields, schema: Schema | undefined): Fields {
  const under = new Map<string, Fields>();
  for (const [element, one] of fields.under) {
    const whole = withParents(one, schemaUnder(schema, element));
    const isParent = whole.under.size > 0 && element.startsWith('f:') && isField(schema, element.slice(2));
    under.set(element, { ...whole, isMember: one.isMember || isParent });
  }
  return { isMember: fields.isMember, under };
}

function isEmptyAtMost(value: unknown): boolean {
  return value === undefined || Object.keys(value as object).length === 0;
}

function compareAt(
  [before, after]: readonly [unknown, unknown],
  schema: Schema | undefined,
  into: Comparison,
  path: readonly string[],
): void {
  if (before === after) return;
  const shape = shapeOf(after ?? before, schema);
  const isLeaf =
    shape === 'leaf' ||
    (before !== undefined && after !== undefined && shape !== shapeOf(before, schema)) ||
    (isEmptyAtMost(before) && isEmptyAtMost(after));
  if (!isLeaf) {
    const [old, next] = [childrenOf(before, schema, shape), childrenOf(after, schema, shape)];
    for (const element of new Set([...old.keys(), ...next.keys()])) {
      const [left, right] = [old.get(element), next.get(element)];
      if (left !== right) compareAt([left, right], schemaUnder(schema, element), into, [...path, element]);
    }
  }
  if (before === undefined) insert(into.added, path);
  else if (after === undefined) insert(into.removed, path);
  else if (isLeaf && !sameJson(before, after)) insert(into.modified, path);
}

export function compared(before: unknown, after: unknown, schema: Schema | undefined): Comparison {
  const comparison = { added: noFields(), modified: noFields(), removed: noFields() };
  compareAt([before, after], schema, comparison, []);
  return comparison;
}

/** The value without the items and fields of a set; undefined when nothing is left. */
export function removed(value: unknown, fields: Fields, schema: Schema | undefined): unknown {
  const shape = shapeOf(value, schema);
  if (shape === 'leaf') return value;
  const left = [...childrenOf(value, schema, shape)].flatMap(([element, item]) => {
    const inside = fields.under.get(element);
    if (inside === undefined) return [[element, item] as const];
    if (inside.isMember) return [];
    return [[element, removed(item, inside, schemaUnder(schema, element))] as const];
  });
  if (left.length === 0) return undefined;
  if (shape === 'list') return left.map(([, item]) => item);
  return Object.fromEntries(left.map(([element, item]) => [element.slice(2), item]));
}

/** Items that both have stand in the order of the configuration, others after those that they followed. */
function mergedList(live: readonly unknown[], config: readonly unknown[], schema: Schema): unknown[] {
  const [left, right] = [live, config].map((list) => list.map((item) => elementOf(item, schema))) as [
    string[],
    string[],
  ];
  const olds = new Map(left.map((element, index) => [element, live[index]]));
  const news = new Map(right.map((element, index) => [element, config[index]]));
  const shared = right.filter((element) => olds.has(element));
  const out: unknown[] = [];
  let [l, r] = [0, 0];
  const take = (element: string): void => {
    out.push(merged(olds.get(element), news.get(element), schema.items));
    if (shared[0] === element) shared.shift();
    r += 1;
  };
  while (l < left.length || r < right.length) {
    const [old, next] = [left[l], right[r]];
    const isShared = old !== undefined && news.has(old);
    if (old !== undefined && !isShared) {
      out.push(live[l]);
      l += 1;
    } else if (old !== undefined && (old === next || shared[0] !== old)) {
      if (old === next) take(old);
      l += 1;
    } else if (next !== undefined) take(next);
  }
  return out;
}

/** What is live, with what a configuration says. */
export function merged(live: unknown, config: unknown, schema: Schema | undefined): unknown {
  if (config === undefined) return live;
  const shape = shapeOf(config, schema);
  if (live === undefined || shape === 'leaf' || shape !== shapeOf(live, schema)) return config;
  if (shape === 'list') return mergedList(live as unknown[], config as unknown[], schema ?? {});
  const names = Object.entries(config as Json);
  const changed = names.map(
    ([name, value]) => [name, merged((live as Json)[name], value, inner(schema, name))] as const,
  );
  return { ...(live as Json), ...Object.fromEntries(changed) };
}

/** The first path that a schema does not know. */
export function unknownIn(value: unknown, schema: Schema | undefined): string | undefined {
  if (schema === undefined || (!isObject(value) && !Array.isArray(value))) return undefined;
  if (Array.isArray(value)) {
    for (const item of value) {
      const found = unknownIn(item, schema.items);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  for (const [name, item] of Object.entries(value)) {
    if (schema.properties !== undefined && inner(schema, name) === undefined) return `.${name}`;
    const found = unknownIn(item, inner(schema, name));
    if (found !== undefined) return `.${name}${found}`;
  }
  return undefined;
}

function pathOf(element: string): string {
  const text = element.slice(2);
  if (element.startsWith('f:')) return `.${text}`;
  if (element.startsWith('v:')) return `[=${text}]`;
  const keys = Object.entries(JSON.parse(text) as Json);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
}

/** The paths of a set as the API server writes them. */
export function pathsOf({ under }: Fields): string[] {
  return [...under].flatMap(([element, fields]) => {
    const path = pathOf(element);
    return [...(fields.isMember ? [path] : []), ...pathsOf(fields).map((rest) => `${path}${rest}`)];
  });
}

export function fieldsV1({ under }: Fields): Json {
  return Object.fromEntries(
    [...under].map(([element, fields]) => [
      element,
      { ...(fields.isMember && fields.under.size > 0 && { '.': {} }), ...fieldsV1(fields) },
    ]),
  );
}
