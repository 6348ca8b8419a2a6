import { describe, expect, test } from 'vitest';
import { desiredDisk } from '../../../src/controllers/gpu-instance/decide/pod/desired-disk.ts';
import { diskRepair } from '../../../src/controllers/gpu-instance/decide/pod/repair-patch.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { AlreadyExistsError, NotFoundError } from '../../../src/kube/errors.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { isDiskOf, isOrphan } from '../../../src/resources/pod/disk.ts';
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

type Labels = Record<string, string | null>;

const RETAINED: Labels = {
  'berth.dev/instance': null,
  'berth.dev/instance-uid': null,
  'berth.dev/disk-policy': null,
  'berth.dev/retained-from': 'one',
};

/** A disk as the API server has it: of an instance, with other labels on top. A label that is null is not there. */
function diskOf(instance: GpuInstance, labels: Labels = {}, uid = 'uid-disk') {
  const { metadata, spec } = desiredDisk(instance, 'fast', 10);
  const all = Object.entries({ ...metadata.labels, ...labels }).filter(([, value]) => value !== null);
  const own = { uid, resourceVersion: '7', labels: Object.fromEntries(all) as Record<string, string> };
  return { ...(spec && { spec }), metadata: { ...metadata, ...own } };
}

/** The instance as one of its name before it was. */
function earlier(instance: GpuInstance): GpuInstance {
  return { ...instance, metadata: { ...instance.metadata, uid: 'uid-before' } };
}

test.each(['Delete', 'Retain'] as const)(
  'a disk whose instance is not there is kept and told, whatever its label %s says, and once',
  async (diskPolicy) => {
    const world = controllerWorld(undefined, undefined, { takesChanges: true });
    world.disks.upsert(diskOf(gpuInstance('one', { diskPolicy })));
    const kept = { verb: 'patch', body: { metadata: { labels: { 'berth.dev/retained-from': 'one' } } } };
    expect(await diskWrites(world)).toMatchObject([kept]);
    expect(await diskWrites(world)).toHaveLength(1);
    const [disk] = world.disks.store.values();
    expect(disk && isOrphan(disk, () => false)).toBe(diskPolicy === 'Delete');
  },
);

test('the disk of an instance that only the API server shows is left alone', async () => {
  const world = controllerWorld();
  const get = world.deps.client.get.bind(world.deps.client);
  world.deps.client.get = (type, ref, options) =>
    type.kind === 'GPUInstance' ? Promise.resolve(gpuInstance('one') as never) : get(type, ref, options);
  world.disks.upsert(diskOf(gpuInstance('one')));
  expect(await diskWrites(world)).toEqual([]);
});

test.each(['Delete', 'Retain'] as const)(
  'an instance takes over the disk of its predecessor and sets %s',
  async (diskPolicy) => {
    const bare: Labels = { 'berth.dev/instance-uid': null, 'berth.dev/disk-policy': null };
    for (const labels of [{}, bare, RETAINED]) {
      const world = controllerWorld(undefined, undefined, { takesChanges: true });
      const instance = held(gpuInstance('one', { diskPolicy, powerState: 'Stopped' }));
      world.disks.upsert(diskOf(earlier(gpuInstance('one')), labels));
      world.instances.upsert(instance);
      expect(await diskWrites(world)).toMatchObject([{ verb: 'patch' }]);
      const [disk] = world.disks.store.values();
      expect(disk?.metadata.labels).toEqual(desiredDisk(instance, 'fast', 10).metadata.labels);
      expect(world.instances.store.get('default/one')?.status?.disk).toEqual({ name: 'one-disk', uid: 'uid-disk' });
      expect(await diskWrites(world)).toHaveLength(1);
    }
  },
);

