import { expect, test } from 'vitest';
import { createKubeClient } from '../../src/kube/rest-client.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { loadKubeConfig } from '../../src/kube/config.ts';
import { GPU_INSTANCES } from '../../src/resources/gpu-instance.ts';
import { PODS } from '../../src/kube/types.ts';
import { faultProxy } from '../support/fault-proxy/proxy.ts';
import { plainConnection } from '../support/test-cluster.ts';
import { waitFor } from '../support/wait-for.ts';
import { recordWrites, type Write } from './support/counting-client.ts';
import { createWorld, offeredBy, readyReason, type World } from './support/world.ts';

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
  await world.reached('one', 'Running', 30_000);
  await world.patch('one', { spec: { powerState: 'Stopped' } });
  await world.reached('one', 'Stopped', 30_000);
  await world.remove('one');
  await world.gone('one', 30_000);
  stop.abort();
  await storm;
  expect(await world.observer.atRest(offeredBy(replica, world.fleet))).toEqual([]);
});

/** A replica that reaches the API server through a proxy which breaks what it is told to break. */
async function behindProxy(world: World) {
  const upstream = await loadKubeConfig({ kubeconfig: world.kubeconfig });
  const proxy = await faultProxy(upstream);
  const connection = plainConnection(proxy.server);
  const writes: Write[] = [];
  const client = createKubeClient(connection, { clock: systemClock() });
  const replica = await world.replica({ client: recordWrites(client, writes) });
  return {
    proxy,
    replica,
    writes,
    async [Symbol.asyncDispose]() {
      await replica.stop();
      await connection.close();
      await proxy[Symbol.asyncDispose]();
      await upstream.close();
    },
  };
}

test('an API server that is away for a while costs nobody an instance', async () => {
  await using world = await createWorld({ nodes: 2 });
  await using part = await behindProxy(world);
  await world.create('before', { gpu: { count: 4 } });
  const before = await world.reached('before', 'Running');
  part.proxy.setDown(true);
  await world.create('meanwhile', { gpu: { count: 4 } });
  await world.patch('before', { spec: { label: 'changed' } });
  // Watches and writes fail for some seconds before it is back.
  await waitFor('the outage to be noticed', () => part.proxy.requests.length > 0);
  part.proxy.setDown(false);
  await world.reached('meanwhile', 'Running', 60_000);
  expect((await world.get('before'))?.status?.podUid).toBe(before.status?.podUid);
  expect(await world.observer.atRest(offeredBy(part.replica, world.fleet))).toEqual([]);
});

// Sieve's stale states: after a reconnect the API server shows what was there before.
test('a stale view never deletes what is alive', async () => {
  await using world = await createWorld({ nodes: 2 });
  await using part = await behindProxy(world);
  await world.create('first', { gpu: { count: 2 } });
  await world.reached('first', 'Running');
  await part.proxy.fallBehind(`/apis/berth.dev/v1alpha1/gpuinstances`);
  await part.proxy.fallBehind('/api/v1/pods');
  await world.patch('first', { spec: { powerState: 'Stopped' } });
  await world.reached('first', 'Stopped', 5_000).catch(() => undefined);
  part.proxy.cutWatches('reset');
  const deletesBefore = part.writes.filter(({ verb }) => verb === 'delete').length;
  await world.patch('first', { spec: { powerState: 'Running' } });
  part.proxy.catchUp();
  part.proxy.cutWatches('end');
  await world.create('second', { gpu: { count: 2 } });
  await world.reached('second', 'Running', 60_000);
  await world.reached('first', 'Running', 60_000);
  const { metadata } = await world.client.get(PODS, {
    namespace: world.namespace,
    name: (await world.get('second'))?.status?.podName ?? '',
  });
  expect(metadata.deletionTimestamp).toBeUndefined();
  expect(part.writes.filter(({ verb, name }) => verb === 'delete' && name.startsWith('second'))).toEqual([]);
  expect(part.writes.filter(({ verb }) => verb === 'delete').length - deletesBefore).toBeLessThanOrEqual(1);
  expect(await world.observer.atRest(offeredBy(part.replica, world.fleet))).toEqual([]);
});

test('events that are never seen are made up for', async () => {
  await using world = await createWorld({ nodes: 2 });
  await using part = await behindProxy(world);
  await world.create('one', { gpu: { count: 2 } });
  await world.reached('one', 'Running');
  // Deleted and gone while the controllers hear nothing.
  part.proxy.faults.swallow = ({ object }) => object.metadata?.namespace === world.namespace;
  for (const { metadata } of await world.pods()) await world.client.delete(PODS, metadata);
  await waitFor('the pod to be gone', async () => (await world.pods()).length === 0);
  part.proxy.faults.swallow = undefined;
  part.proxy.expireWatches();
  await waitFor('another start', async () => (await world.get('one'))?.status?.incarnation === 2, 60_000);
  await world.reached('one', 'Running', 60_000);
  expect(await world.observer.atRest(offeredBy(part.replica, world.fleet))).toEqual([]);
});

test('two hundred instances come and go, and nothing is left', { timeout: 300_000 }, async () => {
  await using world = await createWorld({ nodes: 25 });
  const replica = await world.replica();
  const names = Array.from({ length: 200 }, (_, index) => `i-${index}`);
  await Promise.all(names.map((name) => world.create(name)));
  await waitFor('all to run', async () => (await running(world)) === 200, 120_000);
  expect(await world.observer.atRest(offeredBy(replica, world.fleet))).toEqual([]);
  await Promise.all(names.map((name) => world.remove(name)));
  await waitFor(
    'all to be gone',
    async () => (await world.client.list(GPU_INSTANCES, { namespace: world.namespace })).items.length === 0,
    120_000,
  );
  await waitFor('the offers to be whole', () => offeredBy(replica, world.fleet) === 200);
  expect(await world.observer.atRest(200)).toEqual([]);
});
