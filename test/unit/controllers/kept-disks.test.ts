import { describe, expect, it, test } from 'vitest';
import { resolveCeilings } from '../../../src/controllers/tenants/tenant-ceilings.ts';
import { desiredDisk } from '../../../src/controllers/gpu-instance/decide/pod/desired-disk.ts';
import { settle } from '../../support/fake-clock.ts';
import { held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuNode } from '../../support/inventory-world.ts';
import { goldPolicy, policyWorld } from '../../support/policy-world.ts';

const DEFAULT_CLASS = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const CLASSES = [{ metadata: { name: 'fast', annotations: DEFAULT_CLASS }, provisioner: 'any' }];

type World = ReturnType<typeof worldOf>;

type More = NonNullable<Parameters<typeof policyWorld>[3]>;

/** A world with this ceiling, whose nodes have persistent disks. */
function worldOf(policy: object, more: More = {}, beforePatch?: (path: string) => Promise<void>) {
  return policyWorld(policy, undefined, beforePatch, { takesChanges: true, storageClasses: CLASSES, ...more });
}

/** A disk as it is kept when the instance of this name was deleted. */
function keptDisk(name: string, gb: number, namespace = 'default') {
  const { metadata, spec } = desiredDisk(gpuInstance(name), 'fast', gb);
  const labels = { 'berth.dev/retained-from': name };
  return {
    ...(spec && { spec }),
    metadata: { ...metadata, namespace, uid: `uid-${name}-disk`, resourceVersion: '7', labels },
  };
}

/** What the owner sees after the deletion of an instance whose disk is to be kept. */
async function remove(world: World, name: string): Promise<void> {
  const instance = world.instance(name);
  const { status: { claim: _claim, ...status } = {} } = instance;
  const metadata = { ...instance.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '900' };
  for (const pod of world.pods.store.values()) world.pods.remove(pod);
  world.instances.upsert({ ...instance, metadata, status });
  await world.reconcile(name);
  world.instances.remove({ ...instance, metadata: { ...metadata, resourceVersion: '990' } });
}

const RETAINED = { diskGb: 40, diskPolicy: 'Retain' } as const;

describe('a tenant that rents with a large disk, deletes and keeps it, and repeats that', () => {
  it('comes to the end of what it may keep', async () => {
    const world = worldOf({ diskGb: 100 });
    const refused: string[] = [];
    for (const name of ['one', 'two', 'three', 'four']) {
      world.create(name, RETAINED);
      await world.reconcile(name);
      if (world.ready(name)?.reason === 'TenantLimit') refused.push(name);
      await remove(world, name);
    }
    expect([...world.disks.store.values()].map(({ metadata }) => metadata.name)).toEqual(['one-disk', 'two-disk']);
    expect(refused).toEqual(['three', 'four']);
  });

  it('is told which limit it is, what holds the room, and how to give it back', async () => {
    const world = worldOf({ diskGb: 100 });
    world.disks.upsert(keptDisk('old', 30));
    world.disks.upsert(keptDisk('older', 50));
    world.create('new', { diskGb: 40 });
    await world.reconcile('new');
    expect(world.ready('new')).toMatchObject({
      reason: 'TenantLimit',
      message:
        'The ceiling diskGb allows this tenant 100 GB of disks. Its disks have 80 GB, and this instance needs 40 GB. 80 GB of them are kept from 2 deleted instances: older-disk (50 GB), old-disk (30 GB). Delete those that nobody needs: kubectl delete pvc NAME -n default, or ask the operator to. Or ask for a smaller disk. The operator can change diskGb in TenantPolicy gold.',
    });
  });
});