test('a PersistentVolumeClaim that Berth never marked is nobody’s disk, whatever instance has its name', () => {
  const bare = { name: 'one-disk', namespace: 'default', uid: 'uid-disk' };
  expect(isDiskOf(KEPT, { metadata: bare })).toBe(false);
  expect(isDiskOf(KEPT, { metadata: { ...bare, labels: { 'berth.dev/instance': 'two' } } })).toBe(false);
  const controller = { apiVersion: 'v1', kind: 'StatefulSet', name: 'other', uid: 'other', controller: true };
  const labels = { 'berth.dev/instance': 'one' };
  expect(isDiskOf(KEPT, { metadata: { ...bare, labels, ownerReferences: [controller] } })).toBe(false);
  expect(isDiskOf(KEPT, { metadata: { ...bare, labels } })).toBe(true);
});

test('a disk that goes, or whose new instance goes, is not taken over', () => {
  const { metadata } = diskOf(earlier(KEPT));
  expect(isDiskOf(KEPT, { metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })).toBe(false);
  expect(isDiskOf(deletion(), { metadata })).toBe(false);
});

test('the record decides whose a disk is, not its labels', async () => {
  const disk = { name: 'one-disk', uid: 'uid-disk' };
  const { spec, metadata } = deletion();
  const changed: Labels[] = [RETAINED, { 'berth.dev/instance-uid': 'zzz' }, { 'berth.dev/disk-policy': 'Retain' }];
  for (const labels of changed) {
    const world = controllerWorld();
    world.instances.upsert({ metadata, spec, status: { disk } });
    world.disks.upsert(diskOf(gpuInstance('one'), labels));
    expect(await diskWrites(world)).toEqual([{ verb: 'delete', kind: DISK, name: 'one-disk', uid: 'uid-disk' }]);
  }
  const world = controllerWorld();
  world.instances.upsert({ metadata, spec, status: { disk } });
  world.disks.upsert(diskOf(earlier(gpuInstance('one')), {}, 'uid-of-another'));
  expect(await diskWrites(world)).toEqual([]);
});

test('what becomes of the disk is decided by the policy that the API server has', async () => {
  const world = controllerWorld();
  world.instances.upsert(deletion());
  world.disks.upsert(diskOf(gpuInstance('one')));
  const get = world.deps.client.get.bind(world.deps.client);
  const { spec, ...rest } = deletion();
  world.deps.client.get = (type, ref, options) =>
    type.kind === 'GPUInstance'
      ? Promise.resolve({ ...rest, spec: { ...spec, diskPolicy: 'Retain' } } as never)
      : get(type, ref, options);
  expect(await diskWrites(world)).toMatchObject([{ verb: 'patch' }]);
});

// The cache of instances may be behind that of the disks.
test('a disk that its instance has let go gets no marks again, however old the cache of the instances is', async () => {
  const letGo = diskOf(gpuInstance('one'), RETAINED);
  const status = { disk: { name: 'one-disk', uid: 'uid-disk' } };
  const stopped = held(gpuInstance('one', { powerState: 'Stopped', diskPolicy: 'Retain' }, status));
  for (const live of [undefined, earlier(stopped), { ...stopped, metadata: deletion().metadata }]) {
    const world = controllerWorld();
    world.instances.upsert(stopped);
    world.disks.upsert(letGo);
    const get = world.deps.client.get.bind(world.deps.client);
    const gone = new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });
    world.deps.client.get = (type, ref, options) => {
      if (type.kind !== 'GPUInstance') return get(type, ref, options);
      return live === undefined ? Promise.reject(gone) : Promise.resolve(live as never);
    };
    expect(await diskWrites(world)).toEqual([]);
  }
  const going = controllerWorld(undefined, undefined, { takesChanges: true });
  going.instances.upsert({ ...deletion(), spec: stopped.spec, status });
  going.disks.upsert(diskOf(gpuInstance('one')));
  expect(await diskWrites(going)).toHaveLength(1);
  expect(await diskWrites(going)).toHaveLength(1);
});

