import { isObject, type Json, sameJson } from '../../../src/lib/json.ts';

/** A JSON patch of which one operation cannot be applied. */
export class PatchError extends Error {
  override name = 'PatchError';
}

/** RFC 7386. The answer shares with `target` what the patch leaves as it is. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged: Json = isObject(target) ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name];
    else merged[name] = mergePatch(merged[name], value);
  }
  return merged;
}

export interface Operation {
  op: 'add' | 'remove' | 'replace' | 'test' | 'move' | 'copy';
  path: string;
  from?: string;
  value?: unknown;
}

function segmentsOf(path: string): string[] {
  return path
    .split('/')
    .slice(1)
    .map((one) => one.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function valueAt(target: unknown, path: string): unknown {
  let value = target;
  for (const segment of segmentsOf(path)) {
    if (Array.isArray(value)) value = value[Number(segment)];
    else if (isObject(value)) value = value[segment];
    else value = undefined;
    if (value === undefined) throw new PatchError(`There is nothing at ${path}.`);
  }
  return value;
}

/** What a test compares: a field that is missing equals null, and one whose parent is missing cannot be tested. */
function tested(target: unknown, path: string): unknown {
  const parentPath = path.slice(0, path.lastIndexOf('/'));
  const parent = valueAt(target, parentPath) as Json | unknown[];
  const name = segmentsOf(path).at(-1) ?? '';
  return (Array.isArray(parent) ? parent[Number(name)] : parent[name]) ?? null;
}

function changeAt(
  target: unknown,
  segments: readonly string[],
  change: (parent: Json | unknown[], name: string) => void,
): unknown {
  const [name = '', ...rest] = segments;
  const copy: unknown = Array.isArray(target)
    ? [...(target as unknown[])]
    : isObject(target)
      ? { ...target }
      : undefined;
  if (copy === undefined) throw new PatchError('The parent of a path is no object and no list.');
  if (rest.length === 0) {
    change(copy as Json | unknown[], name);
    return copy;
  }
  const child = (copy as Json)[name];
  if (child === undefined) throw new PatchError(`The path has no ${name}.`);
  (copy as Json)[name] = changeAt(child, rest, change);
  return copy;
}

function add(target: unknown, path: string, value: unknown): unknown {
  return changeAt(target, segmentsOf(path), (parent, name) => {
    if (!Array.isArray(parent)) parent[name] = value;
    else if (name === '-') parent.push(value);
    else if (Number(name) <= parent.length) parent.splice(Number(name), 0, value);
    else throw new PatchError(`The list has no place ${name}.`);
  });
}

function remove(target: unknown, path: string): unknown {
  return changeAt(target, segmentsOf(path), (parent, name) => {
    if (Array.isArray(parent)) {
      if (!(Number(name) < parent.length)) throw new PatchError(`The list has no place ${name}.`);
      parent.splice(Number(name), 1);
    } else {
      if (!(name in parent)) throw new PatchError(`There is no field ${name}.`);
      delete parent[name];
    }
  });
}

/** RFC 6902. Throws PatchError. */
export function jsonPatch(target: unknown, operations: readonly Operation[]): unknown {
  let result = target;
  for (const { op, path, from = '', value } of operations) {
    switch (op) {
      case 'test':
        if (!sameJson(tested(result, path), value ?? null)) throw new PatchError(`The test of ${path} failed.`);
        break;
      case 'add':
        result = add(result, path, value);
        break;
      case 'replace':
        // One whose parent is there may be missing, as the API server's library has it.
        result = changeAt(result, segmentsOf(path), (parent, name) => {
          (parent as Json)[name] = value;
        });
        break;
      case 'remove':
        result = remove(result, path);
        break;
      case 'move': {
        const moved = valueAt(result, from);
        result = add(remove(result, from), path, moved);
        break;
      }
      case 'copy':
        result = add(result, path, valueAt(result, from));
        break;
    }
  }
  return result;
}
