import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { ClaimWaiter, decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { type CreateDeps, createInstance } from '../../../src/http/features/instances/create.ts';
import { PendingRemovals } from '../../../src/http/features/instances/reaper.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import type { Condition, ObjectRef } from '../../../src/kube/types.ts';
import { fold } from '../../../src/resources/history-fold.ts';
import type { InstanceHistory } from '../../../src/resources/instance-history.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import {
  ANSWERED,
  type GpuInstance,
  type GpuInstanceSpec,
  type GpuInstanceStatus,
} from '../../../src/resources/instances/gpu-instance.ts';
import { READY_REASONS, type ReadyReason } from '../../../src/resources/instances/instance-state.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

// A request with an Idempotency-Key, and the same request again, whatever became of its instance meanwhile.

const REASONS = Object.keys(READY_REASONS) as ReadyReason[];
const QUEUE = { onNoCapacity: 'Queue' } as const;
const FAIL = { onNoCapacity: 'Fail' } as const;
const NAME = 'i-key';

function refusedCall(status: number, reason: string): Error {
  return toKubeError('CALL /', { status, body: { kind: 'Status', reason } });
}

function condition(type: string, reason: string): Condition {
  return { type, status: 'False', reason, message: '', lastTransitionTime: '2026-01-01T00:00:00Z' };
}

/** An API server with one name for an instance, and one replica that serves requests. */
function world(spec: Partial<GpuInstanceSpec>) {
  const clock = fakeClock();
  const cache = cacheOf<GpuInstance>([], INDEXES.instances);
  const waiter = new ClaimWaiter(cache.store, clock);
  const histories: InstanceHistory[] = [];
  let [instance, version, created]: [GpuInstance | undefined, number, number] = [undefined, 1, 0];
  const put = (after: GpuInstance): GpuInstance => {
    version += 1;
    instance = { ...after, metadata: { ...after.metadata, resourceVersion: String(version) } };
    cache.upsert(instance);
    return instance;
  };
  const gone = (): void => {
    if (instance !== undefined) cache.remove(instance);
    instance = undefined;
  };
  const hooks = { beforeCreate: () => {}, beforeAnswer: () => {}, afterList: () => {} };
  const client = {
    create(_type: unknown, wanted: GpuInstance) {
      hooks.beforeCreate();
      if (instance !== undefined) return Promise.reject(refusedCall(409, 'AlreadyExists'));
      created += 1;
      const metadata = { ...wanted.metadata, uid: `uid-${created}`, creationTimestamp: '2026-01-01T00:00:00Z' };
      return Promise.resolve(put({ ...wanted, metadata }));
    },
    get: () => (instance === undefined ? Promise.reject(refusedCall(404, 'NotFound')) : Promise.resolve(instance)),
    patch(_type: unknown, _ref: ObjectRef, body: { metadata: GpuInstance['metadata'] }) {
      hooks.beforeAnswer();
      if (instance?.metadata.uid !== body.metadata.uid || instance === undefined)
        return Promise.reject(refusedCall(404, 'NotFound'));
      const annotations = { ...instance.metadata.annotations, ...body.metadata.annotations };
      return Promise.resolve(put({ ...instance, metadata: { ...instance.metadata, annotations } }));
    },
    delete(_type: unknown, _ref: ObjectRef, only: { uid?: string; resourceVersion?: string }) {
      if (instance === undefined) return Promise.resolve();
      const isOther = only.resourceVersion !== undefined && only.resourceVersion !== instance.metadata.resourceVersion;
      if (isOther || only.uid !== instance.metadata.uid) return Promise.reject(refusedCall(409, 'Conflict'));
      gone();
      return Promise.resolve();
    },
    list() {
      const items = [...histories];
      hooks.afterList();
      return Promise.resolve({ items, resourceVersion: '1' });
    },
  } as unknown as KubeClient;
  const deps = {
    offers: { grant: () => ({ refusal: 'NoCapacity', message: '' }), preempt: () => undefined },
    gate: new ClaimGate(8, clock),
    client,
    waiter,
    removals: new PendingRemovals(),
    idempotentName: () => Promise.resolve(NAME),
    clock,
    log: pino({ level: 'silent' }),
  } as unknown as CreateDeps;
  const request = () => {
    const asked = { namespace: 'a', spec: gpuInstance('i', spec).spec, createdBy: 'key/k' };
    const idempotency = { key: 'k', hash: 'hash' };
    const answer = createInstance(deps, { ...asked, idempotency, signal: new AbortController().signal });
    answer.catch(() => undefined);
    return answer;
  };
  return {
    clock,
    hooks,
    histories,
    waiter,
    made: () => created,
    there: () => instance,
    put,
    gone,
    /** What the controller says of the instance. */
    says: (reason: ReadyReason, status: GpuInstanceStatus = {}): void => {
      if (instance === undefined) throw new Error('There is no instance.');
      const claimed = reason === 'PlaceComing' ? [condition('Claimed', reason)] : [];
      const conditions = [condition('Ready', reason), ...claimed] as NonNullable<GpuInstanceStatus['conditions']>;
      put({ ...instance, status: { ...status, conditions } });
    },
    /** The history of the instance as it is, as a leader of an earlier release writes it. */
    record: (): void => {
      if (instance === undefined) throw new Error('There is no instance.');
      const spec = fold(undefined, instance, { gone: false, now: clock.now() });
      histories.push({ metadata: { name: `h-${instance.metadata.uid}`, namespace: 'a' }, spec });
    },
    /** The errors of requests at the same time. */
    asks: async (count: number, meanwhile: () => void) => {
      const answers = Array.from({ length: count }, () =>
        request().then(
          () => undefined,
          ({ code }: { code: string }) => code,
        ),
      );
      await clock.advance(0);
      meanwhile();
      await clock.advance(20_000);
      return Promise.all(answers);
    },
    /** A request, whose answer waits for the controller as long as it can. */
    ask: async () => {
      const answer = request();
      await clock.advance(20_000);
      return answer;
    },
    /** A request that is answered while the controller says this. */
    askWhile: async (say: () => void) => {
      const answer = request();
      await clock.advance(0);
      say();
      await clock.advance(20_000);
      return answer;
    },
  };
}

