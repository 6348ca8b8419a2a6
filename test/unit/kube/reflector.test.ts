import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, test } from 'vitest';
import { type KubeError, toKubeError, TransportError } from '../../../src/kube/errors.ts';
import { InformerMetrics } from '../../../src/kube/watch/informer-metrics.ts';
import { Informer, type InformerOptions } from '../../../src/kube/watch/reflector.ts';
import { type Pod, PODS } from '../../../src/kube/types.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { status } from '../../support/local-server.ts';
import { scriptedClient, type ScriptedWatch } from '../../support/scripted-client.ts';

function pod(name: string, version: number): Pod {
  return { metadata: { name, namespace: 'ns', resourceVersion: String(version) } };
}

function event(type: string, name: string, version: number) {
  return { type, object: pod(name, version) };
}

function bookmark(version: number, annotations?: Record<string, string>) {
  return { type: 'BOOKMARK', object: { metadata: { resourceVersion: String(version), annotations } } };
}

const END = { 'k8s.io/initial-events-end': 'true' };
const NO_STREAMING = toKubeError('watch', {
  status: 422,
  body: status(422, 'Invalid', 'sendInitialEvents is forbidden'),
});

function gone(): KubeError {
  return toKubeError('list', { status: 410, body: status(410, 'Expired') });
}

const running: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of running.splice(0)) await stop();
});

/** A running informer over a scripted client, on a clock that stands still. */
function start(
  script = scriptedClient<Pod>(),
  options: Pick<InformerOptions<Pod>, 'isOptional' | 'earlierVersion'> = {},
) {
  const clock = fakeClock();
  const registry = new Registry();
  const controller = new AbortController();
  const informer = new Informer({
    client: script.client,
    type: PODS,
    labelSelector: 'app=x',
    ...options,
    clock,
    random: () => 0,
    log: pino({ level: 'silent' }),
    metrics: new InformerMetrics(registry),
  });
  const changes: string[] = [];
  informer.store.onChange(({ key, before, after }) => {
    changes.push(`${after ? (before ? 'update' : 'add') : 'delete'} ${key}`);
  });
  const done = informer.run(controller.signal);
  running.push(async () => {
    controller.abort();
    await done;
  });
  return { ...script, store: informer.store, clock, registry, controller, done, changes };
}

/** Started, and listed by pages at version 10 with pods a and b; one watch is open. */
async function listed() {
  const script = scriptedClient<Pod>();
  script.refusals.push(NO_STREAMING);
  script.lists.push({ items: [pod('a', 5), pod('b', 10)], resourceVersion: '10' });
  const setup = start(script);
  await settle();
  expect(setup.watches).toHaveLength(1);
  setup.changes.length = 0;
  return setup;
}

function last<T>(list: readonly T[]): T {
  const value = list.at(-1);
  if (value === undefined) throw new Error('the list is empty');
  return value;
}

