import { describe, expect, test } from 'vitest';
import { isPodOf } from '../../../src/controllers/gpu-instance/decide/pod/pod-facts.ts';
import { podRepair } from '../../../src/controllers/gpu-instance/decide/pod/repair-patch.ts';
import { ForbiddenError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { instanceUidOf, ownerOf } from '../../../src/resources/pod/owner.ts';
import { POD_FINALIZER } from '../../../src/resources/pod/pod-finalizer.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance, gpuPod } from '../../support/inventory-world.ts';

const ONE = held(gpuInstance('one'));
const OTHER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'other', uid: 'uid-other', controller: true };

/** What somebody did to the marks of a pod. */
const CHANGES: [string, Pick<Pod['metadata'], 'labels' | 'ownerReferences'>][] = [
  ['all marks taken off', { labels: {}, ownerReferences: [] }],
  ['the marks of another instance', { labels: { 'berth.dev/instance-uid': 'uid-other' }, ownerReferences: [] }],
  ['another controller', { labels: { 'berth.dev/instance': 'other' }, ownerReferences: [OTHER] }],
  ['another instance as owner', { labels: {}, ownerReferences: [ownerOf(gpuInstance('other'))] }],
];

/** A start of instance `one`, whose pod then has these marks alone. */
async function started(marks: Pick<Pod['metadata'], 'labels' | 'ownerReferences'>, claimOnPod: boolean) {
  const world = controllerWorld(undefined, undefined, { takesChanges: true, claimOnPod });
  world.instances.upsert(ONE);
  await world.reconcile('one');
  const [pod] = world.pods.store.values();
  if (pod === undefined) throw new Error('There is no pod.');
  world.pods.upsert({ ...pod, metadata: { ...pod.metadata, ...marks, resourceVersion: '900' } });
  return { ...world, pod };
}

test.each(CHANGES)(
  'a pod with %s is known by what nobody else can change, and has its marks again',
  async (_, marks) => {
    for (const claimOnPod of [true, false]) {
      const world = await started(marks, claimOnPod);
      await world.reconcile('one');
      const [after, ...others] = world.pods.store.values();
      expect(others).toEqual([]);
      expect(after?.metadata).toMatchObject({ uid: world.pod.metadata.uid, labels: world.pod.metadata.labels });
      expect(after?.metadata.ownerReferences).toEqual([ownerOf(ONE)]);
      expect(world.creations()).toEqual(['Pod']);
      expect(world.instances.store.get('default/one')?.status?.claim).toBeDefined();
    }
  },
);

test.each(CHANGES)('an instance whose pod has %s can be deleted, and its GPU is free', async (_, marks) => {
  for (const claimOnPod of [true, false]) {
    const world = await started(marks, claimOnPod);
    const patch = world.deps.client.patch.bind(world.deps.client);
    // Not even the marks can be put back.
    world.deps.client.patch = (type, ...rest) =>
      type.kind === 'Pod'
        ? Promise.reject(new ForbiddenError({ message: 'no', status: 403, reason: 'Forbidden' }))
        : patch(type, ...rest);
    const now = world.instances.store.get('default/one');
    const metadata = {
      ...ONE.metadata,
      deletionTimestamp: '2026-01-01T00:00:00Z',
      generation: 2,
      resourceVersion: '950',
    };
    world.instances.upsert({ ...ONE, ...(!claimOnPod && now?.status && { status: now.status }), metadata });
    await world.reconcile('one');
    expect(world.writes.filter(({ verb, kind }) => verb === 'delete' && kind === 'Pod')).toEqual([
      { verb: 'delete', kind: 'Pod', name: 'one-1', uid: world.pod.metadata.uid },
    ]);
    await world.reconcile('one');
    expect(world.instances.store.get('default/one')?.metadata.finalizers).toEqual([]);
    expect(world.inventory.viewOf('n')?.used['nvidia.com/gpu'] ?? 0).toBe(0);
  }
});

/** What a tenant can write to a pod of its own. */
const FORGED: [string, Partial<Pod['metadata']>][] = [
  ['the labels', {}],
  ['the labels and the owner', { ownerReferences: [ownerOf(ONE)] }],
  ['the labels, the owner and the finalizer', { ownerReferences: [ownerOf(ONE)], finalizers: [POD_FINALIZER, 'x/y'] }],
  ['the labels, and an end in a year', { deletionTimestamp: '2027-01-01T00:00:00Z', finalizers: ['x/y'] }],
];