describe('the ceiling over disks', () => {
  it('does not hold where no policy sets it', async () => {
    const world = worldOf({});
    world.disks.upsert(keptDisk('old', 16_384));
    world.create('new', { diskGb: 500 });
    await world.reconcile('new');
    expect(world.claimed()).toEqual(['new']);
  });

  it('counts disks that live on nodes neither as used nor as wanted', async () => {
    const world = worldOf({ diskGb: 5 }, { storageClasses: [] });
    for (const name of ['one', 'two']) {
      world.create(name, { diskGb: 10 });
      await world.reconcile(name);
    }
    expect(world.claimed()).toEqual(['one', 'two']);
  });

  it('counts what Berth made, whatever becomes of the labels, and nothing of others', async () => {
    const [own, foreign, elsewhere] = [
      keptDisk('own', 60),
      keptDisk('foreign', 900),
      keptDisk('far', 900, 'elsewhere'),
    ];
    const { annotations: _annotations, labels: _labels, ...bare } = foreign.metadata;
    const world = worldOf({ diskGb: 100 });
    world.disks.upsert({ ...foreign, metadata: bare });
    world.disks.upsert(elsewhere);
    const onNode = { claim: claimOn('n'), incarnation: 1, diskPersistent: false, diskGb: 500 };
    world.instances.upsert(held(gpuInstance('on-node', {}, onNode)));
    world.create('first', { diskGb: 40 });
    await world.reconcile('first');
    expect(world.claimed()).toEqual(['on-node', 'first']);
    world.disks.upsert({ ...own, metadata: { ...own.metadata, labels: {} } });
    world.create('second', { diskGb: 1 });
    await world.reconcile('second');
    expect(world.claimed()).toEqual(['on-node', 'first']);
    expect(world.ready('second')?.message).toContain('Its disks have 100 GB');
    expect(world.ready('second')?.message).toContain(
      '60 GB of them are kept from a deleted instance: own-disk (60 GB).',
    );
  });

  it('counts a disk until it is really gone, and then wakes who waits for it', async () => {
    const world = worldOf({ diskGb: 100 });
    const disk = keptDisk('old', 80);
    world.disks.upsert(disk);
    world.create('new', { diskGb: 40 });
    world.create('larger', { diskGb: 101 });
    for (const name of ['new', 'larger']) await world.reconcile(name);
    const metadata = { ...disk.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', resourceVersion: '8' };
    world.disks.upsert({ ...disk, metadata });
    await world.reconcile('new');
    expect(world.claimed()).toEqual([]);
    expect(world.ready('new')?.message).toContain('Its disks have 80 GB');
    expect(world.woken).toEqual([]);
    world.disks.remove(disk);
    expect(world.woken).toContain('default/new');
    expect(world.woken).not.toContain('default/larger');
    await world.reconcile('new');
    expect(world.claimed()).toEqual(['new']);
  });

  it.each([
    ['of its name', {}],
    ['of its name that a backup brought back with it', { 'berth.dev/disk': 'old-disk' }],
  ])('lets an instance take a disk back %s, also beyond it', async (_which, annotations) => {
    const world = worldOf({ diskGb: 50 });
    world.disks.upsert(keptDisk('old', 80));
    world.create('old', { diskGb: 80 }, annotations);
    await world.reconcile('old');
    expect(world.claimed()).toEqual(['old']);
    expect(world.creations()).toEqual(['Pod']);
  });

  it('that was lowered keeps no instance from its own disk', async () => {
    const world = worldOf({ diskGb: 100 });
    world.create('one', { diskGb: 80 });
    await world.reconcile('one');
    world.policies.upsert(goldPolicy({ diskGb: 10 }, '3'));
    const [disk] = world.disks.store.values();
    const record = { name: 'one-disk', uid: disk?.metadata.uid ?? '' };
    const status = { incarnation: 1, diskPersistent: true, diskGb: 80, disk: record };
    const off = held(gpuInstance('one', { diskGb: 80 }, status));
    for (const pod of world.pods.store.values()) world.pods.remove(pod);
    world.instances.upsert({ ...off, metadata: { ...off.metadata, resourceVersion: '500' } });
    await world.reconcile('one');
    expect(world.claimed()).toEqual(['one']);
  });

  it('is not passed by two instances at once, while the first claim is still being written', async () => {
    const writing = Promise.withResolvers<void>();
    const world = worldOf({ diskGb: 100 }, {}, (path) => (path === '/status' ? writing.promise : Promise.resolve()));
    for (const name of ['a', 'b']) world.create(name, { diskGb: 60 });
    const runs = [world.reconcile('a'), world.reconcile('b')];
    await settle();
    writing.resolve();
    await Promise.allSettled(runs);
    expect(world.claimed()).toEqual(['a']);
    expect(world.ready('b')?.message).toContain(
      'Its disks have 60 GB, and this instance needs 60 GB. Delete an instance',
    );
  });

  it('holds for what the leader before granted and the cache does not show yet', async () => {
    const world = worldOf({ diskGb: 100 });
    const status = { claim: claimOn('n'), incarnation: 1, diskPersistent: true, diskGb: 60 };
    const granted = held(gpuInstance('old', {}, status));
    world.unseen.push({ ...granted, metadata: { ...granted.metadata, resourceVersion: '900' } });
    world.create('new', { diskGb: 60 });
    await world.reconcile('new');
    expect(world.claimed()).toEqual([]);
  });

  it('ends nobody for a start that it refuses, and keeps the room of one that others end for', async () => {
    const node = gpuNode('m', { labels: { 'nvidia.com/gpu.count': '1' }, allocatable: { 'nvidia.com/gpu': '1' } });
    const world = worldOf({ diskGb: 100 }, { nodes: [gpuNode('n'), node] });
    const one = held(gpuInstance('v', { type: 'Interruptible' }, { claim: claimOn('n'), incarnation: 1 }));
    const victim = { ...one, metadata: { ...one.metadata, namespace: 'other' } };
    world.instances.upsert(victim);
    const endedFor = () => world.instances.store.get('other/v')?.status?.ending?.reason;
    world.create('huge', { gpu: { count: 8 }, diskGb: 101 });
    await world.reconcile('huge');
    expect([world.ready('huge')?.reason, endedFor()]).toEqual(['TenantLimit', undefined]);
    world.create('big', { gpu: { count: 8 }, diskGb: 60 });
    await world.reconcile('big');
    expect(world.ready('big')?.reason).toBe('PlaceComing');
    world.create('small', { gpu: { count: 1 }, diskGb: 60 });
    await world.reconcile('small');
    expect([world.ready('small')?.reason, world.claimed()]).toEqual(['TenantLimit', ['v']]);
    world.instances.remove(victim);
    await world.reconcile('big');
    expect(world.instance('big').status?.claim).toMatchObject({ node: 'n', gpuCount: 8 });
  });
});

test('of several ceilings over disks the smallest holds, and none where none is set', () => {
  const ceilings = (...specs: object[]) =>
    resolveCeilings(
      {},
      specs.map((spec, index) => {
        const policy = goldPolicy(spec);
        return { ...policy, metadata: { ...policy.metadata, name: `p${index}` } };
      }),
    ).ceilings.diskGb;
  expect(ceilings()).toBeUndefined();
  expect(ceilings({}, {})).toBeUndefined();
  expect(ceilings({ diskGb: 5 }, {}, { diskGb: 3 })).toBe(3);
});
