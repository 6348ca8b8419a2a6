import { afterAll, beforeAll, expect, test } from 'vitest';
import { AlreadyExistsError, QuotaUncountedError, KubeError, TimeoutError } from '../../src/kube/errors.ts';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { USAGE_RECORDS } from '../../src/resources/usage-record.ts';
import { waitFor } from '../support/wait-for.ts';
import { type ControlPlane, startControlPlane } from './support/control-plane.ts';
import { startReplicaSet } from './support/processes.ts';
import { createWorld, readyReason, violationsAtRest, type World } from './support/world.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
}, 300_000);
afterAll(async () => {
  await plane[Symbol.asyncDispose]();
});

/** Pods of all instances by name; undefined until every one runs. */
async function runningPods(world: World, count: number): Promise<Map<string, string | undefined> | undefined> {
  const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
  const running = items.filter((one) => readyReason(one) === 'Running');
  if (running.length !== count) return undefined;
  return new Map(running.map(({ metadata, status }) => [metadata.name, status?.podUid]));
}

test(
  'an API server that is killed and started again, at work and at rest, costs nobody an instance',
  { timeout: 360_000 },
  async () => {
    await using world = await createWorld({ kubeconfig: plane.kubeconfig, nodes: 3 });
    await using replicas = await startReplicaSet(world.client, plane.kubeconfig, 2);
    await replicas.leader();
    await world.create('steady', { gpu: { count: 4 } });
    await world.reached('steady', 'Running');
    const names = Array.from({ length: 12 }, (_, index) => `burst-${index}`);
    await Promise.all(names.map((name) => world.create(name)));
    await waitFor('the leader to be at work', async () => (await world.pods()).length > 2);
    await plane.apiServer.kill();
    plane.apiServer.start();
    await plane.ready();
    // A scheduler puts a pod aside when the API server does not know its roles yet. The controller replaces it after
    // two minutes.
    const pods = await waitFor('all to run', () => runningPods(world, 13), 180_000);

    await plane.apiServer.kill();
    plane.apiServer.start();
    await plane.ready();
    await replicas.leader();
    // Something new shows that the controllers are back. The quota of the namespace may be uncounted still.
    await insistOn(world, 'after', () => undefined);
    await world.reached('after', 'Running', 90_000);
    const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
    const states = items.map((one) => [one.metadata.name, `${readyReason(one)} ${one.status?.podUid}`]);
    const kept = [...pods].map(([name, uid]) => [name, `Running ${uid}`]);
    expect(Object.fromEntries(states)).toMatchObject(Object.fromEntries(kept));
    expect(replicas.exits).toEqual([]);
    await using reader = await world.replica();
    expect(await violationsAtRest(world, reader)).toEqual([]);
  },
);

/**
 * Creates an instance as a client does that asks again. Without an answer of etcd the client gives up after 30 s. Where
 * the namespace has the quota of its tenant already, the API server gives up counting after ten, and refuses the creation
 * with 500; with 403 where that quota is new and was not counted (Kubernetes, admission/plugin/resourcequota/controller.go).
 */
function insistOn(world: World, name: string, failed: () => void): Promise<true> {
  const isTaken = async (): Promise<boolean> => {
    try {
      await world.create(name);
      return true;
    } catch (error) {
      const isUncounted = error instanceof QuotaUncountedError;
      if (error instanceof TimeoutError || isUncounted || (error instanceof KubeError && error.status >= 500)) {
        failed();
        return false;
      }
      if (error instanceof AlreadyExistsError) return true;
      throw error;
    }
  };
  return waitFor(`${name} to be taken`, isTaken, 90_000);
}

test('an etcd that sleeps past the lease costs nobody an instance', async () => {
  await using world = await createWorld({ kubeconfig: plane.kubeconfig });
  await using replicas = await startReplicaSet(world.client, plane.kubeconfig, 2);
  await replicas.leader();
  await world.create('steady', { gpu: { count: 4 } });
  const before = await world.reached('steady', 'Running');
  plane.etcd.suspend();
  const { promise: failed, resolve } = Promise.withResolvers<void>();
  const pending = ['a', 'b', 'c', 'd'].map((name) => insistOn(world, name, resolve));
  // After ten seconds at least: longer than a leader holds a lease that it cannot renew.
  await failed;
  plane.etcd.resume();
  await Promise.all(pending);
  const pods = await waitFor('all to run', () => runningPods(world, 5), 90_000);
  expect(pods.get('steady')).toBe(before.status?.podUid);
  expect(replicas.exits).toEqual([]);
  await using reader = await world.replica();
  expect(await violationsAtRest(world, reader)).toEqual([]);
});

test('a cluster restored from a backup goes on from the backup, with nothing restarted', async () => {
  await using world = await createWorld({ kubeconfig: plane.kubeconfig, nodes: 3 });
  await using replicas = await startReplicaSet(world.client, plane.kubeconfig, 2);
  await replicas.leader();
  const { client, namespace } = world;
  for (const name of ['kept', 'removed', 'stopped']) await world.create(name, { gpu: { count: 4 } });
  const before = await waitFor('all to run', () => runningPods(world, 3));
  await plane.backUp();

  await world.remove('removed');
  await world.gone('removed', 90_000);
  await world.patch('stopped', { spec: { powerState: 'Stopped' } });
  await world.reached('stopped', 'Stopped');
  const late = Array.from({ length: 4 }, (_, index) => `late-${index}`);
  for (const name of late) await world.create(name, { gpu: { count: 4 } });
  await waitFor('the late ones to run', () => runningPods(world, 5));
  await plane.restore();

  // These take as many GPUs as the backup leaves free: the late instances hold none, the others all of theirs.
  for (const name of ['new-0', 'new-1', 'new-2']) await world.create(name, { gpu: { count: 4 } });
  // A leader that sees what was created within a second at once has no order for it but the uids.
  await waitFor('the new ones to have their places', () => runningPods(world, 6), 90_000);
  await world.create('too-much', { gpu: { count: 4 }, onNoCapacity: 'Fail' });
  await world.reached('too-much', 'NoCapacity', 90_000);
  const after = await waitFor('the others to run', () => runningPods(world, 6), 90_000);
  expect(Object.fromEntries(after)).toMatchObject(Object.fromEntries(before));
  // The bill of a start that began before the backup is whole, and there is one.
  await world.remove('removed');
  await world.gone('removed');
  // A controller that knew the late instances, and no longer sees them, writes their usage records too.
  const { items } = await client.list(USAGE_RECORDS, { namespace });
  const billed = items.map(({ spec }) => spec.instance);
  expect(billed.filter((name) => !late.includes(name))).toEqual(['removed']);
  expect(new Set(billed).size).toBe(billed.length);
  expect(replicas.exits).toEqual([]);
  await using reader = await world.replica();
  expect(await violationsAtRest(world, reader)).toEqual([]);
});