let open: ReturnType<typeof world>[] = [];
beforeEach(() => (open = []));
afterEach(() => {
  for (const { waiter } of open) waiter.close();
});

function opened(spec: Partial<GpuInstanceSpec>) {
  const one = world(spec);
  open.push(one);
  return one;
}

describe('a request that queues, and was answered 201,', () => {
  it.each(REASONS)('is answered with the same instance when that is %s before its first start', async (reason) => {
    const { askWhile, ask, says, made, there } = opened(QUEUE);
    const first = await askWhile(() => says('WaitingForCapacity'));
    says(reason);
    expect(await ask()).toMatchObject({ outcome: 'queued', replayed: true, instance: { metadata: { uid: 'uid-1' } } });
    expect([first.outcome, made(), there()?.metadata.uid]).toEqual(['queued', 1, 'uid-1']);
  });

  it('is answered so too when nothing was decided at the answer, and then it is refused', async () => {
    const { ask, says, made } = opened(QUEUE);
    expect(await ask()).toMatchObject({ outcome: 'queued' });
    says('WaitingForOffer');
    expect(await ask()).toMatchObject({ outcome: 'queued', replayed: true });
    expect(made()).toBe(1);
  });

  it('is answered as deleted when another replica removed it as refused before the answer', async () => {
    const { askWhile, says, hooks, gone } = opened(QUEUE);
    hooks.beforeAnswer = gone;
    await expect(askWhile(() => says('WaitingForCapacity'))).rejects.toMatchObject({ code: 'instance_deleting' });
  });
});

it.each(REASONS)(
  'an instance that others ended for is the answer for a request that may fail, when it is %s',
  async (reason) => {
    const { askWhile, ask, says, made } = opened(FAIL);
    expect(await askWhile(() => says('PlaceComing'))).toMatchObject({ outcome: 'queued' });
    says(reason);
    expect(await ask()).toMatchObject({ outcome: 'queued', replayed: true });
    expect(made()).toBe(1);
  },
);

it.each(REASONS)('an instance that has started is the answer, when it is %s', async (reason) => {
  const { askWhile, ask, says, made } = opened(FAIL);
  expect(await askWhile(() => says('Scheduling', { incarnation: 1 }))).toMatchObject({ outcome: 'granted' });
  says(reason, { incarnation: 1 });
  expect(await ask()).toMatchObject({ outcome: 'granted', replayed: true });
  expect(made()).toBe(1);
});