test.each<[string, Labels]>([
  ['the uid', { 'berth.dev/instance-uid': 'zzz' }],
  ['the name', { 'berth.dev/instance': 'zzz' }],
  ['the policy', { 'berth.dev/disk-policy': null }],
  ['every mark', { ...RETAINED, 'berth.dev/retained-from': null, 'app.kubernetes.io/managed-by': null }],
  ['all of it, with marks of somebody else', { ...RETAINED, 'berth.dev/retained-from': 'two', app: 'two' }],
])('marks that somebody changed come back by the record: %s', async (_what, labels) => {
  const world = controllerWorld(undefined, undefined, { takesChanges: true });
  const status = { disk: { name: 'one-disk', uid: 'uid-disk' } };
  world.instances.upsert(held(gpuInstance('one', { powerState: 'Stopped' }, status)));
  const disk = diskOf(gpuInstance('one'), labels);
  const owner = ownerOf(gpuInstance('two'));
  world.disks.upsert({ ...disk, metadata: { ...disk.metadata, ownerReferences: [owner] } });
  await diskWrites(world);
  const [after] = world.disks.store.values();
  expect(after?.metadata.labels).toMatchObject(desiredDisk(gpuInstance('one'), 'fast', 10).metadata.labels ?? {});
  expect(after?.metadata.labels).not.toHaveProperty(['berth.dev/retained-from']);
  expect(after?.metadata.ownerReferences).toEqual([]);
  expect(world.writes.filter(({ verb }) => verb === 'delete')).toEqual([]);
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

test('the finalizer deletes the disk that Berth made for the instance before the status could say so', async () => {
  const world = controllerWorld();
  world.instances.upsert(deletion());
  world.disks.upsert(desiredDisk(gpuInstance('one'), 'fast', 10));
  expect(await diskWrites(world)).toMatchObject([{ verb: 'delete', name: 'one-disk' }]);
});

const DEFAULT_CLASS = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const CLASSES = [{ metadata: { name: 'fast', annotations: DEFAULT_CLASS }, provisioner: 'any' }];

/** A world whose nodes have disks, and what it shows of instance `one`. */
function worldWithDisks() {
  const world = controllerWorld(undefined, undefined, { takesChanges: true, storageClasses: CLASSES });
  const one = () => world.instances.store.get('default/one');
  const condition = (type: string) => findCondition(one()?.status?.conditions, type);
  /** Writes a spec as the owner does. */
  const edit = (spec: Partial<GpuInstance['spec']>): void => {
    const before = one();
    if (before === undefined) throw new Error('There is no instance.');
    const generation = (before.metadata.generation ?? 0) + 1;
    const metadata = { ...before.metadata, generation, resourceVersion: String(1_000 + generation) };
    world.instances.upsert({ ...before, metadata, spec: { ...before.spec, ...spec } });
  };
  return { ...world, one, condition, edit };
}

/** As a backup brings it back: a new uid, with or without its status. */
function restored(diskPolicy: 'Delete' | 'Retain', status?: GpuInstance['status']): GpuInstance {
  const instance = held(gpuInstance('one', { diskPolicy }, status));
  return { ...instance, metadata: { ...instance.metadata, annotations: { 'berth.dev/disk': 'one-disk' } } };
}

const STATUS = { incarnation: 3, diskPersistent: true, diskGb: 10, disk: { name: 'one-disk', uid: 'uid-of-old' } };

describe.each(['Delete', 'Retain'] as const)('with diskPolicy %s', (diskPolicy) => {
  test.each([
    ['the disk first', undefined],
    ['the instance first', undefined],
    ['both at once', undefined],
    ['the disk first', STATUS],
    ['the instance first', STATUS],
    ['both at once', STATUS],
  ])('a disk from a backup is the disk of its instance again: %s, status %j', async (order, status) => {
    const world = worldWithDisks();
    const bring = {
      disk: () => world.disks.upsert(diskOf(earlier(gpuInstance('one', { diskPolicy })))),
      instance: () => world.instances.upsert(restored(diskPolicy, status)),
    };
    if (order === 'the instance first') {
      bring.instance();
      await world.reconcile('one');
      expect(world.condition('Ready')).toMatchObject({ reason: 'DiskLost' });
      expect(world.one()?.status?.claim).toBeUndefined();
      bring.disk();
    } else {
      bring.disk();
      if (order === 'the disk first') await world.reconcile('one');
      bring.instance();
    }
    await world.reconcile('one');
    expect(world.creations()).toEqual(['Pod']);
    expect(world.one()?.status?.claim).toBeDefined();
    expect(world.one()?.status?.disk).toEqual({ name: 'one-disk', uid: 'uid-disk' });
    const [disk, ...others] = world.disks.store.values();
    expect(others).toEqual([]);
    expect(disk?.metadata).toMatchObject(desiredDisk(restored(diskPolicy), 'fast', 10).metadata);
    expect(world.writes.filter(({ verb }) => verb === 'delete')).toEqual([]);
  });
});

test('an instance notes that it has a disk, where a backup finds it', async () => {
  const world = worldWithDisks();
  world.instances.upsert(held(gpuInstance('one')));
  await world.reconcile('one');
  expect(world.creations()).toEqual(['PersistentVolumeClaim', 'Pod']);
  await world.reconcile('one');
  world.deps.clock.now = () => Date.parse('2027-01-01T00:00:00Z');
  await world.reconcile('one');
  expect(world.one()?.status?.disk?.uid).toBe([...world.disks.store.values()][0]?.metadata.uid);
  await world.reconcile('one');
  expect(world.one()?.metadata.annotations).toEqual({ 'berth.dev/disk': 'one-disk' });
});

test('a disk that went behind the back of its instance is told, and replaced only when the owner asks', async () => {
  const world = worldWithDisks();
  const status = { ...STATUS, disk: { name: 'one-disk', uid: 'uid-disk' } };
  world.instances.upsert(held(gpuInstance('one', { powerState: 'Stopped' }, status)));
  await world.reconcile('one');
  expect(world.condition('Ready')).toMatchObject({
    reason: 'Stopped',
    message: expect.stringContaining('is not there'),
  });
  expect(world.condition('DiskReady')).toMatchObject({ status: 'False', reason: 'DiskLost' });
  world.edit({ powerState: 'Running' });
  await world.reconcile('one');
  expect(world.condition('Ready')).toMatchObject({
    reason: 'DiskLost',
    message: expect.stringContaining('A start that you ask for makes a new, empty disk.'),
  });
  await world.reconcile('one');
  expect(world.creations()).toEqual([]);
  world.edit({ startRequest: 'empty' });
  await world.reconcile('one');
  expect(world.creations()).toEqual(['PersistentVolumeClaim', 'Pod']);
});

test('a disk that is being deleted is not started on', async () => {
  const world = worldWithDisks();
  const disk = diskOf(gpuInstance('one'));
  const going = { ...disk, metadata: { ...disk.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  world.disks.upsert(going);
  world.instances.upsert(held(gpuInstance('one', {}, { ...STATUS, disk: { name: 'one-disk', uid: 'uid-disk' } })));
  await world.reconcile('one');
  expect(world.condition('Ready')?.reason).toBe('DiskLost');
  const next = worldWithDisks();
  next.disks.upsert(going);
  next.instances.upsert(held({ ...gpuInstance('one'), metadata: { ...gpuInstance('one').metadata, uid: 'uid-next' } }));
  await next.reconcile('one');
  expect(next.condition('Ready')?.reason).toBe('Pending');
  next.disks.remove(going);
  await next.reconcile('one');
  expect(next.creations()).toEqual(['PersistentVolumeClaim', 'Pod']);
});

test('a claim of somebody else is not mounted, and the message says how to give it', async () => {
  const world = worldWithDisks();
  world.disks.upsert({ metadata: { name: 'one-disk', namespace: 'default', uid: 'other', resourceVersion: '1' } });
  const create = world.deps.client.create.bind(world.deps.client);
  const taken = new AlreadyExistsError({ message: 'taken', status: 409, reason: 'AlreadyExists' });
  world.deps.client.create = (type, object) => (type.kind === DISK ? Promise.reject(taken) : create(type, object));
  world.instances.upsert(held(gpuInstance('one')));
  await world.reconcile('one');
  await world.reconcile('one');
  expect(world.condition('Ready')).toMatchObject({
    reason: 'NameConflict',
    message: expect.stringContaining('kubectl label pvc one-disk -n default berth.dev/retained-from=one'),
  });
  expect(await diskWrites(world)).toEqual([]);
});