describe('the first list', () => {
  test('is streamed, and complete only at its bookmark', async () => {
    const { watches, store, listQueries } = start();
    await settle();
    expect(last(watches).query).toEqual({
      watch: 'true',
      labelSelector: 'app=x',
      allowWatchBookmarks: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      timeoutSeconds: '300',
    });
    last(watches).send(event('ADDED', 'a', 5), event('ADDED', 'b', 7), event('ADDED', 'x', 7));
    last(watches).send(event('DELETED', 'x', 8), bookmark(8));
    await settle();
    expect(store.hasSynced).toBe(false);
    last(watches).send(bookmark(10, END));
    await store.synced;
    expect([...store.values()].map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
    await settle();
    expect(last(watches).query['resourceVersion']).toBe('10');
    expect(listQueries).toEqual([]);
  });

  test('comes by pages where streaming is not offered', async () => {
    const script = scriptedClient<Pod>();
    script.refusals.push(NO_STREAMING);
    script.lists.push(
      { items: [pod('a', 5)], resourceVersion: '10', continue: 'next' },
      { items: [pod('b', 6)], resourceVersion: '10' },
    );
    const { store, listQueries, watches } = start(script);
    await store.synced;
    await settle();
    expect(store.size).toBe(2);
    expect(listQueries).toMatchObject([
      { labelSelector: 'app=x', limit: 500 },
      { limit: 500, continue: 'next' },
    ]);
    expect(last(watches).query).toEqual({
      watch: 'true',
      labelSelector: 'app=x',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '300',
      resourceVersion: '10',
    });
  });

  test('falls back to pages when a streaming list goes silent, as on a server that does not know it', async () => {
    const { watches, lists, store, clock } = start();
    await settle();
    last(watches).send(event('ADDED', 'a', 5));
    lists.push({ items: [pod('a', 5)], resourceVersion: '10' });
    await clock.advance(31_000);
    expect(store.hasSynced).toBe(true);
  });

  test('falls back to pages when a streaming list is cut off, and takes nothing from the part', async () => {
    const { watches, lists, store, clock } = start();
    await settle();
    last(watches).send(event('ADDED', 'ghost', 5));
    last(watches).end();
    lists.push({ items: [], resourceVersion: '10' });
    await clock.advance(1_000);
    expect(store.hasSynced).toBe(true);
    expect(store.size).toBe(0);
    last(watches).send({ type: 'ERROR', object: status(410, 'Expired') });
    await clock.advance(1_600);
    expect(last(watches).query['sendInitialEvents']).toBe('true');
  });

  test('that expires between two pages is asked for whole', async () => {
    const script = scriptedClient<Pod>();
    script.refusals.push(NO_STREAMING);
    script.lists.push({ items: [pod('a', 5)], resourceVersion: '10', continue: 'next' }, gone());
    const { store, listQueries, lists, clock } = start(script);
    await settle();
    lists.push({ items: [pod('b', 11)], resourceVersion: '12' });
    await clock.advance(1_000);
    expect(last(listQueries)).not.toHaveProperty('limit');
    expect([...store.values()].map(({ metadata }) => metadata.name)).toEqual(['b']);
  });

  test.each([
    [404, 'NotFound'],
    [403, 'Forbidden'],
  ])(
    'of an optional kind is empty where the API server says %i, and comes when it can be read',
    async (code, reason) => {
      const script = scriptedClient<Pod>();
      script.refusals.push(NO_STREAMING);
      const refusal = toKubeError('list', { status: code, body: status(code, reason) });
      script.lists.push(refusal, refusal);
      const { store, lists, clock, changes, registry } = start(script, { isOptional: true });
      await store.synced;
      expect(store.size).toBe(0);
      await clock.advance(59_000);
      // Nobody is alarmed by what is not there.
      expect(await registry.getSingleMetricAsString('berth_informer_stale_seconds')).toMatch(/ 0$/m);
      await clock.advance(1_000);
      lists.push({ items: [pod('a', 5)], resourceVersion: '10' });
      await clock.advance(60_000);
      expect(changes).toEqual(['add ns/a']);
    },
  );

  test('is of the earlier version where the API server does not serve the one of the type, and of this one when it does', async () => {
    const absent = toKubeError('watch', { status: 404, body: status(404, 'NotFound') });
    const script = scriptedClient<Pod>();
    script.refusals.push(absent);
    const { store, watches, refusals, clock, changes } = start(script, { isOptional: true, earlierVersion: 'v0' });
    await settle();
    last(watches).send(event('ADDED', 'a', 5), bookmark(10, END));
    await store.synced;
    await settle();
    expect(watches.map(({ path }) => path)).toEqual(['/api/v0/pods', '/api/v0/pods']);
    refusals.push(absent, absent);
    await clock.advance(2_000);
    last(watches).end();
    await clock.advance(30_000);
    expect(watches.map(({ path }) => path)).toEqual(['/api/v0/pods', '/api/v0/pods', '/api/v1/pods']);
    last(watches).send(event('ADDED', 'a', 5), event('ADDED', 'b', 12), bookmark(20, END));
    await settle();
    expect(changes).toEqual(['add ns/a', 'add ns/b']);
  });

  test('is empty where the API server serves neither version, and each is looked for again after a minute', async () => {
    const absent = toKubeError('watch', { status: 404, body: status(404, 'NotFound') });
    const script = scriptedClient<Pod>();
    script.refusals.push(absent, absent);
    const { store, watches, refusals, clock } = start(script, { isOptional: true, earlierVersion: 'v0' });
    await store.synced;
    expect(store.size).toBe(0);
    await clock.advance(59_000);
    expect(watches).toEqual([]);
    refusals.push(absent);
    await clock.advance(1_000);
    expect(watches.map(({ path }) => path)).toEqual(['/api/v0/pods']);
  });

  test('of a kind that is not optional waits where the API server does not serve it', async () => {
    const script = scriptedClient<Pod>();
    script.refusals.push(NO_STREAMING);
    script.lists.push(toKubeError('list', { status: 404, body: status(404, 'NotFound') }));
    const { store } = start(script);
    await settle();
    expect(store.hasSynced).toBe(false);
  });

  test('that fails is tried again after 0.8 s, then twice as long, up to 30 s', async () => {
    const script = scriptedClient<Pod>();
    script.refusals.push(NO_STREAMING);
    const { listQueries, clock } = start(script);
    await settle();
    for (const wait of [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]) {
      const before = listQueries.length;
      await clock.advance(wait - 1);
      expect(listQueries).toHaveLength(before);
      await clock.advance(1);
      expect(listQueries).toHaveLength(before + 1);
    }
  });
});

describe('a watch', () => {
  test('applies what comes and moves the version on', async () => {
    const { watches, store, changes } = await listed();
    last(watches).send(event('ADDED', 'c', 11), event('MODIFIED', 'a', 12), event('DELETED', 'b', 13), bookmark(20));
    await settle();
    expect(changes).toEqual(['add ns/c', 'update ns/a', 'delete ns/b']);
    expect(store.resourceVersion).toBe('20');
  });

  test('that ends in good order goes on at once from the version reached, by bookmarks too', async () => {
    const { watches, clock } = await listed();
    last(watches).send(bookmark(30));
    await clock.advance(2_000);
    last(watches).end();
    await settle();
    expect(watches).toHaveLength(2);
    expect(last(watches).query['resourceVersion']).toBe('30');
  });

  test('that ends at once and empty is not asked for in a tight loop', async () => {
    const { watches, clock } = await listed();
    last(watches).end();
    await settle();
    expect(watches).toHaveLength(1);
    await clock.advance(800);
    expect(watches).toHaveLength(2);
  });

  test.each<[string, (watch: ScriptedWatch) => void]>([
    ['is reset', (watch) => watch.reset()],
    ['ends in half a line', (watch) => watch.write('{"type":').end()],
    ['brings a line that is not JSON', (watch) => void watch.write('oops\n')],
    ['brings an unknown event', (watch) => void watch.write('{"type":"X","object":{}}\n')],
  ])('that %s goes on from the version reached, after a pause', async (_name, breakIt) => {
    const { watches, clock, store, changes } = await listed();
    last(watches).send(event('ADDED', 'c', 11));
    await settle();
    breakIt(last(watches));
    await settle();
    expect(watches).toHaveLength(1);
    await clock.advance(800);
    expect(watches).toHaveLength(2);
    expect(last(watches).query['resourceVersion']).toBe('11');
    expect(changes).toEqual(['add ns/c']);
    expect(store.size).toBe(3);
  });

  test('that is silent for two and a half minutes is opened anew', async () => {
    const { watches, clock } = await listed();
    await clock.advance(140_000);
    last(watches).send(bookmark(11));
    await clock.advance(140_000);
    expect(watches).toHaveLength(1);
    await clock.advance(11_000);
    expect(watches).toHaveLength(2);
    expect(watches[0]?.closed).toBe(true);
  });

  test.each([
    ['429', toKubeError('watch', { status: 429, body: status(429, 'TooManyRequests') })],
    ['503', toKubeError('watch', { status: 503, body: 'no' })],
    ['403', toKubeError('watch', { status: 403, body: status(403, 'Forbidden') })],
  ])('refused with %s is tried again without a list', async (_code, refusal) => {
    const { watches, refusals, clock, listQueries } = await listed();
    refusals.push(refusal);
    last(watches).reset();
    await clock.advance(800 + 1600);
    expect(watches).toHaveLength(2);
    expect(listQueries).toHaveLength(1);
  });

  test('refused with Retry-After waits as long as the server asks, half a minute at most', async () => {
    const { watches, refusals, clock } = await listed();
    for (const retryAfterMs of [20_000, 3_600_000]) {
      refusals.push(toKubeError('watch', { status: 429, body: status(429, 'TooManyRequests'), retryAfterMs }));
    }
    last(watches).reset();
    await clock.advance(500 + 19_999);
    expect(refusals).toHaveLength(1);
    await clock.advance(1 + 30_000);
    expect(watches).toHaveLength(2);
  });

  test.each([['as an event'], ['as an answer']])('too old for the server (410 %s) makes a list', async (how) => {
    const { watches, refusals, clock, lists, changes, store } = await listed();
    if (how === 'as an answer') {
      refusals.push(gone());
      last(watches).reset();
    } else {
      last(watches).send({ type: 'ERROR', object: status(410, 'Expired') });
    }
    lists.push({ items: [pod('b', 10), pod('d', 40)], resourceVersion: '50' });
    await clock.advance(800 + 1600);
    expect(changes).toEqual(['delete ns/a', 'add ns/d']);
    expect(last(watches).query['resourceVersion']).toBe('50');
    expect(store.resourceVersion).toBe('50');
  });

  test('of a resource that is gone (404) keeps what is known until it can list again', async () => {
    const { watches, refusals, clock, store, lists } = await listed();
    refusals.push(toKubeError('watch', { status: 404, body: '404 page not found' }));
    last(watches).reset();
    lists.push(toKubeError('list', { status: 404, body: '404 page not found' }));
    await clock.advance(800 + 1600);
    expect(store.size).toBe(2);
    lists.push({ items: [], resourceVersion: '60' });
    await clock.advance(3200);
    expect(store.size).toBe(0);
  });
});

describe('going back in time', () => {
  test('an older list is refused and asked for again', async () => {
    const { watches, lists, clock, store, changes } = await listed();
    last(watches).send(event('ADDED', 'c', 100));
    last(watches).send({ type: 'ERROR', object: status(410, 'Expired') });
    lists.push({ items: [], resourceVersion: '99' }, { items: [pod('c', 100)], resourceVersion: '101' });
    await settle();
    expect(store.size).toBe(3);
    expect(store.resourceVersion).toBe('100');
    await clock.advance(800);
    expect(changes).toEqual(['add ns/c', 'delete ns/a', 'delete ns/b']);
  });

  test('an older event makes a list instead of a change', async () => {
    const { watches, lists, clock, changes } = await listed();
    last(watches).send(event('DELETED', 'a', 9));
    lists.push({ items: [pod('a', 5), pod('b', 10)], resourceVersion: '11' });
    await clock.advance(800);
    expect(changes).toEqual([]);
    expect(watches).toHaveLength(2);
  });
});

test('a list that fails halfway is not read as mass deletion', async () => {
  const { watches, lists, clock, store } = await listed();
  last(watches).send({ type: 'ERROR', object: status(410, 'Expired') });
  lists.push({ items: [], resourceVersion: '50', continue: 'next' }, toKubeError('list', { status: 500, body: '' }));
  await clock.advance(800);
  expect(store.size).toBe(2);
});

test('an API server that starts is asked again soon, whatever it answers, and lists what is too old at once', async () => {
  const { watches, lists, refusals, clock, listQueries } = await listed();
  refusals.push(
    new TransportError({ message: 'refused', status: 0, reason: 'ECONNREFUSED' }),
    toKubeError('watch', { status: 503, body: status(503, 'ServiceUnavailable'), retryAfterMs: 5_000 }),
    toKubeError('watch', { status: 403, body: status(403, 'Forbidden') }),
    toKubeError('watch', { status: 410, body: status(410, 'Expired') }),
  );
  lists.push({ items: [pod('b', 10)], resourceVersion: '50' });
  last(watches).reset();
  await clock.advance(800 + 3 * 500);
  expect(refusals).toEqual([]);
  expect(listQueries).toHaveLength(2);
  expect(watches).toHaveLength(2);
  // A version that is too old again after a list is not asked for in a tight loop.
  last(watches).send({ type: 'ERROR', object: status(410, 'Expired') });
  lists.push({ items: [pod('b', 10)], resourceVersion: '51' });
  await settle();
  expect(listQueries).toHaveLength(2);
  await clock.advance(500);
  expect(listQueries).toHaveLength(3);
});

test('stopping closes the watch, leaves no timer and resolves', async () => {
  const { controller, done, watches, clock } = await listed();
  controller.abort();
  await done;
  expect(last(watches).closed).toBe(true);
  expect(clock.pending).toBe(0);
});

test('the metrics tell size, sync, freshness, and why watches ended', async () => {
  const { registry, watches, clock } = await listed();
  last(watches).send(event('ADDED', 'c', 11), bookmark(12));
  await clock.advance(40_000);
  last(watches).reset();
  await settle();
  const text = await registry.metrics();
  expect(text).toContain('berth_informer_objects{kind="Pod"} 3');
  expect(text).toContain('berth_informer_synced{kind="Pod"} 1');
  expect(text).toContain('berth_informer_stale_seconds{kind="Pod"} 40');
  expect(text).toContain('berth_informer_events_total{kind="Pod"} 2');
  expect(text).toContain('berth_informer_lists_total{kind="Pod",result="ok"} 1');
  expect(text).toContain('berth_informer_watch_ends_total{kind="Pod",cause="CutOff"} 1');
});