const CASES = REASONS.flatMap((reason) => [
  { reason, spec: QUEUE, incarnation: 0 },
  { reason, spec: FAIL, incarnation: 0 },
  { reason, spec: QUEUE, incarnation: 1 },
  { reason, spec: FAIL, incarnation: 1 },
]);

it.each(CASES)(
  'what a history says of $reason of $spec.onNoCapacity, start $incarnation, is what the answer said',
  async ({ reason, spec, incarnation }) => {
    const { ask, put, says, record, there, gone, made } = opened(spec);
    const { metadata, ...rest } = gpuInstance(NAME, spec);
    const was = put({ ...rest, metadata: { ...metadata, namespace: 'a', uid: 'uid-0' } });
    says(reason, { incarnation });
    record();
    const decision = decisionOf(there() ?? was);
    gone();
    const code = await ask().then(
      () => undefined,
      (error: { code: string }) => error.code,
    );
    // Nothing was said of it while it waited, and then its owner stopped it.
    const isRented = decision === 'granted' || decision === 'queued' || (spec === QUEUE && reason === 'Stopped');
    expect([code === 'idempotency_conflict', made()]).toEqual([isRented, isRented ? 0 : 1]);
  },
);

describe('a request that is repeated', () => {
  it('finds its instance also when that was deleted before any controller saw it', async () => {
    const { ask, there } = opened(QUEUE);
    await ask();
    expect(there()?.metadata.finalizers).toEqual([FINALIZER]);
  });

  it('finds in a history that it was answered, whatever else that says', async () => {
    const { ask, histories, made } = opened(FAIL);
    const metadata = { name: 'h-uid-0', namespace: 'a', annotations: { [ANSWERED]: 'true' } };
    histories.push({ metadata, spec: { instance: NAME, instanceUid: 'uid-0', dropped: 0, entries: [] } });
    await expect(ask()).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(made()).toBe(0);
  });

  it('rents no other when its instance goes while three of them look', async () => {
    const { askWhile, asks, says, record, gone, put, hooks, made, there } = opened(FAIL);
    await askWhile(() => says('Scheduling', { incarnation: 1 }));
    const { metadata, ...rest } = there() ?? gpuInstance(NAME);
    put({ ...rest, metadata: { ...metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
    const goes = (): void => {
      if (there()?.metadata.uid !== 'uid-1') return;
      record();
      gone();
    };
    // The histories were read before.
    hooks.afterList = goes;
    const answers = await asks(3, goes);
    expect(answers).toEqual(Array(3).fill('idempotency_conflict'));
    expect([made(), there()]).toEqual([1, undefined]);
  });

  it('leaves nothing when a whole life of its instance passed between its look and its creation', async () => {
    const { ask, histories, hooks, made, there } = opened(FAIL);
    const metadata = { name: 'h-uid-0', namespace: 'a', annotations: { [ANSWERED]: 'true' } };
    hooks.beforeCreate = () =>
      void histories.push({ metadata, spec: { instance: NAME, instanceUid: 'uid-0', dropped: 0, entries: [] } });
    await expect(ask()).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect([made(), there()]).toEqual([1, undefined]);
  });

  it.each(['NoCapacity', 'WaitingForOffer', 'TenantLimit', 'WaitingForCapacity'] as const)(
    'is answered with the instance that a backup brought back without its status, when it is %s',
    async (reason) => {
      const { ask, askWhile, says, record, gone, put, there } = opened(FAIL);
      await askWhile(() => says('Scheduling', { incarnation: 1 }));
      const { status: _status, ...kept } = there() ?? gpuInstance(NAME);
      record();
      gone();
      put({ ...kept, metadata: { ...kept.metadata, uid: 'uid-back' } });
      says(reason);
      for (const _time of [1, 2]) {
        const answer = { outcome: 'queued', replayed: true, instance: { metadata: { uid: 'uid-back' } } };
        expect(await ask()).toMatchObject(answer);
      }
      expect(there()?.metadata.uid).toBe('uid-back');
    },
  );
});
