import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError } from '../kube/errors.ts';
import { LEASES } from '../kube/types.ts';
import { GPU_POOLS, type GpuPool, type GpuPoolSpec, HAD_POOL } from '../resources/gpu-pool.ts';
import { CONTROLLER_LEASE } from '../runtime/lease-record.ts';

/**
 * Makes the GPUPool `default` in a cluster that never had a GPUPool. Where pools are gone, somebody deleted them, or they
 * are still to come from a backup: the prices and the sandbox of `spec` are not theirs. Throws KubeError.
 */
export async function ensureDefaultPool(
  client: Pick<KubeClient, 'get' | 'list' | 'create' | 'replace'>,
  { namespace, spec }: { namespace: string; spec: GpuPoolSpec },
  signal: AbortSignal,
): Promise<void> {
  const lease = await client.get(LEASES, { namespace, name: CONTROLLER_LEASE }, { signal });
  const { annotations = {} } = lease.metadata;
  if (annotations[HAD_POOL] === 'true') return;
  // From etcd, because a cache may lack a pool that was just made.
  const { items } = await client.list(GPU_POOLS, { metadataOnly: true, limit: 1, signal });
  if (items.length === 0) {
    try {
      await client.create<GpuPool>(GPU_POOLS, { metadata: { name: 'default' }, spec }, { signal });
    } catch (error) {
      if (!(error instanceof AlreadyExistsError)) throw error;
    }
  }
  // A renewal meanwhile refuses this. It is tried again with all before it, and the pool is there then.
  const marked = { ...lease.metadata, annotations: { ...annotations, [HAD_POOL]: 'true' } };
  await client.replace(LEASES, { ...lease, metadata: marked }, { signal });
}
