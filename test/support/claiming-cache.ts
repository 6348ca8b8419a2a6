import { ClaimsOnPods } from '../../src/caches/claims-on-pods.ts';
import { INDEXES } from '../../src/caches/indexes.ts';
import type { Pod } from '../../src/kube/types.ts';
import { Cache } from '../../src/kube/watch/cache.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';

/** A complete cache of instances that shows the claims on these pods, as the caches of a process do. */
export function claimingCache(pods: Cache<Pod>, instances: readonly GpuInstance[] = []): Cache<GpuInstance> {
  const claims = new ClaimsOnPods(pods.store);
  const cache = new Cache<GpuInstance>({
    indexers: INDEXES.instances,
    complete: (instance) => claims.complete(instance),
    onListenerError: (error) => {
      throw error;
    },
  });
  claims.follow((key) => cache.refresh(key));
  cache.replace(instances, '1');
  return cache;
}
