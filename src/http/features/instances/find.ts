import type { Request } from 'express';
import { getPrincipal } from '../../../access/principal.ts';
import type { Stores } from '../../../caches/caches.ts';
import type { KubeClient } from '../../../kube/client/client.ts';
import { everyObject } from '../../../kube/client/every.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { keyOf } from '../../../kube/types.ts';
import type { InTurn } from '../../../lib/in-turn.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { SSH_KEYS, type SshKey, sshKeyId } from '../../../resources/ssh-key.ts';
import { ApiError, type FieldError } from '../../interface/errors/api-error.ts';

/** RFC 1123 subdomain: the names that Kubernetes allows. The API server is not asked for any other. */
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/** What a route needs that speaks of one instance. */
export interface InstanceSource {
  client: KubeClient;
  stores: Stores<'instances'>;
}

interface KeySource {
  client: Pick<KubeClient, 'list'>;
  stores: Stores<'sshKeys'>;
  /** By tenant. */
  liveLooks: InTurn;
}

/** An instance of the tenant: from the cache, else live, because another replica may have just created it. */
async function findInstance(
  { client, stores }: InstanceSource,
  namespace: string,
  name: string,
): Promise<GpuInstance | undefined> {
  if (!NAME.test(name)) return undefined;
  const cached = stores.instances.get(keyOf({ namespace, name }));
  if (cached !== undefined) return cached;
  const live = await findObject(client, GPU_INSTANCES, { namespace, name });
  return live && stores.instances.complete(live);
}

export function instanceNotFound(): ApiError {
  return new ApiError('instance_not_found', 'No instance has this id.');
}

/** The instance that the path of an authenticated request names; throws 404 when the tenant has none of this id. */
export async function instanceOf(source: InstanceSource, request: Request): Promise<GpuInstance> {
  const { namespace } = getPrincipal(request);
  const instance = await findInstance(source, namespace, String(request.params['instanceId']));
  if (instance === undefined) throw instanceNotFound();
  return instance;
}

type FoundKeys = Map<number, Pick<SshKey, 'metadata'>>;

/** Metadata of so many keys may have some megabytes. */
const KEYS_OF_PAGE = 100;

/** SSH keys of the tenant by id: from the cache, else live, of which only the metadata is read. */
export async function findSshKeys(
  { client, stores, liveLooks }: KeySource,
  namespace: string,
  ids: readonly number[],
): Promise<FoundKeys> {
  const cached = (): FoundKeys =>
    new Map(ids.flatMap((id) => stores.sshKeys.by('id', `${namespace}/${id}`).map((key) => [id, key] as const)));
  const hasAll = (found: FoundKeys): boolean => ids.every((id) => found.has(id));
  const known = cached();
  if (hasAll(known)) return known;
  return liveLooks.run(namespace, async () => {
    const found = cached();
    if (hasAll(found)) return found;
    for await (const key of everyObject(client, SSH_KEYS, { namespace, metadataOnly: true, page: KEYS_OF_PAGE })) {
      const id = sshKeyId(key);
      if (ids.includes(id)) found.set(id, key);
      if (hasAll(found)) break;
    }
    return found;
  });
}

/** One error for each of these ids that no SSH key of the tenant has. */
export async function missingSshKeys(
  source: KeySource,
  namespace: string,
  ids: readonly number[],
): Promise<FieldError[]> {
  if (ids.length === 0) return [];
  const found = await findSshKeys(source, namespace, ids);
  return ids.flatMap((id, index) =>
    found.has(id) ? [] : [{ path: `ssh_key_ids[${index}]`, expected: 'expected the id of an SSH key' }],
  );
}
