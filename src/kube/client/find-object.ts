import { NotFoundError } from '../errors.ts';
import type { KubeObject, ObjectRef, ResourceType } from '../types.ts';
import type { CallOptions, KubeClient } from './client.ts';

/** An object as the API server has it; undefined when there is none. */
export async function findObject<T extends KubeObject>(
  client: Pick<KubeClient, 'get'>,
  type: ResourceType<T>,
  ref: ObjectRef,
  options?: CallOptions,
): Promise<T | undefined> {
  try {
    return await client.get(type, ref, options);
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
