import { ForbiddenError, NotFoundError } from '../../../kube/errors.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { nodesOfVolume } from '../decide/volume-nodes.ts';
import type { Run } from './run.ts';
import { diskNameOf } from '../decide/names.ts';

/** The nodes that the disk can be used on; undefined for all. Before the first start there is no volume. */
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
