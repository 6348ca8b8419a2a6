import { describe, expect, test } from 'vitest';
import { pathOf } from '../../src/kube/client/client.ts';
import { NotFoundError } from '../../src/kube/errors.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim, PODS } from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../support/wait-for.ts';
import { createWorld, type World } from './support/world.ts';

const NAME = 'one';

function disk(world: World): Promise<PersistentVolumeClaim | undefined> {
  const ref = { namespace: world.namespace, name: `${NAME}-disk` };
  return world.client.get(PERSISTENT_VOLUME_CLAIMS, ref).catch((error: unknown) => {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  });
}

/** How far the instance is when it is deleted. */
const STAGES: Record<string, (world: World) => Promise<unknown>> = {
  'when the disk was just made': (world) => waitFor('the disk', () => disk(world)),
  'while it runs': (world) => world.reached(NAME, 'Running'),
  'when it is stopped': async (world) => {
    await world.reached(NAME, 'Running');
    await world.patch(NAME, { spec: { powerState: 'Stopped' } });
    await world.reached(NAME, 'Stopped');
  },
};

async function deleteWith(world: World, propagationPolicy: string): Promise<void> {
  const path = pathOf(GPU_INSTANCES, { namespace: world.namespace, name: NAME });
  await world.client.raw('DELETE', path, { propagationPolicy });
  await world.gone(NAME, 60_000);
}

const CASES = ['Foreground', 'Background', 'Orphan'].flatMap((cascade) =>
  Object.keys(STAGES).map((stage) => [cascade, stage] as const),
);

// `kubectl delete --cascade=foreground` is Argo CD's default.
describe.each(CASES)('%s deletion %s', (cascade, stage) => {
  test.each(['Retain', 'Delete'] as const)('the disk is dealt with as diskPolicy %s says', async (diskPolicy) => {
    await using world = await createWorld({ nodes: 1, disks: true });
    await world.replica();
    await world.create(NAME, { diskPolicy });
    await STAGES[stage]?.(world);
    const before = await disk(world);
    expect(before).toBeDefined();
    await deleteWith(world, cascade);
    await waitFor('the pod to go', async () => (await world.client.list(PODS, world)).items.length === 0, 60_000);
    if (diskPolicy === 'Delete') {
      await waitFor('the disk to go', async () => (await disk(world)) === undefined);
      return;
    }
    const after = await disk(world);
    expect(after?.metadata).toMatchObject({ uid: before?.metadata.uid, labels: { 'berth.dev/retained-from': NAME } });
    expect(after?.metadata.deletionTimestamp).toBeUndefined();
    expect(after?.metadata.labels?.['berth.dev/instance-uid']).toBeUndefined();
  });
});

test.each(['Retain', 'Delete'] as const)(
  'an instance that loses its finalizer leaves its disk, whatever %s says',
  async (policy) => {
    await using world = await createWorld({ nodes: 1, disks: true });
    const replica = await world.replica();
    await world.create(NAME, { diskPolicy: policy });
    await world.reached(NAME, 'Running');
    await replica.stop();
    await world.remove(NAME);
    await world.patch(NAME, { metadata: { finalizers: [] } });
    await world.gone(NAME);
    await world.replica();
    const kept = async () => (await disk(world))?.metadata.labels?.['berth.dev/retained-from'] === NAME;
    await waitFor('the disk to be kept', kept);
  },
);
