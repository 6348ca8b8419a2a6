import { describe, expect, test } from 'vitest';
import { desiredDisk } from '../../../src/controllers/gpu-instance/decide/pod/desired-disk.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuPool } from '../../support/inventory-world.ts';

const DEFAULT_CLASS = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const CLASSES = [{ metadata: { name: 'fast', annotations: DEFAULT_CLASS }, provisioner: 'any' }];
const MOST_GB = 100;

/** An instance with a disk of so many GB, in a fleet whose offers have 100 GB. */
async function start(gb: number, spec: Partial<GpuInstanceSpec>, status: GpuInstanceStatus): Promise<GpuInstance> {
  const world = controllerWorld(undefined, undefined, {
    pools: [gpuPool('default', { disk: { maxGb: MOST_GB } })],
    storageClasses: CLASSES,
    takesChanges: true,
  });
  const instance = gpuInstance('one', spec, status);
  const { metadata, spec: claim } = desiredDisk(instance, 'fast', gb);
  const disk = { metadata: { ...metadata, uid: 'disk', resourceVersion: '7' }, ...(claim && { spec: claim }) };
  world.disks.upsert(disk);
  world.instances.upsert(held(instance));
  await world.reconcile('one');
  return world.instances.store.get('default/one') ?? expect.unreachable();
}

const after = (reason: string, gb: number): GpuInstanceStatus => ({
  incarnation: 1,
  diskPersistent: true,
  diskGb: gb,
  disk: { name: 'one-disk', uid: 'disk' },
  ending: { reason, message: 'It ended.', at: new Date(0).toISOString(), generation: 1 },
});

describe('a disk that is there', () => {
  test.each(['Preempted', 'Stopped'])('starts again although offers have less by now: %s', async (reason) => {
    for (const onNoCapacity of ['Queue', 'Fail'] as const) {
      const { status } = await start(500, { diskGb: 500, onNoCapacity }, after(reason, 500));
      expect(status?.claim?.node).toBe('n');
      expect(status?.diskGb).toBe(500);
    }
  });

  test('is used although the client saw an offer with more, as after a restore', async () => {
    const { status } = await start(500, { diskGb: 500, offerDiskSpace: 1000 }, {});
    expect(status?.claim?.node).toBe('n');
  });

  test('is as large as it is, whatever its owner writes later', async () => {
    const { status } = await start(10, { diskGb: 500 }, after('Stopped', 10));
    expect(status).toMatchObject({ claim: { node: 'n' }, diskGb: 10 });
    // The one of an earlier instance of this name, which was kept.
    const taken = await start(50, {}, {});
    expect(taken.status).toMatchObject({ claim: { node: 'n' }, diskGb: 50 });
  });

  test('says nothing for an instance that still is to have one', async () => {
    const world = controllerWorld(undefined, undefined, {
      pools: [gpuPool('default', { disk: { maxGb: MOST_GB } })],
      storageClasses: CLASSES,
    });
    world.instances.upsert(held(gpuInstance('one', { diskGb: 500 })));
    await world.reconcile('one');
    const seen = world.instances.store.get('default/one');
    expect(seen && instanceState(seen).reason).toBe('DiskTooLarge');
  });
});

describe('a disk that comes back, in a full fleet', () => {
  const FAIL = { gpu: { count: 8 }, onNoCapacity: 'Fail' } as const;
  const ANNOTATIONS = { 'berth.dev/disk': 'one-disk' };

  /** An instance without its disk, and what becomes of it when the disk comes back although no place is free. */
  async function comesBack(status: GpuInstanceStatus) {
    const world = controllerWorld(undefined, undefined, { storageClasses: CLASSES, takesChanges: true });
    const owner = held(gpuInstance('owner', { gpu: { count: 8 } }, { claim: claimOn('n', { gpuCount: 8 }) }));
    world.instances.upsert(owner);
    const one = gpuInstance('one', FAIL, status);
    world.instances.upsert(held({ ...one, metadata: { ...one.metadata, annotations: ANNOTATIONS } }));
    const seen = (): GpuInstance => world.instances.store.get('default/one') ?? expect.unreachable();
    const states: string[] = [];
    const look = async (): Promise<void> => {
      await world.reconcile('one');
      states.push(instanceState(seen()).reason);
    };
    await look();
    const { metadata, spec } = desiredDisk(one, 'fast', 10);
    world.disks.upsert({ metadata: { ...metadata, uid: 'disk', resourceVersion: '7' }, ...(spec && { spec }) });
    await look();
    await look();
    expect(world.line.failFast()).toEqual([]);
    world.instances.remove(owner);
    await world.reconcile('one');
    return { states, status: seen().status };
  }

  test.each<[string, GpuInstanceStatus]>([
    ['of an instance that was taken away', after('PodDeleted', 10)],
    ['of an instance that a backup brought back before', {}],
  ])('starts its instance once a place is free, as nobody asked for that start: %s', async (_whose, status) => {
    const found = await comesBack(status);
    expect(found.states).toEqual(['DiskLost', 'WaitingForCapacity', 'WaitingForCapacity']);
    expect(found.status?.claim?.node).toBe('n');
  });
});
