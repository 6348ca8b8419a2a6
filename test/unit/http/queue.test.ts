import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { ClaimWaiter, decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { type CreateDeps, createInstance } from '../../../src/http/features/instances/create.ts';
import { PendingRemovals } from '../../../src/http/features/instances/reaper.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import type { ReadyReason } from '../../../src/resources/instances/instance-state.ts';
import { claimingCache } from '../../support/claiming-cache.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { claimedPod, claimOn, gpuInstance } from '../../support/inventory-world.ts';

// What the client of POST /instances gets, by what the controller says of its instance.

function saying(reason: ReadyReason, spec: Partial<GpuInstanceSpec>, incarnation = 0): GpuInstance {
  const ready = { type: 'Ready', status: 'False', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
  const instance = gpuInstance('i', spec, { incarnation, conditions: [ready as never] });
  return { ...instance, metadata: { ...instance.metadata, namespace: 'a', uid: 'uid-1' } };
}

const QUEUE = { onNoCapacity: 'Queue' } as const;
const FAIL = { onNoCapacity: 'Fail' } as const;

it.each<[ReadyReason, Partial<GpuInstanceSpec>, string | undefined]>([
  ['Pending', QUEUE, undefined],
  ['WaitingForCapacity', QUEUE, 'queued'],
  ['TenantLimit', QUEUE, 'queued'],
  ['QuotaExceeded', QUEUE, 'queued'],
  ['DiskTooLarge', QUEUE, 'refused'],
  ['OfferNotFound', QUEUE, 'refused'],
  ['WaitingForOffer', QUEUE, 'refused'],
  ['WaitingForCapacity', FAIL, undefined],
  ['TenantLimit', FAIL, 'refused'],
  ['NoCapacity', FAIL, 'refused'],
  // Nobody has ended for it: it was tried before.
  ['PodRejected', FAIL, 'refused'],
])('%s means to a client with %j: %s', (reason, spec, decision) => {
  expect(decisionOf(saying(reason, spec))).toBe(decision);
});

it('a place that others leave for it means to every client that the instance is there', () => {
  const claimed = { type: 'Claimed', status: 'False', reason: 'PlaceComing', message: '' };
  for (const spec of [QUEUE, FAIL]) {
    const instance = saying('PlaceComing', spec);
    const conditions = [...(instance.status?.conditions ?? []), claimed as never];
    expect(decisionOf({ ...instance, status: { ...instance.status, conditions } })).toBe('queued');
  }
});

let cache: Cache<GpuInstance>;
let pods: Cache<Pod>;
let waiter: ClaimWaiter;
let clock: ReturnType<typeof fakeClock>;

beforeEach(() => {
  clock = fakeClock();
  pods = new Cache<Pod>({ onListenerError: () => undefined });
  pods.replace([], '1');
  cache = claimingCache(pods);
  waiter = new ClaimWaiter(cache.store, clock);
});

afterEach(() => waiter.close());

function create(spec: Partial<GpuInstanceSpec>) {
  const deleted: string[] = [];
  const client = {
    create: (_type: unknown, wanted: GpuInstance) =>
      Promise.resolve({ ...wanted, metadata: { ...wanted.metadata, name: 'i', uid: 'uid-1' } }),
    patch: () => Promise.resolve({ ...saying('Pending', spec), spec }),
    delete: (_type: unknown, { name }: { name: string }) => Promise.resolve(deleted.push(name)),
  } as unknown as KubeClient;
  const deps = {
    offers: { grant: () => ({ refusal: 'NoCapacity', message: '' }), preempt: () => undefined },
    gate: new ClaimGate(1, clock),
    client,
    waiter,
    removals: new PendingRemovals(),
    idempotentName: () => Promise.resolve('i'),
    clock,
    log: pino({ level: 'silent' }),
  } as unknown as CreateDeps;
  const wanted = gpuInstance('i', spec).spec;
  const request = { namespace: 'a', spec: wanted, createdBy: 'key/k' };
  const created = createInstance(deps, { ...request, signal: new AbortController().signal });
  created.catch(() => undefined);
  return { created, deleted };
}

it('one that queues stays, although nothing is free', async () => {
  const { created, deleted } = create(QUEUE);
  await clock.advance(0);
  cache.replace([saying('WaitingForCapacity', QUEUE)], '2');
  await expect(created).resolves.toMatchObject({ outcome: 'queued', instance: {} });
  expect(deleted).toEqual([]);
});

it.each(['the pod', 'the instance'])(
  'one whose claim is on its pod has its place, when the cache shows %s last',
  async (last) => {
    const { created, deleted } = create({});
    await clock.advance(0);
    const { status: _none, ...instance } = saying('Pending', {});
    const pod = claimedPod(instance, claimOn('n'));
    const shows = [() => pods.upsert(pod), () => cache.upsert(instance)];
    for (const show of last === 'the pod' ? shows.toReversed() : shows) show();
    await expect(created).resolves.toMatchObject({ outcome: 'granted' });
    expect(deleted).toEqual([]);
  },
);

it('one that queues is answered soon, also while no controller runs', async () => {
  const { created, deleted } = create(QUEUE);
  await clock.advance(2000);
  await expect(created).resolves.toMatchObject({ outcome: 'queued' });
  expect(deleted).toEqual([]);
});

it('one that queues for what can never be is refused', async () => {
  const { created, deleted } = create(QUEUE);
  await clock.advance(0);
  cache.replace([saying('DiskTooLarge', QUEUE)], '2');
  await expect(created).resolves.toMatchObject({ outcome: 'refused' });
  expect(deleted).toEqual(['i']);
});

it('a template that the controller does not know yet is waited for', async () => {
  const spec = { ...QUEUE, templateId: 7 };
  const { created, deleted } = create(spec);
  await clock.advance(0);
  cache.replace([saying('TemplateNotFound', spec)], '2');
  await clock.advance(1000);
  cache.replace([saying('Scheduling', spec, 1)], '3');
  await expect(created).resolves.toMatchObject({ outcome: 'granted' });
  expect(deleted).toEqual([]);
});

it('a template that the controller does not find is none', async () => {
  const spec = { ...QUEUE, templateId: 7 };
  const { created, deleted } = create(spec);
  await clock.advance(0);
  cache.replace([saying('TemplateNotFound', spec)], '2');
  await clock.advance(2000);
  await expect(created).resolves.toMatchObject({ outcome: 'refused' });
  expect(deleted).toEqual(['i']);
});
