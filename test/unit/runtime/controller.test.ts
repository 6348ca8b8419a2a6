import { pino } from 'pino';
import { Registry } from 'prom-client';
import { afterEach, describe, expect, test } from 'vitest';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { ConflictError, TransportError } from '../../../src/kube/errors.ts';
import { keyOf, type Pod } from '../../../src/kube/types.ts';
import { createControllerMetrics } from '../../../src/runtime/controller-metrics.ts';
import { Controller, type ControllerOptions } from '../../../src/runtime/controller.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { type AddKey, type Source, storeSource } from '../../../src/runtime/source.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

function pod(name: string, version: number, owner = name): Pod {
  return { metadata: { name, namespace: 'ns', resourceVersion: String(version), labels: { owner } } };
}

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** A source that adds the keys that a test names. */
function manualSource(): Source & { enqueue: (key: string) => void } {
  const early: string[] = [];
  let add: AddKey = (key) => void early.push(key);
  return {
    synced: Promise.resolve(),
    start: (addKey) => {
      add = addKey;
      for (const key of early) add(key);
      return () => undefined;
    },
    enqueue: (key) => add(key),
  };
}

function start(reconcile: ControllerOptions['reconcile'], options: Partial<ControllerOptions> = {}) {
  const clock = fakeClock();
  const log = pino({ level: 'silent' });
  const registry = new Registry();
  const cache = new Cache<Pod>({ onListenerError: () => undefined });
  const stop = new AbortController();
  const abort = new AbortController();
  const lines: Record<string, unknown>[] = [];
  const manual = manualSource();
  const { sources = [storeSource(cache.store, (object) => [keyOf(object)])], ...rest } = options;
  const controller = new Controller({
    name: 'test',
    sources: [...sources, manual],
    reconcile,
    concurrency: 2,
    timeoutMs: 10_000,
    clock,
    log,
    metrics: createControllerMetrics(registry, clock)('test', 2),
    ...rest,
  });
  const done = controller.run({ stop: stop.signal, abort: abort.signal });
  stops.push(async () => {
    abort.abort(new Error('test over'));
    await done;
  });
  const metric = async (name: string, labels = ''): Promise<string | undefined> => {
    const text = await registry.metrics();
    const all = `{controller="test"${labels}}`;
    return text
      .split('\n')
      .find((line) => line.startsWith(`${name}${all}`))
      ?.split(' ')[1];
  };
  return { clock, cache, enqueue: manual.enqueue, stop, abort, done, metric, lines };
}

function conflict(): ConflictError {
  return new ConflictError({ message: 'conflict', status: 409, reason: 'Conflict' });
}

describe('the start', () => {
  test('no worker runs before every cache is complete', async () => {
    const seen: string[] = [];
    const { cache, enqueue } = start(async (key) => void seen.push(key));
    enqueue('ns/early');
    cache.upsert(pod('half', 1));
    await settle();
    expect(seen).toEqual([]);
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await settle();
    expect(new Set(seen)).toEqual(new Set(['ns/early', 'ns/a']));
  });

  test('what exists already is looked at, as after winning the lease late', async () => {
    const cache = new Cache<Pod>({ onListenerError: () => undefined });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    const seen: string[] = [];
    start(async (key) => void seen.push(key), { sources: [storeSource(cache.store, (object) => [keyOf(object)])] });
    await settle();
    expect(seen).toEqual(['ns/a']);
  });

  test('stopping before the caches are complete ends it', async () => {
    const { stop, done } = start(() => Promise.resolve());
    stop.abort();
    await done;
  });
});

test('both sides of a change are looked at', async () => {
  const cache = new Cache<Pod>({ onListenerError: () => undefined });
  cache.replace([cache.prepare(pod('a', 1, 'first'))], '2');
  const seen: string[] = [];
  const source = storeSource(cache.store, (object) => [object.metadata.labels?.['owner'] ?? '']);
  start(async (key) => void seen.push(key), { sources: [source] });
  await settle();
  seen.length = 0;
  cache.upsert(pod('a', 3, 'second'));
  await settle();
  expect(new Set(seen)).toEqual(new Set(['first', 'second']));
});

