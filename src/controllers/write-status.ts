import type { KubeClient } from '../kube/client/client.ts';
import { isUidMismatch, NotFoundError } from '../kube/errors.ts';
import type { KubeObject, ResourceType } from '../kube/types.ts';
import { mergePatch } from './merge-patch.ts';

/**
 * Writes what differs of a status; the uid keeps a successor of the same name untouched. An object that is gone needs no
 * status. @returns whether a write was made
 */
export async function patchStatus<T extends KubeObject & { status?: object }>(
  client: KubeClient,
  type: ResourceType<T>,
  object: T,
  { status, signal }: { status: object; signal: AbortSignal },
): Promise<boolean> {
  const patch = mergePatch(object.status ?? {}, status);
  if (patch === undefined) return false;
  const { namespace, name, uid } = object.metadata;
  const body = { metadata: { uid }, status: patch };
  try {
    await client.patch(type, { namespace, name }, body, { type: 'merge', subresource: 'status', signal });
    return true;
  } catch (error) {
    if (error instanceof NotFoundError || isUidMismatch(error)) return false;
    throw error;
  }
}
