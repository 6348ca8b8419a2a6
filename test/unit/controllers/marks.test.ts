import { expect, test } from 'vitest';
import { isPodOf } from '../../../src/controllers/gpu-instance/decide/pod/pod-facts.ts';
import { podRepair } from '../../../src/controllers/gpu-instance/decide/pod/repair-patch.ts';
import { ForbiddenError } from '../../../src/kube/errors.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { instanceUidsOf, ownerOf } from '../../../src/resources/pod/owner.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

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
    expect(instanceUidsOf({ metadata: { name: 'x', annotations: { 'berth.dev/claim': text } } })).toEqual([]);
  }
});
