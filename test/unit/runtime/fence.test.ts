import fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { fakeClock } from '../../support/fake-clock.ts';

function pod(name: string, version: number, extra: object = {}): Pod {
  return { metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: String(version), ...extra } };
}

function setup() {
  const clock = fakeClock();
  const cache = new Cache<Pod>({ onListenerError: () => undefined });
  cache.replace([cache.prepare(pod('a', 5))], '10');
  return { clock, cache, fence: new Fence(clock, pino({ level: 'silent' })), store: cache.store };
}

describe('a key waits after a write', () => {
  test('until the cache has the version written', () => {
    const { cache, fence, store } = setup();
    fence.wrote('ns/root', store, pod('a', 12));
    expect(fence.wait('ns/root')).toBe(30_000);
    cache.upsert(pod('a', 11));
    expect(fence.wait('ns/root')).toBe(30_000);
    cache.upsert(pod('a', 12));
    expect(fence.wait('ns/root')).toBe(0);
  });

  test('until the cache is past it by way of others', () => {
    const { cache, fence, store } = setup();
    fence.wrote('ns/root', store, pod('new', 12));
    cache.advance('13');
    expect(fence.wait('ns/root')).toBe(0);
  });

  test('not at all when the event was faster than the answer', () => {
    const { cache, fence, store } = setup();
    cache.upsert(pod('new', 12));
    fence.wrote('ns/root', store, pod('new', 12));
    expect(fence.wait('ns/root')).toBe(0);
  });

  test('of several objects until the last is there', () => {
    const { cache, fence, store } = setup();
    fence.wrote('ns/root', store, pod('x', 11));
    fence.wrote('ns/root', store, pod('y', 12));
    cache.upsert(pod('x', 11));
    expect(fence.wait('ns/root')).toBe(30_000);
    cache.upsert(pod('y', 12));
    expect(fence.wait('ns/root')).toBe(0);
  });

  test('and other keys do not', () => {
    const { fence, store } = setup();
    fence.wrote('ns/root', store, pod('a', 12));
    expect(fence.wait('ns/other')).toBe(0);
  });
});

describe('a key waits after a delete', () => {
  test.each([
    ['the object is gone', (cache: ReturnType<typeof setup>['cache']) => cache.remove(pod('a', 11))],
    ['it is being deleted', (cache) => cache.upsert(pod('a', 11, { deletionTimestamp: '2026-01-01T00:00:00Z' }))],
    ['another of its name is there', (cache) => cache.upsert(pod('a', 11, { uid: 'uid-second' }))],
  ] as [string, (cache: ReturnType<typeof setup>['cache']) => void][])('until %s', (_what, change) => {
    const { cache, fence, store } = setup();
    fence.deleted('ns/root', store, pod('a', 5));
    cache.upsert(pod('other', 11));
    expect(fence.wait('ns/root')).toBe(30_000);
    change(cache);
    expect(fence.wait('ns/root')).toBe(0);
  });
});

test('a lost event holds a key for half a minute and no longer', async () => {
  const { clock, fence, store } = setup();
  fence.wrote('ns/root', store, pod('a', 12));
  await clock.advance(29_999);
  expect(fence.wait('ns/root')).toBe(1);
  await clock.advance(1);
  expect(fence.wait('ns/root')).toBe(0);
});

test('a key is free exactly when the cache has reached all that was written for it', () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('write' as const), key: fc.constantFrom('k', 'l'), name: fc.constantFrom('a', 'b') }),
    fc.record({ kind: fc.constant('see' as const), upTo: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const { cache, fence, store } = setup();
      let version = 10;
      let seen = 10;
      const writes: { key: string; name: string; version: number }[] = [];
      for (const one of steps) {
        if (one.kind === 'write') {
          version += 1;
          writes.push({ key: one.key, name: one.name, version });
          fence.wrote(one.key, store, pod(one.name, version));
        } else {
          seen += one.upTo % (version - seen + 1);
          const events = writes.filter((write) => write.version <= seen);
          for (const write of events) {
            if (write.version > Number(store.resourceVersion)) cache.upsert(pod(write.name, write.version));
          }
        }
        for (const key of ['k', 'l']) {
          const open = writes.some((write) => write.key === key && write.version > seen);
          expect(fence.wait(key) > 0).toBe(open);
        }
      }
    }),
  );
});
