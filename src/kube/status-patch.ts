import type { KubeObject } from './types.ts';

type Operation = { op: 'test' | 'add'; path: string; value: unknown } | { op: 'remove'; path: string };

/**
 * The JSON patch that writes fields of a status; undefined takes a field away. Where another object has the name by now it
 * fails with PatchTestFailedError, a ConflictError. A merge patch would not: for a custom resource, the API server writes
 * the status whatever uid comes with it.
 */
export function statusPatch({ metadata, status }: KubeObject & { status?: object }, fields: object): Operation[] {
  const isSame: Operation = { op: 'test', path: '/metadata/uid', value: metadata.uid ?? null };
  if (status === undefined) {
    // A missing path equals null.
    return [isSame, { op: 'test', path: '/status', value: null }, { op: 'add', path: '/status', value: fields }];
  }
  return [isSame, ...Object.entries(fields).flatMap(([name, value]) => fieldPatch(`/status/${name}`, value))];
}

function fieldPatch(path: string, value: unknown): Operation[] {
  if (value !== undefined) return [{ op: 'add', path, value }];
  // A field that is not there cannot be removed, and what was seen may be old.
  return [
    { op: 'add', path, value: null },
    { op: 'remove', path },
  ];
}