describe('the outcome', () => {
  test('an error is tried again after 1 s, then 2 s, and success starts over', async () => {
    let runs = 0;
    const outcomes = [true, true, false, true];
    const { cache, clock, metric, enqueue } = start(async () => {
      runs += 1;
      if (outcomes.shift() === true) throw new Error('no');
    });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await settle();
    expect(runs).toBe(1);
    await clock.advance(1_000);
    expect(runs).toBe(2);
    await clock.advance(1_999);
    expect(runs).toBe(2);
    await clock.advance(1);
    expect(runs).toBe(3);
    enqueue('ns/a');
    await clock.advance(1_000);
    expect(runs).toBe(5);
    expect(await metric('controller_runtime_reconcile_errors_total')).toBe('3');
    expect(await metric('controller_runtime_terminal_reconcile_errors_total')).toBe('0');
    expect(await metric('controller_runtime_reconcile_total', ',result="success"')).toBe('2');
  });

  test('while nothing answers every key is tried again soon, and none is blamed for it', async () => {
    let runs = 0;
    const refused = new TransportError({ message: 'refused', status: 0, reason: 'ECONNREFUSED' });
    const { cache, clock } = start(async () => {
      runs += 1;
      throw runs <= 200 ? refused : new Error('no');
    });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await clock.advance(199 * 500);
    expect(runs).toBe(200);
    await clock.advance(500);
    expect(runs).toBe(201);
    // The first failure of its own.
    await clock.advance(1_000);
    expect(runs).toBe(202);
  });

  test('requeueAfterMs comes back then', async () => {
    let runs = 0;
    const { cache, clock, metric } = start(async () => {
      runs += 1;
      return { requeueAfterMs: 5_000 };
    });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await clock.advance(4_999);
    expect(runs).toBe(1);
    await clock.advance(1);
    expect(runs).toBe(2);
    expect(await metric('controller_runtime_reconcile_total', ',result="requeue_after"')).toBe('2');
  });

  test('a conflict is looked at again soon and is no error', async () => {
    let runs = 0;
    const { cache, clock, metric } = start(async () => {
      runs += 1;
      if (runs < 3) throw conflict();
    });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await clock.advance(50 + 100);
    expect(runs).toBe(3);
    expect(await metric('controller_runtime_reconcile_errors_total')).toBe('0');
    expect(await metric('controller_runtime_reconcile_total', ',result="requeue"')).toBe('2');
  });

  test('a function that throws at once does not end the worker', async () => {
    const seen: string[] = [];
    const { cache } = start(
      (key) => {
        seen.push(key);
        throw new TypeError('undefined is not a function');
      },
      { concurrency: 1 },
    );
    cache.replace([cache.prepare(pod('a', 1)), cache.prepare(pod('b', 1))], '2');
    await settle();
    expect(seen).toEqual(['ns/a', 'ns/b']);
  });

  test('a reconcile over its time is told to end, counted and tried again', async () => {
    let runs = 0;
    const { cache, clock, metric } = start((_key, { signal }) => {
      runs += 1;
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await clock.advance(10_000);
    expect(runs).toBe(1);
    expect(await metric('controller_runtime_reconcile_timeouts_total')).toBe('1');
    await clock.advance(1_000);
    expect(runs).toBe(2);
  });
});

test('each line of a reconcile carries controller, key and an id of its own', async () => {
  const lines: { key?: string; reconcileID?: string; controller?: string; msg: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) });
  const { cache } = start(async (_key, context) => context.log.info('hello'), { log });
  cache.replace([cache.prepare(pod('a', 1)), cache.prepare(pod('b', 1))], '2');
  await settle();
  const hellos = lines.filter(({ msg }) => msg === 'hello');
  expect(hellos.map(({ key, controller }) => [key, controller])).toEqual([
    ['ns/a', 'test'],
    ['ns/b', 'test'],
  ]);
  expect(new Set(hellos.map(({ reconcileID }) => reconcileID)).size).toBe(2);
});

