import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { ClaimWaiter } from '../../../src/http/features/instances/claim-waiter.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

function instance(uid: string, resourceVersion: string, status?: GpuInstance['status']): GpuInstance {
  const one = gpuInstance('one', {}, status);
  return { ...one, metadata: { ...one.metadata, uid, resourceVersion } };
}

test('that an earlier instance of the name goes decides nothing about the one that is waited for', async () => {
  const clock = fakeClock();
  const cache = cacheOf<GpuInstance>([], INDEXES.instances);
  const waiter = new ClaimWaiter(cache.store, clock);
  const earlier = instance('uid-1', '1');
  cache.upsert(earlier);
  let decision: string | undefined;
  void waiter
    .decision({ namespace: 'default', name: 'one', uid: 'uid-2' }, { timeoutMs: 5_000 })
    .then((waited) => (decision = waited.decision));
  cache.remove(earlier);
  await settle();
  expect(decision).toBeUndefined();
  const own = instance('uid-2', '3', { incarnation: 1 });
  cache.upsert(own);
  await settle();
  expect(decision).toBe('granted');
});

test('that the instance itself goes does', async () => {
  const cache = cacheOf<GpuInstance>([], INDEXES.instances);
  const waiter = new ClaimWaiter(cache.store, fakeClock());
  const own = instance('uid-2', '1');
  cache.upsert(own);
  const waiting = waiter.decision({ namespace: 'default', name: 'one', uid: 'uid-2' }, { timeoutMs: 5_000 });
  cache.remove(own);
  expect((await waiting).decision).toBe('gone');
});
