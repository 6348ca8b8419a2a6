import { expect, test } from 'vitest';
import { type Pod, PODS } from '../../src/kube/types.ts';
import { waitFor } from '../support/wait-for.ts';
import { type BrokenWay, brokenWay, CACHES } from './support/behind-proxy.ts';
import { createWorld, readyReason, type World, violationsAtRest } from './support/world.ts';

const INSTANCES = '/apis/berth.dev/v1alpha1/gpuinstances';
const ALL_PODS = '/api/v1/pods';

async function podUids(world: World, names: readonly string[]): Promise<(string | undefined)[]> {
  return Promise.all(names.map(async (name) => (await world.get(name))?.status?.podUid));
}

async function alive(world: World, names: readonly string[]): Promise<Pod[]> {
  const uids = await podUids(world, names);
  return (await world.pods()).filter(
    ({ metadata }) => uids.includes(metadata.uid) && metadata.deletionTimestamp === undefined,
  );
}

function deletes({ writes }: BrokenWay): number {
  return writes.filter(({ verb }) => verb === 'delete').length;
}

// Stale states in the Sieve paper: after a reconnect the API server shows an old state.
test('after a reconnect to an API server that lags behind nothing alive is deleted', async () => {
  await using world = await createWorld();
  await using way = await brokenWay(world);
  const replica = await way.replica();
  await world.create('first', { gpu: { count: 2 } });
  await world.reached('first', 'Running');
  for (const path of [INSTANCES, ALL_PODS]) await way.proxy.fallBehind(path);
  await world.patch('first', { spec: { powerState: 'Stopped' } });
  await world.reached('first', 'Stopped');
  await world.patch('first', { spec: { powerState: 'Running' } });
  await world.reached('first', 'Running');
  const before = await podUids(world, ['first']);
  const deleted = deletes(way);
  const asked = way.proxy.requests.length;
  way.proxy.cutWatches('reset');
  await waitFor('both caches to ask the one that lags', () =>
    [INSTANCES, ALL_PODS].every((path) => way.proxy.requests.slice(asked).some((request) => request.path === path)),
  );
  await world.create('second', { gpu: { count: 2 } });
  way.proxy.catchUp();
  way.proxy.cutWatches('end');
  await world.reached('second', 'Running', 60_000);
  expect(await podUids(world, ['first'])).toEqual(before);
  expect(await alive(world, ['first', 'second'])).toHaveLength(2);
  expect(deletes(way)).toBe(deleted);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

// The same for a controller that has just started: its caches have never seen a newer state.
test.each([
  ['instances and pods', [INSTANCES, ALL_PODS]],
  ['instances', [INSTANCES]],
  ['pods', [ALL_PODS]],
])('a controller that starts on a view of old %s harms nothing that is alive', async (_what, paths) => {
  await using world = await createWorld();
  await using way = await brokenWay(world);
  const before = await world.replica();
  await world.create('moved');
  await world.create('again');
  await world.create('rested', { powerState: 'Stopped' });
  await world.reached('moved', 'Running');
  await world.reached('again', 'Running');
  await world.reached('rested', 'Stopped');
  await before.stop();
  // It has no claim in the old view: the controller that starts on this view tries to grant it one.
  await world.create('canary');
  for (const path of paths) await way.proxy.fallBehind(path);

  await using between = await world.replica();
  await world.patch('moved', { spec: { powerState: 'Stopped' } });
  await world.reached('moved', 'Stopped');
  await world.patch('moved', { spec: { powerState: 'Running' } });
  await world.remove('again');
  await world.gone('again');
  await world.create('again');
  await world.patch('rested', { spec: { powerState: 'Running' } });
  await world.create('new');
  const names = ['moved', 'again', 'rested', 'new', 'canary'];
  for (const name of names) await world.reached(name, 'Running');
  await between.stop();
  const uids = await podUids(world, names);

  const replica = await way.replica();
  // The first write shows that the controller has looked at everything in its view.
  await waitFor('the controllers to act on the old view', () => way.writes.length > 0);
  await world.create('probe');
  way.proxy.catchUp();
  way.proxy.cutWatches('reset');
  await world.reached('probe', 'Running', 60_000);
  expect(await podUids(world, names)).toEqual(uids);
  expect(await alive(world, names)).toHaveLength(names.length);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

async function start(world: World, name: string): Promise<void> {
  await world.patch(name, { spec: { powerState: 'Running' } });
}

async function stop(world: World, name: string): Promise<void> {
  await world.patch(name, { spec: { powerState: 'Stopped' } });
}

async function deletePod(world: World): Promise<void> {
  await world.takePodFinalizers();
  for (const { metadata } of await world.pods()) await world.client.delete(PODS, metadata);
  await waitFor('the pod to be gone', async () => (await world.pods()).length === 0);
}

async function replaceInstance(world: World): Promise<void> {
  await world.takePodFinalizers();
  await world.patch('one', { metadata: { finalizers: [] } });
  await world.remove('one');
  await world.gone('one');
  // The garbage collector of Kubernetes takes the pod that lost its owner.
  await waitFor('the pod to be gone', async () => (await world.pods()).length === 0);
  await world.create('one', { gpu: { count: 2 } });
}

// Unobserved states in the Sieve paper: the controllers see the result of several changes, not the changes.
test.each<[string, (world: World) => Promise<void>, number]>([
  ['a pod that went', deletePod, 2],
  ['a stop and a start', async (world) => stop(world, 'one').then(() => start(world, 'one')), 1],
  ['an instance that went and came back', replaceInstance, 1],
])('%s, never seen by the controllers, is made up for', async (_what, change, incarnation) => {
  await using world = await createWorld();
  await using way = await brokenWay(world);
  const replica = await way.replica();
  await world.create('one', { gpu: { count: 2 } });
  await world.reached('one', 'Running');
  way.proxy.faults.swallow = ({ object }) => object.metadata?.namespace === world.namespace;
  await change(world);
  way.proxy.faults.swallow = undefined;
  way.proxy.expireWatches();
  await waitFor(
    'the instance to run as it is wanted',
    async () => {
      const one = await world.get('one');
      return one?.status?.incarnation === incarnation && readyReason(one) === 'Running';
    },
    60_000,
  );
  expect(await world.pods()).toHaveLength(1);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('events that come twice, in pieces of a few hundred bytes, cause no more writes', async () => {
  await using world = await createWorld();
  await using way = await brokenWay(world);
  const replica = await way.replica();
  await world.create('plain');
  await world.reached('plain', 'Running');
  const once = way.writes.filter(({ name }) => name.startsWith('plain')).length;
  way.proxy.faults.twice = true;
  way.proxy.faults.pieceBytes = 300;
  await world.create('twice');
  await world.reached('twice', 'Running');
  expect(way.writes.filter(({ name }) => name.startsWith('twice'))).toHaveLength(once);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('refusals with Retry-After, and watches that end at once, cause no flood of requests', async () => {
  await using world = await createWorld();
  await using way = await brokenWay(world);
  const replica = await way.replica();
  await world.create('one');
  await world.reached('one', 'Running');
  const started = way.proxy.requests.length;
  way.proxy.faults.refuse = () => ({ status: 429, reason: 'TooManyRequests', retryAfter: 1 });
  way.proxy.cutWatches('reset');
  await stop(world, 'one');
  await waitFor(
    'every cache to be refused once',
    () => way.proxy.requests.slice(started).filter(({ query }) => query.get('watch') === 'true').length >= CACHES,
  );
  way.proxy.faults.refuse = undefined;
  await world.reached('one', 'Stopped', 60_000);
  // Each cache asks about once a second at most; the rest are the writes of one stop.
  expect(way.proxy.requests.length - started).toBeLessThan(100);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});
