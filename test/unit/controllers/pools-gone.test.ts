import { describe, expect, test } from 'vitest';
import { templateHash } from '../../../src/resources/instance-template.ts';
import type { GpuInstanceStatus, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { startHash } from '../../../src/resources/instances/instance-state.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuNode, gpuPool } from '../../support/inventory-world.ts';

// What waits for a place when its GPUPool goes, as while an operator writes it anew or a backup brings it back, waits on.

const AT = '2026-01-01T00:00:00Z';
const STORAGE = [
  {
    metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
    provisioner: 'example.com/disks',
  },
];
const SAFE = gpuPool('safe', { runtimeClassName: 'kata', nodeSelector: { safe: 'yes' } });
const OTHER = gpuPool('other', { nodeSelector: { safe: 'no' }, disk: { maxGb: 100 } });

function labelled(name: string, safe: string) {
  const node = gpuNode(name);
  return { ...node, metadata: { ...node.metadata, labels: { ...node.metadata.labels, safe } } };
}

const WISHES: [string, Partial<GpuInstanceSpec>][] = [
  ['GPUs', { gpu: { count: 8 } }],
  ['a disk that no other pool has', { gpu: { count: 8 }, diskGb: 500 }],
  ['a RuntimeClass', { gpu: { count: 8 }, runtimeClassName: 'kata' }],
];

/** One node of a pool, taken by another instance, and perhaps a node of another pool. */
function world(isAlone: boolean) {
  const nodes = [labelled('n', 'yes'), ...(isAlone ? [] : [labelled('o', 'no')])];
  const pools = [SAFE, ...(isAlone ? [] : [OTHER])];
  const made = controllerWorld(undefined, undefined, { nodes, pools, storageClasses: STORAGE });
  const owners = nodes.map(({ metadata: { name } }, index) => {
    const claim = claimOn(name, { gpuCount: 8, pool: index === 0 ? 'safe' : 'other' });
    return held(gpuInstance(`owner-${name}`, { gpu: { count: 8 } }, { claim }));
  });
  for (const owner of owners) made.instances.upsert(owner);
  return {
    ...made,
    add: (spec: Partial<GpuInstanceSpec>, status?: GpuInstanceStatus) =>
      made.instances.upsert(held(gpuInstance('one', spec, status))),
    status: () => made.instances.store.get('default/one')?.status,
    free: () => made.instances.remove(owners[0] ?? held(gpuInstance('none'))),
  };
}

describe.each([true, false])('when the pool is the only one: %s', (isAlone) => {
  test.each(WISHES)('what waits in line for %s waits on, and starts when the pool is back', async (_what, wish) => {
    const { add, pools, reconcile, status, free } = world(isAlone);
    add(wish);
    await reconcile('one');
    expect(status()?.waitingSince).toBeDefined();
    pools.remove(SAFE);
    await reconcile('one');
    expect(status()?.ending).toBeUndefined();
    free();
    pools.upsert(SAFE);
    await reconcile('one');
    expect(status()?.claim).toMatchObject({ node: 'n' });
  });

  test.each(WISHES)('what was preempted and asks for %s is owed its start', async (_what, wish) => {
    const { add, pools, reconcile, status, free } = world(isAlone);
    const { spec } = gpuInstance('one', { ...wish, onNoCapacity: 'Fail', type: 'Interruptible' });
    const ending = { reason: 'Preempted', message: 'It ended', at: AT, generation: 1, startHash: startHash(spec) };
    add(spec, { incarnation: 1, ending });
    pools.remove(SAFE);
    await reconcile('one');
    expect(status()?.ending?.reason).toBe('Preempted');
    free();
    pools.upsert(SAFE);
    await reconcile('one');
    expect(status()).toMatchObject({ claim: { node: 'n' }, incarnation: 2 });
  });

  test.each(WISHES)('for whom others ended keeps that in mind, asking for %s', async (_what, wish) => {
    const { add, pools, reconcile, status, free } = world(isAlone);
    add({ ...wish, onNoCapacity: 'Fail' }, { othersEnded: true, observedGeneration: 1 });
    pools.remove(SAFE);
    await reconcile('one');
    expect(status()).toMatchObject({ othersEnded: true });
    expect(status()?.ending).toBeUndefined();
    free();
    pools.upsert(SAFE);
    await reconcile('one');
    expect(status()?.claim).toMatchObject({ node: 'n' });
  });
});

test('an instance that a backup brings back before the first pool waits for it', async () => {
  const { add, pools, reconcile, status, free } = world(true);
  pools.remove(SAFE);
  free();
  add({ gpu: { count: 8 }, runtimeClassName: 'kata' });
  await reconcile('one');
  expect(status()?.ending).toBeUndefined();
  pools.upsert(SAFE);
  await reconcile('one');
  expect(status()?.claim).toMatchObject({ node: 'n' });
});

test('an instance whose template comes late hears still that its disk is too large', async () => {
  const { add, pools, templates, reconcile, status } = world(false);
  pools.remove(SAFE);
  const template = { metadata: { name: 't', namespace: 'default', uid: 'u' }, spec: { displayName: '', ports: [] } };
  add({ gpu: { count: 8 }, diskGb: 500, templateHashId: templateHash(template.spec) });
  await reconcile('one');
  expect(status()?.ending).toBeUndefined();
  templates.upsert(template);
  await reconcile('one');
  expect(status()?.ending?.reason).toBe('DiskTooLarge');
});
