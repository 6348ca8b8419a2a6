import { expect, test } from 'vitest';
import { desiredDisk } from '../../../src/controllers/gpu-instance/decide/pod/desired-disk.ts';
import { diskRepair } from '../../../src/controllers/gpu-instance/decide/pod/repair-patch.ts';
import { ownerOf } from '../../../src/resources/pod/owner.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const KEPT = gpuInstance('one', { diskPolicy: 'Retain' });
const DISK = 'PersistentVolumeClaim';

/** What the controller writes to disks when it looks at instance `one`. */
async function diskWrites({ reconcile, writes }: ReturnType<typeof controllerWorld>) {
  await reconcile('one').catch(() => undefined);
  return writes.filter(({ kind }) => kind === DISK);
}

function deletion(name = 'one') {
  const { metadata, ...rest } = held(gpuInstance(name));
  return { ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
}

// Under foreground deletion Kubernetes deletes what an instance owns before the controller can keep it.
test('a disk has no owner, and says whose it is and what becomes of it', () => {
  const { metadata } = desiredDisk(KEPT, 'fast', 10);
  expect(metadata.ownerReferences).toBeUndefined();
  expect(metadata.labels).toMatchObject({
    'berth.dev/instance': 'one',
    'berth.dev/instance-uid': 'uid-one',
    'berth.dev/disk-policy': 'Retain',
  });
  expect(diskRepair(KEPT, desiredDisk(KEPT, 'fast', 10))).toBeUndefined();
});

test('the disk of an earlier version loses its owner, keeps others, and learns its policy', () => {
  const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: 'other' };
  const disk = desiredDisk(KEPT, 'fast', 10);
  const { 'berth.dev/disk-policy': _policy, ...labels } = disk.metadata.labels ?? {};
  const old = { ...disk, metadata: { ...disk.metadata, labels, ownerReferences: [other, ownerOf(KEPT)] } };
  expect(diskRepair(KEPT, old)).toMatchObject({
    metadata: { ownerReferences: [other], labels: { 'berth.dev/disk-policy': 'Retain' } },
  });
});

test('a changed policy is written to the disk', () => {
  const disk = desiredDisk(KEPT, 'fast', 10);
  expect(diskRepair(gpuInstance('one'), disk)).toMatchObject({
    metadata: { labels: { 'berth.dev/disk-policy': 'Delete' } },
  });
});

test.each([
  ['Delete', { verb: 'delete', name: 'one-disk' }],
  ['Retain', { verb: 'patch', body: { metadata: { labels: { 'berth.dev/retained-from': 'one' } } } }],
] as const)('a disk whose instance is gone is released by its policy %s', async (diskPolicy, write) => {
  const world = controllerWorld();
  world.disks.upsert(desiredDisk(gpuInstance('one', { diskPolicy }), 'fast', 10));
  expect(await diskWrites(world)).toMatchObject([write]);
});

test('the disk of a predecessor of the same name is released too', async () => {
  const world = controllerWorld();
  const { metadata, ...rest } = gpuInstance('one');
  world.disks.upsert(desiredDisk({ ...rest, metadata: { ...metadata, uid: 'uid-before' } }, 'fast', 10));
  world.instances.upsert(gpuInstance('one'));
  expect(await diskWrites(world)).toMatchObject([{ verb: 'delete', name: 'one-disk' }]);
});

test('a disk is left alone while its instance is there, once it was kept, and when it belongs to no instance', async () => {
  const disk = desiredDisk(gpuInstance('one'), 'fast', 10);
  const { 'berth.dev/instance-uid': _uid, 'berth.dev/disk-policy': _policy, ...labels } = disk.metadata.labels ?? {};
  for (const metadata of [
    { ...disk.metadata, labels },
    { name: 'one-disk', namespace: 'default' },
  ]) {
    const world = controllerWorld();
    world.disks.upsert({ ...disk, metadata });
    expect(await diskWrites(world)).toEqual([]);
  }
  const world = controllerWorld();
  world.instances.upsert(held(gpuInstance('one', { powerState: 'Stopped' })));
  world.disks.upsert(disk);
  expect(await diskWrites(world)).toEqual([]);
});

test('the finalizer deletes the disk by its label alone', async () => {
  const world = controllerWorld();
  world.instances.upsert(deletion());
  world.disks.upsert(desiredDisk(gpuInstance('one'), 'fast', 10));
  expect(await diskWrites(world)).toMatchObject([{ verb: 'delete', name: 'one-disk' }]);
});