describe('the fence', () => {
  test('a key whose write is not in the cache yet is not worked on, and is as soon as it is', async () => {
    const cache = new Cache<Pod>({ onListenerError: () => undefined });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    const clock = fakeClock();
    const fence = new Fence(clock, pino({ level: 'silent' }));
    const seen: (string | undefined)[] = [];
    const { enqueue } = start(
      async (key) => {
        seen.push(cache.store.get(key)?.metadata.resourceVersion);
        if (seen.length === 1) fence.wrote(key, cache.store, pod('a', 7));
      },
      { fence, clock, sources: [storeSource(cache.store, (object) => [keyOf(object)])] },
    );
    await settle();
    enqueue('ns/a');
    await clock.advance(1_000);
    expect(seen).toEqual(['1']);
    cache.upsert(pod('a', 7));
    await settle();
    expect(seen).toEqual(['1', '7']);
  });

  test('a key whose event never comes is worked on when the fence gives up', async () => {
    const cache = new Cache<Pod>({ onListenerError: () => undefined });
    cache.replace([cache.prepare(pod('a', 1))], '2');
    const clock = fakeClock();
    const fence = new Fence(clock, pino({ level: 'silent' }));
    let runs = 0;
    const { enqueue } = start(
      async (key) => {
        runs += 1;
        if (runs === 1) fence.wrote(key, cache.store, pod('a', 7));
      },
      { fence, clock, sources: [storeSource(cache.store, (object) => [keyOf(object)])] },
    );
    await settle();
    enqueue('ns/a');
    await clock.advance(29_999);
    expect(runs).toBe(1);
    await clock.advance(1);
    expect(runs).toBe(2);
  });
});

describe('the end', () => {
  test('stop waits for what is running and takes nothing more', async () => {
    const running = Promise.withResolvers<void>();
    const seen: string[] = [];
    const { cache, stop, done } = start(
      async (key) => {
        seen.push(key);
        await running.promise;
      },
      { concurrency: 1 },
    );
    cache.replace([cache.prepare(pod('a', 1)), cache.prepare(pod('b', 1))], '2');
    await settle();
    stop.abort();
    const ended = await Promise.race([done.then(() => 'ended'), settle().then(() => 'running')]);
    expect(ended).toBe('running');
    running.resolve();
    await done;
    expect(seen).toEqual(['ns/a']);
  });

  test('abort ends what is running, and that is no error', async () => {
    const { cache, abort, done, metric } = start(
      (_key, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error));
        }),
    );
    cache.replace([cache.prepare(pod('a', 1))], '2');
    await settle();
    abort.abort(new Error('lease lost'));
    await done;
    expect(await metric('controller_runtime_reconcile_errors_total')).toBe('0');
    expect(await metric('controller_runtime_active_workers')).toBe('0');
  });
});

test('what is there at the start comes in the order asked for, what happens then with the priority of its object', () => {
  const cache = new Cache<Pod>({ onListenerError: () => undefined });
  cache.replace([pod('b', 1), pod('c', 2), pod('a', 3)], '3');
  const byName = (left: Pod, right: Pod): number => left.metadata.name.localeCompare(right.metadata.name);
  const added: string[] = [];
  const options = {
    order: byName,
    priorityOf: ({ metadata }: Pod) => (metadata.name === '0' ? 'normal' : 'low'),
  } as const;
  const end = storeSource(cache.store, (object) => [object.metadata.name], options).start((key, priority) => {
    added.push(`${key} ${priority ?? 'normal'}`);
  });
  cache.upsert(pod('0', 4));
  cache.upsert(pod('a', 5));
  cache.remove(pod('a', 6));
  end();
  expect(added).toEqual(['a low', 'b low', 'c low', '0 normal', 'a low', 'a normal']);
});
