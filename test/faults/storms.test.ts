import { expect, test } from 'vitest';
import { GPU_INSTANCES } from '../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../support/wait-for.ts';
import { brokenWay, CACHES } from './support/behind-proxy.ts';
import { createWorld, offeredBy, readyReason, type World, violationsAtRest } from './support/world.ts';

async function running(world: World): Promise<number> {
  const { items } = await world.client.list(GPU_INSTANCES, { namespace: world.namespace });
  return items.filter((one) => readyReason(one) === 'Running').length;
}

test('a second writer who never rests does not stop an instance from starting and ending', async () => {
  await using world = await createWorld();
  const replica = await world.replica();
  const stop = new AbortController();
  await world.create('one', { gpu: { count: 8 } });
  const storm = (async () => {
    for (let turn = 0; !stop.signal.aborted; turn += 1) {
      await world.patch('one', { metadata: { annotations: { turn: String(turn) } } }).catch(() => undefined);
    }
  })();
  await world.reached('one', 'Running');
  await world.patch('one', { spec: { powerState: 'Stopped' } });
  await world.reached('one', 'Stopped');
  await world.remove('one');
  await world.gone('one');
  stop.abort();
  await storm;
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('an API server that is away for a while costs nobody an instance', async () => {
  await using world = await createWorld({ nodes: 2 });
  await using way = await brokenWay(world);
  const replica = await way.replica();
  await world.create('before', { gpu: { count: 4 } });
  const before = await world.reached('before', 'Running');
  const asked = way.proxy.requests.length;
  way.proxy.setDown(true);
  await world.create('meanwhile', { gpu: { count: 4 } });
  await world.patch('before', { spec: { label: 'changed' } });
  // Every cache has tried without success, some of them twice.
  await waitFor('the outage to be noticed', () => way.proxy.requests.length > asked + CACHES + 4);
  way.proxy.setDown(false);
  await world.reached('meanwhile', 'Running', 60_000);
  expect((await world.get('before'))?.status?.podUid).toBe(before.status?.podUid);
  expect(await violationsAtRest(world, replica)).toEqual([]);
});

test('two hundred instances come and go, and nothing is left', { timeout: 600_000 }, async () => {
  await using world = await createWorld({ nodes: 25 });
  const replica = await world.replica();
  const names = Array.from({ length: 200 }, (_, index) => `i-${index}`);
  await Promise.all(names.map((name) => world.create(name)));
  await waitFor('all to run', async () => (await running(world)) === 200, 240_000);
  expect(await violationsAtRest(world, replica)).toEqual([]);
  await Promise.all(names.map((name) => world.remove(name)));
  await waitFor(
    'all to be gone',
    async () => (await world.client.list(GPU_INSTANCES, { namespace: world.namespace })).items.length === 0,
    240_000,
  );
  await waitFor('the offers to be whole', () => offeredBy(replica, world.fleet) === 200);
  expect(await world.observer.atRest(200)).toEqual([]);
});
