import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { pathOf } from '../../../src/kube/client/client.ts';
import { Informer } from '../../../src/kube/watch/reflector.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { refuseNext } from '../../support/fault-proxy/faults.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy/proxy.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { CONFIG_MAPS, type ConfigMap, plainConnection, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const MINE = 'berth.dev/test=yes';

/** An informer that reaches the API server through a proxy, and a writer that does not. Its pauses are 20 times shorter. */
async function setup() {
  const space = await testNamespace();
  const proxy = await faultProxy(space.connection);
  const clock = scaledClock(20);
  const client = createKubeClient(plainConnection(proxy.server), { clock });
  const informer = new Informer<ConfigMap>({
    client,
    type: CONFIG_MAPS,
    namespace: space.name,
    labelSelector: MINE,
    clock,
    random: Math.random,
    log: pino({ level: 'silent' }),
  });
  const seen: string[] = [];
  informer.store.onChange(({ key, before, after }) => {
    seen.push(`${after ? (before ? 'update' : 'add') : 'delete'} ${key.split('/')[1]}`);
  });
  const stop = new AbortController();
  const done = informer.run(stop.signal);
  await informer.store.synced;

  const write = (name: string, value: string) =>
    space.client.apply(
      CONFIG_MAPS,
      { metadata: { name, namespace: space.name, labels: { 'berth.dev/test': 'yes' } }, data: { value } } as ConfigMap,
      { fieldManager: 'writer', force: true },
    );
  const remove = (name: string) => space.client.delete(CONFIG_MAPS, { namespace: space.name, name });
  /** Waits until the cache equals what the API server has. */
  const converge = async (): Promise<void> => {
    await waitFor('the cache to equal the API server', async () => {
      const { items } = await space.client.list(CONFIG_MAPS, { namespace: space.name, labelSelector: MINE });
      return show(items) === show(informer.store.values());
    });
  };
  return {
    ...space,
    proxy,
    store: informer.store,
    seen,
    write,
    remove,
    converge,
    path: pathOf(CONFIG_MAPS, { namespace: space.name }),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await done;
      await client.close();
      await proxy[Symbol.asyncDispose]();
      await space[Symbol.asyncDispose]();
    },
  };
}

function show(objects: Iterable<ConfigMap>): string {
  return [...objects]
    .map(({ metadata, data }) => `${metadata.name}=${data?.['value']}@${metadata.resourceVersion}`)
    .toSorted()
    .join(' ');
}

function lists(proxy: FaultProxy): number {
  return proxy.requests.filter(({ query }) => query.get('watch') !== 'true' || query.has('sendInitialEvents')).length;
}

describe('a watch cache in front of a real API server', () => {
  test('is filled by a stream and follows what happens', async () => {
    await using world = await setup();
    await waitFor('the watch after the list', () => world.proxy.requests.length === 2);
    expect(world.proxy.requests.map(({ query }) => query.get('sendInitialEvents'))).toEqual(['true', null]);
    await world.write('a', '1');
    await world.write('a', '2');
    await world.write('b', '1');
    await world.remove('a');
    await world.converge();
    await waitFor('the last event', () => world.seen.at(-1) === 'delete a');
    expect(world.seen).toEqual(['add a', 'update a', 'add b', 'delete a']);
  });

  test('an object that leaves the selection leaves the cache', async () => {
    await using world = await setup();
    await world.write('a', '1');
    await world.converge();
    const labels = { metadata: { labels: { 'berth.dev/test': 'no' } } };
    await world.client.patch(CONFIG_MAPS, { namespace: world.name, name: 'a' }, labels, { type: 'merge' });
    await world.converge();
    expect(world.store.size).toBe(0);
  });

  test.each(['reset', 'end'] as const)('goes on without a list when its watch is cut (%s)', async (how) => {
    await using world = await setup();
    await world.write('a', '1');
    await world.converge();
    world.proxy.cutWatches(how);
    await world.write('b', '1');
    await world.remove('a');
    await world.converge();
    expect(lists(world.proxy)).toBe(1);
    expect(world.seen).toEqual(['add a', 'add b', 'delete a']);
  });

  test('lists anew after 410, and what vanished meanwhile is told as deleted', async () => {
    await using world = await setup();
    await world.write('a', '1');
    await world.write('b', '1');
    await world.converge();
    world.proxy.faults.silent = () => true;
    await world.remove('a');
    await world.write('c', '1');
    world.proxy.faults.silent = undefined;
    world.proxy.expireWatches();
    await world.converge();
    expect(world.seen.slice(2).toSorted()).toEqual(['add c', 'delete a']);
    expect(lists(world.proxy)).toBe(2);
  });

  test('survives an API server that is away, and one that says 429 and 503 when it is back', async () => {
    await using world = await setup();
    await world.write('a', '1');
    await world.converge();
    world.proxy.setDown(true);
    await world.write('a', '2');
    await waitFor('attempts against the closed door', () => world.proxy.requests.length >= 5);
    const answers = [
      refuseNext(1, { status: 429, reason: 'TooManyRequests', retryAfter: 1 }, () => true),
      refuseNext(2, { status: 503, reason: 'ServiceUnavailable' }, () => true),
    ];
    world.proxy.faults.refuse = (request) => answers[0]?.(request) ?? answers[1]?.(request);
    world.proxy.setDown(false);
    await world.converge();
    expect(lists(world.proxy)).toBe(1);
    expect(world.seen).toEqual(['add a', 'update a']);
  });

  test('reads lines that come in pieces of three bytes', async () => {
    await using world = await setup();
    world.proxy.faults.pieceBytes = 3;
    await world.write('a', 'zwölf Boxkämpfer');
    await world.converge();
    expect(world.store.get(`${world.name}/a`)?.data).toEqual({ value: 'zwölf Boxkämpfer' });
  });

  test('notices a connection whose other end is gone, and catches up', async () => {
    await using world = await setup();
    world.proxy.faults.silent = () => true;
    await world.write('a', '1');
    // 150 s of silence on its own clock.
    await waitFor('the watch to be given up', () => world.proxy.requests.length >= 3);
    world.proxy.faults.silent = undefined;
    world.proxy.cutWatches('reset');
    await world.converge();
  });

  test('an add and a delete that it never saw leave nothing behind', async () => {
    await using world = await setup();
    world.proxy.faults.swallow = ({ object }) => object.metadata?.name === 'ghost';
    await world.write('ghost', '1');
    await world.remove('ghost');
    await world.write('a', '1');
    await world.converge();
    expect(world.seen).toEqual(['add a']);
  });

  test('never goes back to what a lagging API server shows', async () => {
    await using world = await setup();
    await world.write('a', '1');
    await world.converge();
    await world.proxy.fallBehind(world.path);
    await world.write('b', '1');
    await world.remove('a');
    await world.converge();
    world.seen.length = 0;
    const before = show(world.store.values());

    world.proxy.expireWatches();
    await waitFor('several lists from the past', () => lists(world.proxy) >= 4);
    expect(show(world.store.values())).toBe(before);
    expect(world.seen).toEqual([]);

    world.proxy.catchUp();
    world.proxy.cutWatches('reset');
    await world.write('c', '1');
    await world.converge();
    expect(world.seen).toEqual(['add c']);
  });
});
