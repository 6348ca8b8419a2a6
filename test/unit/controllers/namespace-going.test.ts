import { expect, test } from 'vitest';
import { findCondition } from '../../../src/kube/conditions.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import type { Namespace } from '../../../src/kube/types.ts';
import { instanceSources } from '../../../src/controllers/gpu-instance/sources.ts';
import { decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { refusal } from '../../../src/http/features/instances/refusal.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const GOING: Namespace = {
  metadata: {
    name: 'default',
    uid: 'uid-default',
    resourceVersion: '9',
    deletionTimestamp: '2026-01-01T00:00:00Z',
  },
};

const TERMINATING = toKubeError('POST pods', {
  status: 403,
  body: {
    kind: 'Status',
    code: 403,
    reason: 'Forbidden',
    message:
      'pods "one-1" is forbidden: unable to create new content in namespace default because it is being terminated',
    details: { causes: [{ reason: 'NamespaceTerminating', message: 'namespace default is being terminated' }] },
  },
});

const ABSENT = toKubeError('POST pods', {
  status: 404,
  body: {
    kind: 'Status',
    code: 404,
    reason: 'NotFound',
    message: 'namespaces "default" not found',
    details: { kind: 'namespaces' },
  },
});

function seen(world: ReturnType<typeof controllerWorld>) {
  const instance = world.instances.store.get('default/one') ?? expect.unreachable();
  return { instance, ready: findCondition(instance.status?.conditions, 'Ready') };
}

test('an instance of a namespace that is being deleted gets no place and nobody waits behind it', async () => {
  const world = controllerWorld();
  world.namespaces.upsert(GOING);
  world.instances.upsert(held(gpuInstance('one')));
  await world.reconcile('one');
  const { instance, ready } = seen(world);
  expect(instance.status?.claim).toBeUndefined();
  expect(ready).toMatchObject({ reason: 'NamespaceTerminating', message: expect.stringContaining('default') });
  expect(world.line.size).toBe(0);
  expect(decisionOf(instance)).toBe('refused');
  expect(refusal(instance, [], 'debian:12')).toMatchObject({ code: 'tenant_unavailable' });
});

test('those that stand in line leave it when the deletion of their namespace begins', async () => {
  const world = controllerWorld(undefined, undefined, { nodes: [] });
  world.instances.upsert(held(gpuInstance('one')));
  const woken: string[] = [];
  const stops = instanceSources(world.deps).map((source) => source.start((key) => woken.push(key)));
  await world.reconcile('one');
  expect(world.line.size).toBe(1);
  woken.length = 0;
  world.namespaces.upsert(GOING);
  expect(woken).toEqual(['default/one']);
  await world.reconcile('one');
  expect(world.line.size).toBe(0);
  expect(seen(world).ready?.reason).toBe('NamespaceTerminating');
  for (const stop of stops) stop();
});

test('one that Berth owes a start is told so too', async () => {
  const world = controllerWorld();
  world.namespaces.upsert(GOING);
  const ending = { reason: 'NodeLost', message: 'The node is gone.', at: '2026-01-01T00:00:00Z', generation: 1 };
  world.instances.upsert(held(gpuInstance('one', {}, { incarnation: 1, ending })));
  await world.reconcile('one');
  expect(seen(world).ready?.reason).toBe('NamespaceTerminating');
});

test.each([
  ['is being deleted', TERMINATING],
  ['is gone', ABSENT],
])('a place whose pod is refused because the namespace %s is given back at once', async (_what, refused) => {
  for (const claimOnPod of [false, true]) {
    const world = controllerWorld(undefined, undefined, { claimOnPod, createPod: () => Promise.reject(refused) });
    world.instances.upsert(held(gpuInstance('one')));
    await world.reconcile('one');
    expect(world.createdPods()).toHaveLength(1);
    expect(seen(world).instance.status).toMatchObject({ ending: { reason: 'PlaceLost' } });
    expect(seen(world).instance.status?.claim).toBeUndefined();
    world.namespaces.upsert(GOING);
    await world.clock.advance(2_000);
    await world.reconcile('one');
    expect(world.createdPods()).toHaveLength(1);
    expect(seen(world).ready?.reason).toBe('NamespaceTerminating');
  }
});

test('a pod that goes with its namespace is not made again', async () => {
  const world = controllerWorld();
  world.namespaces.upsert(GOING);
  const claim = claimOn('n');
  world.instances.upsert(held(gpuInstance('one', {}, { claim, incarnation: 1, podName: 'one-1', podUid: 'uid-1' })));
  await world.reconcile('one');
  expect(world.createdPods()).toEqual([]);
  expect(seen(world).instance.status?.claim).toBeUndefined();
});
