import { pino } from 'pino';
import { expect, test } from 'vitest';
import { catchUp } from '../../../src/controllers/catch-up.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { KubeObject } from '../../../src/kube/types.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

function object(name: string, resourceVersion: string): KubeObject {
  return { metadata: { name, namespace: 'default', resourceVersion } };
}

/** A new leader whose cache of instances shows one state while etcd has another. */
function takeover(etcd: { version: string; objects: KubeObject[] }) {
  const cache = new Cache<KubeObject>({ onListenerError: () => undefined });
  cache.replace([object('a', '5'), object('b', '6')], '10');
  const clock = fakeClock();
  const calls: object[] = [];
  const client: Pick<KubeClient, 'list'> = {
    list(_type, options = {}) {
      calls.push(options);
      const { limit = 0, continue: from } = options;
      const start = Number(from ?? 0);
      const items = etcd.objects.slice(start, start + limit);
      const next = start + limit < etcd.objects.length ? { continue: String(start + limit) } : {};
      return Promise.resolve({ items: items as never[], resourceVersion: etcd.version, ...next });
    },
  };
  const behind: number[] = [];
  const stop = new AbortController();
  let result: boolean | undefined;
  const log = pino({ level: 'silent' });
  const onBehind = (caches: number) => void behind.push(caches);
  void catchUp({ client, stores: { instances: cache.store }, clock, log, onBehind }, stop.signal).then(
    (is) => (result = is),
  );
  return { cache, clock, calls, behind, stop, result: () => result };
}

const SAME = [object('a', '5'), object('b', '6')];

test('a cache that has reached the version of the API server is current', async () => {
  const { result, calls, behind } = takeover({ version: '10', objects: SAME });
  await settle();
  expect(result()).toBe(true);
  expect(calls).toMatchObject([{ limit: 1 }]);
  expect(behind).toEqual([1, 0]);
});

// Other kinds move the version on, and a bookmark comes once a minute.
test('a cache of a quiet kind is current when it shows the same objects', async () => {
  const { result } = takeover({ version: '99', objects: SAME });
  await settle();
  expect(result()).toBe(true);
});

test.each([
  ['was made', [...SAME, object('c', '12')]],
  ['was changed', [object('a', '12'), object('b', '6')]],
  ['was deleted', [object('a', '5')]],
  ['came back', [object('a', '5'), object('b', '13')]],
])('a cache that does not show that an object %s is waited for', async (_what, objects) => {
  const { cache, clock, result, behind } = takeover({ version: '20', objects });
  await clock.advance(5_000);
  expect(result()).toBeUndefined();
  expect(behind.at(-1)).toBe(1);
  cache.replace(objects, '20');
  await clock.advance(1_000);
  expect(result()).toBe(true);
  expect(behind.at(-1)).toBe(0);
});

test('what changed after the list is no difference', async () => {
  const { cache, clock, result } = takeover({ version: '20', objects: [object('a', '12'), object('b', '6')] });
  await clock.advance(1_000);
  expect(result()).toBeUndefined();
  cache.upsert(object('a', '30'));
  await clock.advance(1_000);
  expect(result()).toBe(true);
});

test('a cache whose watch hangs ends the term after a minute', async () => {
  const { clock, result, behind } = takeover({ version: '20', objects: [object('a', '12')] });
  await clock.advance(59_000);
  expect(result()).toBeUndefined();
  await clock.advance(2_000);
  expect(result()).toBe(false);
  expect(behind.at(-1)).toBe(1);
});

test('a stop ends the wait', async () => {
  const { clock, stop, result } = takeover({ version: '20', objects: [object('a', '12')] });
  await settle();
  stop.abort();
  await clock.advance(1_000);
  expect(result()).toBe(false);
});
