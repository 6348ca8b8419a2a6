import { INDEXES } from '../../src/caches/indexes.ts';
import { InstancePresenter } from '../../src/http/features/instances/presenter.ts';
import type { ReadStore } from '../../src/kube/watch/store.ts';
import type { GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { cacheOf } from './controller-world.ts';

/** Shows instances of a cluster that has nothing else. */
export function presenterOf(instances: Pick<ReadStore<GpuInstance>, 'complete'>): InstancePresenter {
  return new InstancePresenter({
    complete: (instance) => instances.complete(instance),
    nodes: cacheOf<never>().store,
    templates: {
      templates: cacheOf<never>([], INDEXES.templates).store,
      namespaces: cacheOf<never>().store,
      own: 'berth-system',
    },
    defaultImage: 'debian:12',
    placeOf: () => undefined,
    nearLimits: () => [],
  });
}
