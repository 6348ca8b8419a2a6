import { describe, expect, test } from 'vitest';
import { nodesOfVolume } from '../../../src/controllers/gpu-instance/decide/volume-nodes.ts';
import { instanceSources } from '../../../src/controllers/gpu-instance/sources.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import type { Node, PersistentVolume, ResourceType } from '../../../src/kube/types.ts';
import { cacheOf, controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuNode } from '../../support/inventory-world.ts';

const NODES = ['a', 'b', 'c'].map((name) =>
  gpuNode(name, { labels: { 'kubernetes.io/hostname': name, zone: `z-${name}` } }),
);

function volume(...terms: { key: string; operator: string; values?: string[] }[][]): PersistentVolume {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }));
  return { metadata: { name: 'v' }, spec: { nodeAffinity: { required: { nodeSelectorTerms } } } };
}

test('a volume without affinity can be used on every node', () => {
  expect(nodesOfVolume({ metadata: { name: 'v' }, spec: {} }, NODES)).toBeUndefined();
});

test('a local volume can be used on its node alone', () => {
  const local = volume([{ key: 'kubernetes.io/hostname', operator: 'In', values: ['b'] }]);
  expect(nodesOfVolume(local, NODES)).toEqual(new Set(['b']));
});

test('one term must match, with all its expressions', () => {
  const tied = volume(
    [
      { key: 'zone', operator: 'In', values: ['z-a', 'z-b'] },
      { key: 'kubernetes.io/hostname', operator: 'NotIn', values: ['a'] },
    ],
    [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['c'] }],
  );
  expect(nodesOfVolume(tied, NODES)).toEqual(new Set(['b', 'c']));
});

describe('an instance whose disk no node can mount any more', () => {
  const TIED = volume([{ key: 'kubernetes.io/hostname', operator: 'In', values: ['gone'] }]);
  const ending = { reason: 'Stopped', message: '', at: new Date(0).toISOString(), generation: 1 };
  const STOPPED = { incarnation: 1, diskPersistent: true, diskGb: 10, podName: 'one-1', ending };

  /** A world in which the disk of instance `one` is tied to a node that is not there. */
  function worldOf(spec: Parameters<typeof gpuInstance>[1] = {}) {
    const world = controllerWorld();
    const disk = { metadata: { name: 'one-disk' }, spec: { volumeName: 'v' } };
    const found: Record<string, object> = { PersistentVolume: TIED, PersistentVolumeClaim: disk };
    world.deps.client.get = ({ kind }: ResourceType) => Promise.resolve(found[kind] as never);
    world.instances.upsert(held(gpuInstance('one', spec, STOPPED)));
    const ready = () => findCondition(world.instances.store.get('default/one')?.status?.conditions, 'Ready');
    return { ...world, ready };
  }

  test('says so with a reason of its own, and holds up no other', async () => {
    const world = worldOf();
    await world.reconcile('one');
    expect(world.ready()).toMatchObject({
      reason: 'DiskNodeGone',
      message: expect.stringContaining('The operator can bring such a node back.'),
    });
    expect(world.line.size).toBe(0);
  });

  test('fails where it may not wait', async () => {
    const world = worldOf({ onNoCapacity: 'Fail' });
    await world.reconcile('one');
    expect(world.ready()?.reason).toBe('NoCapacity');
  });

  test('is looked at again when a node comes or gets other labels, and not at a heartbeat', async () => {
    const world = worldOf();
    await world.reconcile('one');
    const nodes = cacheOf([gpuNode('n')]);
    const source = instanceSources({ ...world.deps, stores: { ...world.deps.stores, nodes: nodes.store } });
    const keys: string[] = [];
    for (const one of source) one.start((key) => keys.push(key));
    keys.length = 0;
    const heard = (node: Node): string[] => {
      nodes.upsert({ ...node, metadata: { ...node.metadata, resourceVersion: String(Math.random()) } });
      return keys.splice(0);
    };
    expect(heard(gpuNode('n'))).toEqual([]);
    expect(heard(gpuNode('n', { labels: { zone: 'b' } }))).toEqual(['default/one']);
    expect(heard(gpuNode('gone'))).toEqual(['default/one']);
  });
});

describe('an instance whose disk is tied to a zone, and that waits for GPUs there', () => {
  const IN_ZONE = volume([{ key: 'zone', operator: 'In', values: ['z'] }]);

  /** All GPUs of the one node in the zone are taken; `keys` are those that are looked at again. */
  async function worldOf() {
    const world = controllerWorld(undefined, undefined, { nodes: [gpuNode('full', { labels: { zone: 'z' } })] });
    const disk = { metadata: { name: 'one-disk' }, spec: { volumeName: 'v' } };
    const found: Record<string, object> = { PersistentVolume: IN_ZONE, PersistentVolumeClaim: disk };
    const { client } = world.deps;
    const get = client.get.bind(client);
    client.get = (type, ref, options) =>
      found[type.kind] === undefined ? get(type, ref, options) : Promise.resolve(found[type.kind] as never);
    world.instances.upsert(held(gpuInstance('owner', {}, { claim: claimOn('full', { gpuCount: 8 }), incarnation: 1 })));
    const status = { incarnation: 1, diskPersistent: true, diskGb: 10, podName: 'one-1' };
    world.instances.upsert(held(gpuInstance('one', {}, status)));
    const keys: string[] = [];
    const stops = instanceSources(world.deps).map((source) => source.start((key) => keys.push(key)));
    await world.reconcile('one');
    await world.clock.advance(1_000);
    const stop = () => stops.forEach((end) => end());
    const one = () => world.instances.store.get('default/one');
    return { ...world, keys, stop, one };
  }

  const coming = (name: string, labels: Record<string, string>): Node => {
    const node = gpuNode(name, { labels });
    return { ...node, metadata: { ...node.metadata, resourceVersion: String(Math.random()) } };
  };

  test('starts on a node that comes to the zone', async () => {
    const { nodes, keys, reconcile, one, clock, stop } = await worldOf();
    expect(findCondition(one()?.status?.conditions, 'Ready')?.reason).toBe('WaitingForCapacity');
    keys.length = 0;
    nodes.upsert(coming('new', { zone: 'z' }));
    await clock.advance(1_000);
    expect(keys).toContain('default/one');
    await reconcile('one');
    expect(one()?.status?.claim?.node).toBe('new');
    stop();
  });

  test('starts on a node that gets the label of the zone', async () => {
    const { nodes, keys, reconcile, one, clock, stop } = await worldOf();
    nodes.upsert(coming('new', {}));
    await clock.advance(1_000);
    await reconcile('one');
    expect(one()?.status?.claim).toBeUndefined();
    keys.length = 0;
    nodes.upsert(coming('new', { zone: 'z' }));
    await clock.advance(1_000);
    expect(keys).toContain('default/one');
    stop();
  });

  test('is not looked at for a node once it has its place', async () => {
    const { nodes, keys, reconcile, clock, stop } = await worldOf();
    nodes.upsert(coming('new', { zone: 'z' }));
    await clock.advance(1_000);
    await reconcile('one');
    await clock.advance(1_000);
    keys.length = 0;
    nodes.upsert(coming('other', { zone: 'z' }));
    await clock.advance(1_000);
    expect(keys).toEqual([]);
    stop();
  });
});
