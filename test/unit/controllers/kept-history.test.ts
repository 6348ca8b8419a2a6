import { pino } from 'pino';
import { expect, test } from 'vitest';
import { endedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { decisionOf } from '../../../src/http/features/instances/claim-waiter.ts';
import { type CreateDeps, createInstance } from '../../../src/http/features/instances/create.ts';
import { PendingRemovals } from '../../../src/http/features/instances/reaper.ts';
import { ConflictError, type KubeError, NotFoundError, toKubeError } from '../../../src/kube/errors.ts';
import type { KubeObject, ObjectRef, ResourceType } from '../../../src/kube/types.ts';
import { REQUEST_HASH } from '../../../src/resources/ids.ts';
import type { InstanceHistory } from '../../../src/resources/instance-history.ts';
import { FINALIZER } from '../../../src/resources/cleanup.ts';
import { ANSWERED, type GpuInstance, type GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

// An instance that a request with an Idempotency-Key made goes when its history answers the request in its place.

const DELETED = '2026-01-01T00:00:00Z';
const OVER: GpuInstanceStatus = {
  incarnation: 1,
  stages: { claimed: DELETED, stopped: DELETED },
  ending: { reason: 'Stopped', message: 'Stopped.', at: DELETED, generation: 1 },
};
const LIMIT_MS = 5 * 60_000;

function deleted(status: GpuInstanceStatus = OVER, annotations: Record<string, string> = { [REQUEST_HASH]: 'hash' }) {
  const { metadata, ...rest } = held(gpuInstance('one', {}, status));
  return { ...rest, metadata: { ...metadata, annotations, deletionTimestamp: DELETED } };
}

function failure(status: number, reason: string, message: string): KubeError {
  return toKubeError('CALL /', { status, body: { kind: 'Status', reason, message } });
}

/** A leader and an API server that keeps histories. Each write of the leader goes through `onWrite`, which may refuse it. */
function world(instance: GpuInstance | undefined = deleted()) {
  const base = controllerWorld(undefined, (path) => onWrite(path === '/metadata/finalizers' ? 'finalizer' : 'status'));
  const histories = new Map<string, InstanceHistory>();
  const writes: string[] = [];
  /** By what is written. */
  const refusals: Record<string, (() => Error | undefined) | undefined> = {};
  let version = 0;
  const hooks = { before: (_what: string): void => {}, meanwhile: () => Promise.resolve() };
  async function onWrite(what: string): Promise<void> {
    hooks.before(what);
    await hooks.meanwhile();
    const refusal = refusals[what]?.();
    if (refusal !== undefined) throw refusal;
    writes.push(what);
  }
  const api = { ...base.deps.client };
  const isHistory = ({ kind }: ResourceType): boolean => kind === 'InstanceHistory';
  const putHistory = (history: InstanceHistory): InstanceHistory => {
    const metadata = { ...history.metadata, resourceVersion: String((version += 1)) };
    histories.set(metadata.name, { ...history, metadata });
    return { ...history, metadata };
  };
  Object.assign(base.deps.client, {
    get(type: ResourceType, ref: ObjectRef) {
      if (!isHistory(type)) return api.get(type, ref);
      const found = histories.get(ref.name);
      return found ? Promise.resolve(found) : Promise.reject(failure(404, 'NotFound', 'none'));
    },
    async create(type: ResourceType, object: KubeObject) {
      if (!isHistory(type) && type.kind !== 'UsageRecord') return api.create(type, object);
      await onWrite(isHistory(type) ? 'history' : 'bill');
      if (!isHistory(type)) return api.create(type, object);
      if (histories.has(object.metadata.name)) throw failure(409, 'AlreadyExists', 'there');
      return putHistory(object as InstanceHistory);
    },
    async patch(type: ResourceType, ref: ObjectRef, body: InstanceHistory, options: never) {
      if (!isHistory(type)) return api.patch(type, ref, body, options);
      await onWrite('history');
      const before = histories.get(ref.name);
      if (before === undefined) throw new NotFoundError({ message: 'none', status: 404, reason: 'NotFound' });
      if (before.metadata.resourceVersion !== body.metadata.resourceVersion)
        throw new ConflictError({ message: 'changed', status: 409, reason: 'Conflict' });
      const annotations = { ...before.metadata.annotations, ...body.metadata.annotations };
      return putHistory({ metadata: { ...before.metadata, annotations }, spec: body.spec });
    },
    async delete(type: ResourceType, ref: ObjectRef, options: never) {
      const found = there();
      if (type.kind !== 'GPUInstance' || found === undefined) return api.delete(type, ref, options);
      await onWrite('deletion');
      const deletionTimestamp = new Date(base.clock.now()).toISOString();
      const resourceVersion = String(Number(found.metadata.resourceVersion) + 100);
      base.instances.upsert({ ...found, metadata: { ...found.metadata, deletionTimestamp, resourceVersion } });
    },
  });
  if (instance !== undefined) base.instances.upsert(instance);
  const there = () => base.instances.store.get('default/one');
  const isThere = (): boolean => there()?.metadata.finalizers?.includes(FINALIZER) ?? false;
  let made = 0;
  const client = {
    get: () => (isThere() ? Promise.resolve(there()) : Promise.reject(failure(404, 'NotFound', 'none'))),
    create(_type: unknown, wanted: GpuInstance) {
      if (isThere()) return Promise.reject(failure(409, 'AlreadyExists', 'there'));
      made += 1;
      return Promise.resolve({ ...wanted, metadata: { ...wanted.metadata, uid: `uid-made-${made}` } });
    },
    list: () => Promise.resolve({ items: [...histories.values()], resourceVersion: '1' }),
    delete: () => Promise.resolve(),
  };
  const decision = () => {
    const seen = there();
    return Promise.resolve({ decision: (seen && decisionOf(seen)) ?? 'timeout', instance: seen });
  };
  const front = {
    client,
    clock: base.clock,
    gate: new ClaimGate(1, base.clock),
    removals: new PendingRemovals(),
    waiter: { decision, removal: () => Promise.resolve(false) },
    idempotentName: () => Promise.resolve('one'),
    log: pino({ level: 'silent' }),
  } as unknown as CreateDeps;
  /** The request of the instance again: the uid of its answer, or its error. */
  const repeat = (): Promise<string | undefined> =>
    createInstance(front, {
      namespace: 'default',
      createdBy: 'key/k',
      signal: new AbortController().signal,
      spec: instance?.spec ?? gpuInstance('one').spec,
      idempotency: { key: 'k', hash: 'hash' },
    }).then(
      (answer) => ('instance' in answer ? answer.instance.metadata.uid : answer.outcome),
      ({ code }: { code: string }) => code,
    );
  return {
    ...base,
    histories,
    hooks,
    putHistory,
    refusals,
    writes,
    there,
    isThere,
    repeat,
    /** How many instances repeats have made. */
    made: () => made,
    isAnswered: () => histories.get('h-uid-one')?.metadata.annotations?.[ANSWERED] !== undefined,
    run: () => base.reconcile('one'),
    words: () => there()?.status?.conditions?.find(({ type }) => type === 'Ready')?.message,
  };
}

test('its history is written when its bill is, and before its finalizer goes', async () => {
  const { run, writes, isThere, isAnswered, histories } = world();
  await run();
  expect(writes).toEqual(['bill', 'history', 'finalizer']);
  expect([isThere(), isAnswered()]).toEqual([false, true]);
  const reasons = histories.get('h-uid-one')?.spec.entries.map(({ reason }) => reason);
  expect(reasons).toEqual(expect.arrayContaining(['Claimed', 'Stopped', 'Deleting']));
  expect(histories.get('h-uid-one')?.spec.endedAt).toBeUndefined();
});

test.each(['claim', 'no claim'])(
  'at each moment the instance or its history answers, wherever a leader dies: %s',
  async (from) => {
    const status = from === 'claim' ? { ...OVER, claim: claimOn('n'), podName: 'one-1' } : OVER;
    for (let deadly = 0; ; deadly += 1) {
      // Before the write, or after it.
      for (const isMade of [false, true]) {
        const { run, hooks, isThere, isAnswered, refusals, writes } = world(deleted(status));
        let count = 0;
        const dies = (): Error | undefined => {
          count += 1;
          expect(isThere() || isAnswered()).toBe(true);
          return count === deadly + 1 && !isMade ? new Error('crash') : undefined;
        };
        for (const what of ['bill', 'history', 'finalizer', 'status']) refusals[what] = dies;
        hooks.before = () => {
          if (isMade && count === deadly + 1) throw new Error('crash');
        };
        await run().catch(() => undefined);
        expect(isThere() || isAnswered()).toBe(true);
        const wasDeadly = count > deadly;
        hooks.before = () => {};
        for (const what of Object.keys(refusals)) refusals[what] = undefined;
        await run();
        expect([isThere(), isAnswered()]).toEqual([false, true]);
        expect(writes.filter((what) => what === 'history')).toHaveLength(1);
        if (!wasDeadly) return;
      }
    }
  },
);

test.each([
  ['has no key', deleted(OVER, {})],
  ['was refused', deleted({ incarnation: 0 })],
])('an instance that %s waits for no history', async (_what, instance) => {
  const { run, writes, isThere } = world(instance);
  await run();
  expect([writes.filter((what) => what !== 'bill'), isThere()]).toEqual([['finalizer'], false]);
});

test('an instance that queued, and whose client was told so, has one', async () => {
  const { run, isThere, isAnswered } = world(deleted({}, { [REQUEST_HASH]: 'hash', [ANSWERED]: 'true' }));
  await run();
  expect([isThere(), isAnswered()]).toEqual([false, true]);
});

test('a history that says so already is not written again', async () => {
  const { run, putHistory, writes, isThere } = world();
  const metadata = { namespace: 'default', name: 'h-uid-one', annotations: { [ANSWERED]: 'true' } };
  putHistory({ metadata, spec: { instance: 'one', instanceUid: 'uid-one', dropped: 0, entries: [] } });
  await run();
  expect([writes, isThere()]).toEqual([['bill', 'finalizer'], false]);
});

test.each([0, 1, 2])(
  'a history that the other controller writes at the same moment is added to, write %i',
  async (nth) => {
    const { run, hooks, putHistory, histories, isThere, isAnswered } = world();
    let seen = 0;
    hooks.before = (what) => {
      if (what !== 'history' || seen++ > nth) return;
      const metadata = { namespace: 'default', name: 'h-uid-one' };
      const spec = histories.get('h-uid-one')?.spec ?? {
        instance: 'one',
        instanceUid: 'uid-one',
        dropped: 0,
        entries: [],
      };
      putHistory({ metadata, spec });
    };
    await run().catch((error: unknown) => expect(error).toBeInstanceOf(ConflictError));
    expect(isThere() || isAnswered()).toBe(true);
    await run();
    expect([isThere(), isAnswered()]).toEqual([false, true]);
  },
);

test.each([
  ['a quota of objects', failure(403, 'Forbidden', 'exceeded quota: objects, used: 5, limited: 5')],
  ['a right that is missing', failure(403, 'Forbidden', 'cannot create resource')],
  ['a server that fails', failure(500, 'InternalError', 'no space')],
  ['a webhook that does not answer', failure(504, 'Timeout', 'too slow')],
  ['a kind that is missing', failure(404, 'NotFound', 'the server could not find the requested resource')],
  ['a policy', failure(422, 'Invalid', 'not so')],
])('%s keeps the object for five minutes, with its words, and nothing else', async (_what, error) => {
  const { run, refusals, isThere, words, clock, writes, creations, inventory } = world();
  refusals['history'] = () => error;
  const looks: (number | undefined)[] = [];
  for (let passed = 0; passed < LIMIT_MS; passed += 5_000) {
    looks.push((await run())?.requeueAfterMs);
    // Its own write of the status wakes it.
    await run();
    expect(isThere()).toBe(true);
    await clock.advance(5_000);
  }
  expect([...new Set(looks)]).toEqual([5_000]);
  expect(words()).toContain(error.statusMessage);
  expect(words()).toContain('GPUs of the instance are free');
  expect(writes.filter((what) => what === 'status')).toHaveLength(1);
  expect(creations()).toContain('UsageRecord');
  expect(inventory.offers().find(({ gpuCount }) => gpuCount === 8)?.available).toBe(1);
  await run();
  expect(isThere()).toBe(false);
});

test('the object goes as soon as its history can be written', async () => {
  const { run, refusals, isThere, isAnswered, clock } = world();
  refusals['history'] = () => failure(500, 'InternalError', 'no space');
  await run();
  refusals['history'] = undefined;
  await clock.advance(5_000);
  await run();
  expect([isThere(), isAnswered()]).toEqual([false, true]);
});

test('in a namespace that is going, where nothing can be created, the object goes at once', async () => {
  const { run, refusals, isThere } = world();
  const words = 'unable to create new content in namespace default because it is being terminated';
  refusals['history'] = () => failure(403, 'Forbidden', words);
  await run();
  expect(isThere()).toBe(false);
});

test('a write that takes longer than a run may keeps the object no longer', async () => {
  const { run, refusals, isThere, clock } = world();
  refusals['history'] = () => new Error('The reconcile took longer than 60000 ms.');
  for (let minute = 0; minute < 5; minute += 1) {
    await expect(run()).rejects.toThrow('took longer');
    expect(isThere()).toBe(true);
    await clock.advance(60_000);
  }
  await run();
  expect(isThere()).toBe(false);
});

test('a leader that lost its lease leaves the object to the next', async () => {
  const { run, refusals, isThere } = world();
  refusals['history'] = () => new Error('This process does not hold the lease.');
  await expect(run()).rejects.toThrow('lease');
  expect(isThere()).toBe(true);
});

test.each([undefined, failure(500, 'InternalError', 'no space')])(
  'an instance whose finalizer another client took has its history with its bill: %s',
  async (error) => {
    const { run, deps, refusals, histories, isAnswered, creations } = world(undefined);
    if (error !== undefined) refusals['history'] = () => error;
    const before = deleted({ ...OVER, claim: claimOn('n') });
    deps.unrecorded.source.start(() => {});
    deps.unrecorded.noteChange({ key: 'default/one', before, after: undefined });
    await run();
    expect([isAnswered(), deps.unrecorded.all()]).toEqual([error === undefined, []]);
    expect(creations()).toContain('UsageRecord');
    if (error === undefined) expect(histories.get('h-uid-one')?.spec.endedAt).toBeDefined();
  },
);

/** An instance of a request, as it is when its end begins. */
function asked(
  spec: Partial<GpuInstance['spec']>,
  status: GpuInstanceStatus,
  more: Partial<GpuInstance['metadata']> = {},
) {
  const { metadata, ...rest } = held(gpuInstance('one', spec, status));
  const annotations = { [REQUEST_HASH]: 'hash', ...more.annotations };
  return { ...rest, metadata: { ...metadata, generation: 1, ...more, annotations } };
}

const CLAIMED: GpuInstanceStatus = {
  incarnation: 1,
  claim: claimOn('n'),
  podName: 'one-1',
  stages: { claimed: DELETED },
};

function ended(reason: 'Expired' | 'Idle'): GpuInstance {
  const limits = { maxDuration: '1h', idleTimeout: '1h', onExpiry: 'Delete' as const };
  const instance = asked(limits, CLAIMED);
  return { ...instance, status: endedStatus(instance, { reason, message: '' }, Date.parse(DELETED)) };
}

const NOT_STARTED = { annotations: { [ANSWERED]: 'true' }, deletionTimestamp: DELETED };
const FAILED = {
  type: 'Ready',
  status: 'False',
  reason: 'NoCapacity',
  message: '',
  lastTransitionTime: DELETED,
} as const;

const WAYS: readonly [way: string, instance: GpuInstance][] = [
  ['its owner deletes it while it runs', asked({}, CLAIMED, { deletionTimestamp: DELETED })],
  ['its owner deletes it while it waits', asked({ onNoCapacity: 'Queue' }, {}, NOT_STARTED)],
  ['its owner deletes it when it has failed', asked({ onNoCapacity: 'Fail' }, { conditions: [FAILED] }, NOT_STARTED)],
  [
    'its owner deletes it while the pod bears its claim',
    asked({}, { ...CLAIMED, stages: {} }, { deletionTimestamp: DELETED }),
  ],
  ['its longest duration is over', ended('Expired')],
  ['it was idle', ended('Idle')],
];

test.each(WAYS)('when %s, no repeat rents another, wherever leaders die', async (_way, instance) => {
  let isDeadly = true;
  for (let deadly = 0; isDeadly; deadly += 1) {
    const { run, hooks, refusals, isThere, repeat, made, clock } = world(instance);
    let count = 0;
    const dies = (): Error | undefined => ((count += 1) === deadly + 1 ? new Error('crash') : undefined);
    for (const what of ['bill', 'history', 'finalizer', 'status', 'deletion']) refusals[what] = dies;
    const answers = new Set<string | undefined>();
    hooks.meanwhile = async () => void answers.add(await repeat());
    for (let turn = 0; turn < 8 && isThere(); turn += 1) {
      await run().catch((error: Error) => expect(error.message).toBe('crash'));
      await hooks.meanwhile();
      await clock.advance(61_000);
    }
    await hooks.meanwhile();
    expect([isThere(), made()]).toEqual([false, 0]);
    expect([...answers].every((answer) => answer === 'uid-one' || answer === 'idempotency_conflict')).toBe(true);
    isDeadly = count > deadly;
  }
});
