import type { KubeClient } from '../../kube/client/client.ts';
import { isUidMismatch, NotFoundError } from '../../kube/errors.ts';
import type { KubeObject, ResourceType } from '../../kube/types.ts';
import { isObject, type Json, sameJson } from '../../lib/json.ts';

/** Writes the fields of a status that differ, if the object is there. The uid protects a later one of the same name. */
export async function patchStatus<T extends KubeObject & { status?: object }>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { status, signal }: { status: object; signal: AbortSignal },
): Promise<void> {
  const patch = mergePatch(object.status ?? {}, status);
  if (patch === undefined) return;
  const { namespace, name, uid } = object.metadata;
  const body = { metadata: { uid }, status: patch };
  try {
    await client.patch(type, { namespace, name }, body, { type: 'merge', subresource: 'status', signal });
  } catch (error) {
    if (!(error instanceof NotFoundError) && !isUidMismatch(error)) throw error;
  }
}

/** The JSON merge patch (RFC 7386) that makes `before` mean `after`; undefined when they mean the same. */
function mergePatch(before: object, after: object): Json | undefined {
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