describe.each(FORGED)('a pod that a tenant made with %s of its instance', (_, marks) => {
  function forged(name: string, gpus = 1): Pod {
    const { metadata, ...pod } = gpuPod(name, 'n', { gpus });
    const labels = { 'berth.dev/instance': 'one', 'berth.dev/instance-uid': 'uid-one' };
    return { ...pod, metadata: { ...metadata, uid: `uid-${name}`, labels, ...marks } };
  }

  /** What was written to other pods than those that Berth made. */
  const written = ({ writes }: ReturnType<typeof controllerWorld>) =>
    writes.filter(({ kind, name }) => kind === 'Pod' && name !== 'one-1');

  test.each([true, false])(
    'stays as it is, and no start and no end waits for it; claim on pod: %s',
    async (claimOnPod) => {
      const world = controllerWorld(undefined, undefined, { takesChanges: true, claimOnPod });
      world.pods.upsert(forged('mine'));
      world.pods.upsert(forged('one-7'));
      world.instances.upsert(ONE);
      await world.reconcile('one');
      await world.reconcile('one');
      const started = world.instances.store.get('default/one');
      expect(started?.status?.claim).toBeDefined();
      expect(world.createdPods().map(({ metadata }) => metadata.name)).toEqual(['one-1']);
      const { metadata, spec, status } = started ?? ONE;
      const change = { generation: 2, resourceVersion: '950', deletionTimestamp: '2026-01-01T00:00:00Z' };
      world.instances.upsert({ spec, ...(!claimOnPod && status && { status }), metadata: { ...metadata, ...change } });
      await world.reconcile('one');
      await world.reconcile('one');
      expect(world.instances.store.get('default/one')?.metadata.finalizers).toEqual([]);
      expect(written(world)).toEqual([]);
    },
  );

  test('has no place in the instance, and hides none of what it claims', async () => {
    const world = controllerWorld(undefined, undefined, { takesChanges: true });
    const status = { claim: claimOn('n', { gpuCount: 4 }), incarnation: 1, podName: 'one-1' };
    world.instances.upsert(held(gpuInstance('one', {}, status)));
    world.pods.upsert(forged('mine', 4));
    expect(world.inventory.viewOf('n')?.used['nvidia.com/gpu']).toBe(8);
  });

  test('is not taken for the pod of its next start', () => {
    expect(isPodOf(ONE, forged('one-1'))).toBe(false);
  });
});

test('a pod that the status names is of its claim, whatever its marks are', () => {
  const world = controllerWorld();
  const { metadata, ...pod } = gpuPod('one-1', 'n', { gpus: 4 });
  const status = { claim: claimOn('n', { gpuCount: 4 }), incarnation: 1, podName: 'one-1', podUid: 'uid-pod' };
  world.instances.upsert(held(gpuInstance('one', {}, status)));
  world.pods.upsert({ ...pod, metadata: { ...metadata, uid: 'uid-pod' } });
  expect(world.inventory.viewOf('n')?.used['nvidia.com/gpu']).toBe(4);
});

test('a pod of an earlier release is known by the status, whatever its marks say, and gets the annotation', () => {
  const pod: Pod = { metadata: { name: 'one-2', namespace: 'default', uid: 'uid-pod', ownerReferences: [OTHER] } };
  const status = { claim: claimOn('n'), incarnation: 2, podName: 'one-2', podUid: 'uid-pod' };
  expect(isPodOf({ ...ONE, status }, pod)).toBe(true);
  expect(isPodOf({ ...ONE, status: { ...status, podUid: 'uid-before' } }, pod)).toBe(false);
  expect(podRepair(ONE, pod)).toMatchObject({
    metadata: { ownerReferences: [ownerOf(ONE)], annotations: { 'berth.dev/claim': '{"instance":"uid-one"}' } },
  });
});

test('an annotation that is not as the controller writes it names no instance', () => {
  for (const text of [
    '',
    '{}',
    '{"instance":""}',
    'uid-one',
    ' {"instance":"uid-one"}',
    `{"instance":"${'u'.repeat(65)}"}`,
  ]) {
    expect(instanceUidOf({ metadata: { name: 'x', annotations: { 'berth.dev/claim': text } } })).toBeUndefined();
  }
});
