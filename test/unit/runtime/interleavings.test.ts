import fc from 'fast-check';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { keyOf, type Pod } from '../../../src/kube/types.ts';
import { Controller } from '../../../src/runtime/controller.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { storeSource } from '../../../src/runtime/source.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

const change = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  kind: fc.constantFrom('upsert' as const, 'upsert' as const, 'remove' as const),
});

/** What a reconcile does besides reading: nothing, fail once, or write something that the cache shows later. */
const behaviour = fc.constantFrom('read' as const, 'fail' as const, 'write' as const);

test('however calls and events interleave, no key runs twice at once and each sees its last state', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(change, { maxLength: 12 }),
      fc.array(behaviour, { maxLength: 20 }),
      async (scheduler, changes, behaviours) => {
        const clock = fakeClock();
        const log = pino({ level: 'silent' });
        const fence = new Fence(clock, log);
        const running = new Set<string>();
        const overlaps: string[] = [];
        const cache = new Cache<Pod>({ onListenerError: (error) => overlaps.push(String(error)) });
        cache.replace([], '1');
        const lastSeen = new Map<string, string | undefined>();
        let version = 1;
        const nextPod = (name: string): Pod => ({
          metadata: { name, namespace: 'ns', uid: name, resourceVersion: String((version += 1)) },
        });
        const controller = new Controller({
          name: 'test',
          sources: [storeSource(cache.store, (object) => [keyOf(object)])],
          async reconcile(key) {
            // The controller would take a failed expectation for a failed reconcile.
            if (running.has(key)) overlaps.push(key);
            running.add(key);
            const before = cache.store.get(key)?.metadata.resourceVersion;
            await scheduler.schedule(Promise.resolve(), `call of ${key}`);
            running.delete(key);
            lastSeen.set(key, before);
            const now = behaviours.shift();
            if (now === 'fail') throw new Error('no');
            if (now !== 'write' || before === undefined) return;
            const written = nextPod(key.split('/')[1] ?? '');
            fence.wrote(key, cache.store, written);
            void scheduler.schedule(Promise.resolve(), `event of ${key}`).then(() => cache.upsert(written));
          },
          concurrency: 2,
          timeoutMs: 60_000,
          fence,
          clock,
          log,
        });
        const stop = new AbortController();
        const done = controller.run({ stop: stop.signal, abort: new AbortController().signal });
        for (const { name, kind } of changes) {
          void scheduler.schedule(Promise.resolve(), `${kind} ${name}`).then(() => cache[kind](nextPod(name)));
        }
        for (let rounds = 0; rounds < 60; rounds += 1) {
          await scheduler.waitIdle();
          await clock.advance(5_000);
        }
        await settle();
        for (const [key, seen] of lastSeen) {
          expect(cache.store.get(key)?.metadata.resourceVersion).toBe(seen);
        }
        for (const object of cache.store.values()) expect(lastSeen.has(keyOf(object))).toBe(true);
        expect(overlaps).toEqual([]);
        stop.abort();
        await done;
      },
    ),
    { numRuns: 60 },
  );
});
