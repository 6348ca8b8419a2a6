import { createHash } from 'node:crypto';
import type { CallOptions, KubeClient } from './client.ts';
import { contains, sameJson } from './semantic.ts';
import type { KubeObject, ResourceType } from './types.ts';

/** Holds a hash of what was last applied: how a field that is no longer wanted is noticed and removed. */
const APPLIED_ANNOTATION = 'berth.dev/applied';

export interface ApplyRequest<T> extends CallOptions {
  /** One stable name per controller. */
  fieldManager: string;
  /** What the cache shows; undefined when nothing is there. */
  current: T | undefined;
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)));
}

function hashOf(object: KubeObject): string {
  return createHash('sha256').update(JSON.stringify(object, sortedKeys)).digest('base64url').slice(0, 16);
}

/**
 * Server-side apply of an object built from scratch, left out when it would change nothing: every field is there with
 * the same meaning, and the last apply had the same fields. Takes conflicting fields over, so only for fields that are
 * ours by design.
 * @returns the object as the server has it and whether a write was made
 */
export async function applyIfChanged<T extends KubeObject>(
  client: KubeClient,
  type: ResourceType<T>,
  desired: KubeObject,
  request: ApplyRequest<T>,
): Promise<{ object: T; written: boolean }> {
  const { metadata } = desired;
  const annotations = { ...metadata.annotations, [APPLIED_ANNOTATION]: hashOf(desired) };
  const full = { ...desired, metadata: { ...metadata, annotations } };
  const { current, fieldManager, signal } = request;
  if (current && contains(current, full)) return { object: current, written: false };
  const object = await client.apply(type, full, { fieldManager, force: true, ...(signal && { signal }) });
  return { object, written: true };
}

/**
 * Writes the status of an object whose status is wholly ours, left out when it says the same already. Applied, so that
 * fields which are no longer set disappear.
 */
export async function applyStatusIfChanged<T extends KubeObject & { status?: unknown }>(
  client: KubeClient,
  type: ResourceType<T>,
  status: T['status'],
  request: ApplyRequest<T> & { current: T },
): Promise<{ object: T; written: boolean }> {
  const { current, fieldManager, signal } = request;
  if (sameJson(current.status ?? {}, status ?? {})) return { object: current, written: false };
  const { name, namespace, uid } = current.metadata;
  // The uid: an object of the same name made meanwhile must not get this one's status.
  const body = { metadata: { name, uid, ...(namespace !== undefined && { namespace }) }, status };
  const options = { fieldManager, force: true, subresource: 'status' as const, ...(signal && { signal }) };
  return { object: await client.apply(type, body, options), written: true };
}
