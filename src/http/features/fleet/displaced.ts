import type { ReadStore } from '../../../kube/watch/store.ts';
import { compareText } from '../../../lib/compare.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { timeText } from '../../interface/schema.ts';
import type { FleetRecord } from './schema.ts';

type Displaced = FleetRecord['displaced'][number];

/** The operator reads the last ones. */
const MOST_DISPLACED = 200;

function recordOf({ metadata, spec, status }: GpuInstance, by: GpuInstance | undefined): Displaced {
  return {
    id: metadata.name,
    namespace: metadata.namespace ?? '',
    gpu_name: spec.gpu?.product ?? null,
    gpu_count: spec.gpu?.count ?? 1,
    by: by === undefined ? null : { id: by.metadata.name, namespace: by.metadata.namespace ?? '' },
    at: timeText(status?.ending?.at),
  };
}

/**
 * Who lost GPUs to whom, and has no others yet. The status of an instance names the other one by its uid alone, because
 * its tenant reads it.
 */
export function displacedIn(instances: Pick<ReadStore<GpuInstance>, 'values'>): Displaced[] {
  const found = [...instances.values()].filter(({ status }) => status?.ending?.reason === 'Preempted');
  const wanted = new Set(found.map(({ status }) => status?.ending?.by));
  const takers = new Map(
    [...instances.values()].map((one) => [one.metadata.uid, one] as const).filter(([uid]) => wanted.has(uid)),
  );
  return found
    .toSorted((a, b) => compareText(b.status?.ending?.at ?? '', a.status?.ending?.at ?? ''))
    .slice(0, MOST_DISPLACED)
    .map((one) => {
      const by = one.status?.ending?.by;
      return recordOf(one, by === undefined ? undefined : takers.get(by));
    });
}
