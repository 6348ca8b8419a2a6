import { randomUUID } from 'node:crypto';
import type { KubeClient } from '../../kube/client/client.ts';
import { AlreadyExistsError } from '../../kube/errors.ts';
import type { KubeObject, ResourceType } from '../../kube/types.ts';
import { REQUEST_HASH } from '../../resources/ids.ts';
import { type ObjectNames, otherBody, requestHash } from './idempotency.ts';

interface Deps {
  client: Pick<KubeClient, 'create' | 'get'>;
  idempotentName: ObjectNames;
}

/** What is to be made by a request: its namespace, its body and its Idempotency-Key. */
interface Wanted<T extends KubeObject & { spec: unknown }> {
  type: ResourceType<T>;
  /** Begins the name of the object. */
  prefix: string;
  namespace: string;
  spec: T['spec'];
  body: unknown;
  key: string | undefined;
}

/**
 * Makes an object, once for each Idempotency-Key: a retry finds the object of the first request.
 * @throws ApiError idempotency_conflict when that request had another body; KubeError
 */
export async function createOnce<T extends KubeObject & { spec: unknown }>(
  { client, idempotentName }: Deps,
  { type, prefix, namespace, spec, body, key }: Wanted<T>,
): Promise<{ object: T; replayed: boolean }> {
  const hash = requestHash(body);
  const name = key === undefined ? `${prefix}-${randomUUID()}` : await idempotentName(prefix, namespace, key);
  const annotations = key === undefined ? {} : { annotations: { [REQUEST_HASH]: hash } };
  try {
    const object = await client.create(type, { metadata: { namespace, name, ...annotations }, spec } as T);
    return { object, replayed: false };
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
    const found = await client.get(type, { namespace, name });
    if (found.metadata.annotations?.[REQUEST_HASH] !== hash) throw otherBody();
    return { object: found, replayed: true };
  }
}

/** Oldest first, then by name: the order of every list of resources. */
export function byAge(left: KubeObject, right: KubeObject): number {
  const a = String(left.metadata.creationTimestamp);
  const b = String(right.metadata.creationTimestamp);
  if (a !== b) return a < b ? -1 : 1;
  return left.metadata.name < right.metadata.name ? -1 : 1;
}

/** The id of an SSH key or a template that a path names; undefined for a text that can be none. */
export function numericIdIn(text: string): number | undefined {
  return /^[1-9][0-9]{0,15}$/.test(text) ? Number(text) : undefined;
}
