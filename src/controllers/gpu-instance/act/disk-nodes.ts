import { ForbiddenError, NotFoundError } from '../../../kube/errors.ts';
import { type Node, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type PersistentVolume } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/gpu-instance.ts';
import type { Run } from './run.ts';
import { diskNameOf } from '../decide/names.ts';

type Affinity = NonNullable<NonNullable<PersistentVolume['spec']>['nodeAffinity']>;
type Term = NonNullable<Affinity['required']>['nodeSelectorTerms'][number];

function meets(labels: Readonly<Record<string, string>>, { matchExpressions = [] }: Term): boolean {
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === 'In') return value !== undefined && values.includes(value);
    if (operator === 'NotIn') return value === undefined || !values.includes(value);
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    // Gt and Lt: no provisioner writes them. The scheduler decides.
    return true;
  });
}

/** Names of the nodes that a volume can be used on; undefined when that is all of them. */
export function nodesOfVolume(volume: PersistentVolume, nodes: Iterable<Node>): Set<string> | undefined {
  const terms = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
  if (terms === undefined) return undefined;
  const fitting = [...nodes].filter(({ metadata }) => terms.some((term) => meets(metadata.labels ?? {}, term)));
  return new Set(fitting.map(({ metadata }) => metadata.name));
}

/**
 * The nodes that the disk of an earlier start is tied to, where its storage class ties it to some. Read live and only
 * for a start after the first one: before, there is no volume.
 */
export async function nodesOfDisk({ deps, context }: Run, instance: GpuInstance): Promise<Set<string> | undefined> {
  const { incarnation = 0, diskPersistent } = instance.status ?? {};
  if (incarnation === 0 || diskPersistent !== true) return undefined;
  const { signal } = context;
  try {
    const ref = { namespace: instance.metadata.namespace, name: diskNameOf(instance) };
    const disk = await deps.client.get(PERSISTENT_VOLUME_CLAIMS, ref, { signal });
    if (disk.spec?.volumeName === undefined) return undefined;
    const volume = await deps.client.get(PERSISTENT_VOLUMES, { name: disk.spec.volumeName }, { signal });
    return nodesOfVolume(volume, deps.stores.nodes.values());
  } catch (error) {
    if (!(error instanceof NotFoundError) && !(error instanceof ForbiddenError)) throw error;
    return undefined;
  }
}
