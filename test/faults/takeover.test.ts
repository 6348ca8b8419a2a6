import { expect, test } from 'vitest';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { EVENTS, LEASES, PODS } from '../../src/kube/types.ts';
import { waitFor } from '../support/wait-for.ts';
import { brokenWay } from './support/behind-proxy.ts';
import { startProcessBehind } from './support/processes.ts';
import { LEASE_NAMESPACE } from './support/replica.ts';
import { createWorld, offeredBy, violationsAtRest, type World } from './support/world.ts';

const FULL = ['full-0', 'full-1', 'full-2', 'full-3'];

/** A lease client whose calls wait until the test lets them go. */
function gated() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wrapLease = (client: KubeClient): KubeClient => ({
    ...client,
    get: (...args) => promise.then(() => client.get(...args)),
    create: (...args) => promise.then(() => client.create(...args)),
    replace: (...args) => promise.then(() => client.replace(...args)),
  });
  return { wrapLease, open: resolve };
}

/** Takes an instance away without a controller, with its pod. */
async function takeAway(world: World, name: string): Promise<void> {
  await world.patch(name, { metadata: { finalizers: [] } });
  await world.remove(name);
  await world.takePodFinalizers();
  for (const { metadata } of await world.pods()) await world.client.delete(PODS, metadata);
  await waitFor('the pods to be gone', async () => (await world.pods()).length === 0);
}

test('a new leader whose watches hung grants nothing before its caches are current', async () => {
  await using world = await createWorld({ nodes: 1 });
  await using way = await brokenWay(world);
  const before = await world.replica();
  await world.create('filler', { gpu: { count: 8 } });
  await world.reached('filler', 'Running');
  for (const name of FULL) await world.create(name, { gpu: { count: 2 } });
  await world.create('late', { gpu: { count: 8 } });
  for (const name of [...FULL, 'late']) await world.reached(name, 'WaitingForCapacity');
  await before.stop();
  const { wrapLease, open } = gated();
  const standby = await way.replica({ wrapLease });
  await takeAway(world, 'filler');
  // The last that the standby sees: an empty node, and five instances that wait for it.
  await waitFor('the standby to see an empty node', () => offeredBy(standby, world.fleet) === 8);
  way.proxy.faults.silent = () => true;
  way.proxy.cutWatches('end');
  const first = await world.replica();
  for (const name of FULL) await world.reached(name, 'Running');
  await first.stop();
  const { length } = way.proxy.requests;
  open();
  await waitFor(
    'the new leader to compare its caches',
    () => way.proxy.requests.slice(length).some(({ query }) => query.get('limit') === '500'),
    60_000,
  );
  expect(way.writes).toEqual([]);
  expect(world.observer.violations).toEqual([]);
  way.proxy.faults.silent = undefined;
  way.proxy.cutWatches('reset');
  await world.remove('full-0');
  await world.gone('full-0', 60_000);
  expect((await world.get('late'))?.status?.incarnation).toBeUndefined();
  expect(await violationsAtRest(world, standby)).toEqual([]);
});

// The wait of a Retry-After is over when the process wakes, and its sockets are ready before it knows of its lease.
test('a leader that is stopped while it waits to send a claim again does not send it when it wakes', async () => {
  await using world = await createWorld({ nodes: 1 });
  await using way = await brokenWay(world);
  await using leader = await startProcessBehind(way.proxy.server);
  await world.create('first');
  await world.reached('first', 'Running', 60_000);
  let refused = 0;
  way.proxy.faults.refuse = ({ method = '', url = '' }) => {
    // The claim is in the pod or in the status, as the seed has it.
    const isClaim = method === 'POST' ? url.includes('/pods') : url.includes('/gpuinstances/late/status');
    if (!isClaim || (method !== 'POST' && method !== 'PATCH')) return undefined;
    refused += 1;
    return { status: 429, reason: 'TooManyRequests', retryAfter: 5 };
  };
  await world.create('late', { gpu: { count: 4 } });
  await waitFor('the claim to be refused', () => refused > 0, 60_000);
  // Else the end of a leader that stands still is waited for in vain when the test fails first.
  using _woken = { [Symbol.dispose]: () => leader.kill('SIGCONT') };
  leader.kill('SIGSTOP');
  way.proxy.faults.refuse = undefined;
  const { length } = way.proxy.requests;
  const follower = await world.replica();
  const claimed = await world.reached('late', 'Running', 60_000);
  leader.kill('SIGCONT');
  const since = () => way.proxy.requests.slice(length);
  await waitFor(
    'the leader to look at the lease again',
    () => since().some(({ method, path }) => method === 'GET' && path.includes('/leases/')),
    60_000,
  );
  const writes = since().filter(({ method, path }) => method !== 'GET' && !path.includes('/leases/'));
  expect(writes).toEqual([]);
  expect((await world.get('late'))?.status?.claim).toEqual(claimed.status?.claim);
  expect(await violationsAtRest(world, follower)).toEqual([]);
});

test('a leader whose Events wait gives its lease back, and sends them after that', async () => {
  await using world = await createWorld({ nodes: 1 });
  const told = Promise.withResolvers<void>();
  const wrap = (client: KubeClient): KubeClient => ({
    ...client,
    create: (type, ...args) =>
      (type.plural === EVENTS.plural ? told.promise : Promise.resolve()).then(() => client.create(type, ...args)),
  });
  const leader = await world.replica({ wrap });
  // Else the end of the world waits for ever when the test fails first.
  using _told = { [Symbol.dispose]: told.resolve };
  await world.create('told');
  await world.reached('told', 'Running');
  const stopped = leader.stop();
  await waitFor('the lease to be given back', async () => {
    const { spec } = await world.client.get(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
    return !spec?.holderIdentity;
  });
  told.resolve();
  await stopped;
  const { items } = await world.client.list(EVENTS, { namespace: world.namespace });
  expect(items.filter(({ involvedObject }) => involvedObject.name === 'told')).not.toEqual([]);
});
