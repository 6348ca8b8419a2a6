import type { KubeClient } from '../kube/client/client.ts';
import { AlreadyExistsError } from '../kube/errors.ts';
import { GPU_POOLS, type GpuPool, type GpuPoolSpec } from '../resources/gpu-pool.ts';

/**
 * Makes the GPUPool `default` in a cluster that has no GPUPool. Every node with GPUs of NVIDIA would be for rent there
 * in any case, at no price; as an object it has the prices of `spec`, and can be changed. Throws KubeError.
 */
export async function ensureDefaultPool(
  client: Pick<KubeClient, 'list' | 'create'>,
  spec: GpuPoolSpec,
  signal: AbortSignal,
): Promise<void> {
  // From etcd, because a cache may lack a pool that was just made.
  const { items } = await client.list(GPU_POOLS, { metadataOnly: true, limit: 1, signal });
  if (items.length > 0) return;
  try {
    await client.create<GpuPool>(GPU_POOLS, { metadata: { name: 'default' }, spec }, { signal });
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
}
