import { once } from 'node:events';
import { expect, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { TransportError } from '../../src/kube/errors.ts';
import { LEASES, PRIORITY_CLASSES } from '../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../support/wait-for.ts';
import { startReplicaSet } from './support/processes.ts';
import { LEASE_NAMESPACE } from './support/replica.ts';
import { createWorld, readyReason, type World, violationsAtRest } from './support/world.ts';

async function allRunning(world: World, names: readonly string[]): Promise<void> {
  await waitFor(
    'every instance to run',
    async () => {
      const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
      return items.filter((one) => readyReason(one) === 'Running').length === names.length;
    },
    90_000,
  );
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

async function holder(world: World): Promise<string> {
  const lease = await world.client.get(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
  return lease.spec?.holderIdentity ?? '';
}

// cloudnative-pg tests/e2e/operator_ha_test.go.
test('a leader that is killed in the middle of its work is followed by another one', async () => {
  await using world = await createWorld({ nodes: 4 });
  await using replicas = await startReplicaSet(world.client, world.kubeconfig, 3);
  const first = await replicas.leader();
  const early = names('early', 8);
  const late = names('late', 8);
  const created = Promise.all(early.map((name) => world.create(name, { gpu: { count: 2 } })));
  await waitFor('the leader to be at work', async () => (await world.pods()).length > 0);
  first.kill('SIGKILL');
  await created;
  await Promise.all(late.map((name) => world.create(name)));
  await allRunning(world, [...early, ...late]);
  expect((await replicas.leader()).pid).not.toBe(first.pid);
  expect(world.observer.violations).toEqual([]);
});

test('a leader that sleeps past its lease writes nothing when it wakes, and leads again in its turn', async () => {
  await using world = await createWorld({ nodes: 2 });
  await using replicas = await startReplicaSet(world.client, world.kubeconfig, 2);
  const sleeper = await replicas.leader();
  const before = await holder(world);
  const early = names('early', 4);
  // Its watches bring it work that it has no time to finish. Its decisions are old when it wakes.
  const created = Promise.all(early.map((name) => world.create(name, { gpu: { count: 4 } })));
  sleeper.kill('SIGSTOP');
  await created;
  await waitFor('another leader', async () => (await holder(world)) !== before, 60_000);
  const follower = await replicas.leader();
  await allRunning(world, early);
  const settled = await Promise.all(early.map((name) => world.get(name)));
  // It finds that it lost the lease, and stands by. It must not write what it had decided.
  sleeper.kill('SIGCONT');
  follower.kill('SIGSTOP');
  await waitFor('the sleeper to lead again', async () => (await replicas.leader()) === sleeper, 60_000);
  follower.kill('SIGCONT');
  const [first] = early;
  await world.remove(first ?? '');
  await world.gone(first ?? '');
  await world.create('late', { gpu: { count: 4 } });
  await world.reached('late', 'Running');
  const now = await Promise.all(early.map((name) => world.get(name)));
  expect(now.slice(1).map((one) => one?.metadata.resourceVersion)).toEqual(
    settled.slice(1).map((one) => one?.metadata.resourceVersion),
  );
  expect(replicas.exits).toEqual([]);
  expect(world.observer.violations).toEqual([]);
  await using reader = await world.replica();
  expect(await violationsAtRest(world, reader)).toEqual([]);
});

test('a leader that meets an error and then loses its lease before it has begun stands by, and leads again', async () => {
  await using world = await createWorld({ nodes: 1 });
  const faults = ['an error', 'no answer'];
  let canRenew = true;
  const wrap = (client: KubeClient): KubeClient => ({
    ...client,
    async get(type, ref, options) {
      const fault = type.kind === PRIORITY_CLASSES.kind ? faults.shift() : undefined;
      if (fault === 'an error') throw new TransportError({ message: 'refused', status: 0, reason: 'Transport' });
      if (fault === 'no answer') {
        canRenew = false;
        await once(options?.signal ?? new AbortController().signal, 'abort');
        canRenew = true;
        options?.signal?.throwIfAborted();
      }
      return client.get(type, ref, options);
    },
  });
  const wrapLease = (client: KubeClient): KubeClient => ({
    ...client,
    replace: (type, object, options) =>
      canRenew
        ? client.replace(type, object, options)
        : Promise.reject(new TransportError({ message: 'refused', status: 0, reason: 'Transport' })),
  });
  const replica = await world.replica({ wrap, wrapLease });
  await world.create('one');
  const running = world.reached('one', 'Running').then(() => 'running' as const);
  expect(await Promise.race([running, replica.ended])).toBe('running');
  expect(faults).toEqual([]);
});

test('a leader that is asked to go gives its lease back, and a standby goes on with its work', async () => {
  await using world = await createWorld({ nodes: 4 });
  await using replicas = await startReplicaSet(world.client, world.kubeconfig, 2);
  const first = await replicas.leader();
  const { spec } = await world.client.get(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
  const early = names('early', 12);
  const created = Promise.all(early.map((name) => world.create(name, { gpu: { count: 2 } })));
  await waitFor('the leader to be at work', async () => (await world.pods()).length > 0);
  first.kill('SIGTERM');
  await waitFor('the leader to end', () => first.exitCode !== null);
  await created;
  // The next leader takes a lease without a holder, whose duration is one second: it waits for no term to end.
  const next = await replicas.leader();
  const after = await world.client.get(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
  expect(next.pid).not.toBe(first.pid);
  expect(after.spec?.leaseTransitions).toBe((spec?.leaseTransitions ?? 0) + 1);
  await allRunning(world, early);
  expect(replicas.exits).toEqual([0]);
  expect(world.observer.violations).toEqual([]);
});
