import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import type { CommonDeps } from '../../../src/controllers/common-deps.ts';
import { createHistoryController } from '../../../src/controllers/history/controller.ts';
import type { WriteDeps } from '../../../src/controllers/history/write.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { ConflictError, NotFoundError } from '../../../src/kube/errors.ts';
import { keyOf } from '../../../src/kube/types.ts';
import { ANSWERED, type GpuInstance, type GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { REQUEST_HASH } from '../../../src/resources/ids.ts';
import { ENDED_AT, HISTORY_OF, type InstanceHistory } from '../../../src/resources/instance-history.ts';
import { RecordTimes } from '../../../src/runtime/record-times.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const WEEK_MS = 7 * 24 * 3_600_000;

function waits(name: string, reason: string, over: GpuInstanceStatus = {}): GpuInstance {
  const ready = {
    type: 'Ready',
    status: 'False',
    reason,
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  } as const;
  return gpuInstance(name, {}, { incarnation: 1, conditions: [ready], ...over });
}

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

/** An API server that keeps histories, and leaders that come one after the other. */
function world() {
  const clock = fakeClock();
  const instances = new FakeStore<GpuInstance>();
  const stored = new Map<string, InstanceHistory>();
  const calls: string[] = [];
  const failures: Error[] = [];
  let version = 0;
  const put = (history: InstanceHistory): InstanceHistory => {
    version += 1;
    const made = { ...history, metadata: { uid: 'u', ...history.metadata, resourceVersion: String(version) } };
    stored.set(keyOf(history), made);
    return made;
  };
  const client = {
    get(_type: unknown, ref: { namespace: string; name: string }) {
      const found = stored.get(keyOf(ref));
      if (found !== undefined) return Promise.resolve(found);
      return Promise.reject(new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' }));
    },
    list: (type: { kind: string }) =>
      Promise.resolve({
        items: type.kind !== 'InstanceHistory' ? [] : [...stored.values()].map(({ metadata }) => ({ metadata })),
        resourceVersion: '1',
      }),
    create(_type: unknown, history: InstanceHistory) {
      calls.push(`create ${history.metadata.name}`);
      return Promise.resolve(put(history));
    },
    patch(_type: unknown, ref: { namespace: string; name: string }, body: InstanceHistory) {
      const failure = failures.shift();
      if (failure !== undefined) return Promise.reject(failure);
      calls.push(`patch ${ref.name}`);
      const { metadata, spec } = stored.get(keyOf(ref)) as InstanceHistory;
      const annotations = { ...metadata.annotations, ...body.metadata.annotations };
      return Promise.resolve(put({ metadata: { ...metadata, annotations }, spec: { ...spec, ...body.spec } }));
    },
    delete(_type: unknown, ref: { namespace: string; name: string }) {
      calls.push(`delete ${ref.name}`);
      stored.delete(keyOf(ref));
      return Promise.resolve();
    },
  } as unknown as KubeClient;
  return {
    calls,
    clock,
    failures,
    instances,
    put,
    stored,
    /** Begins the term of a leader; returns what kills it. */
    lead: async (floor = 0): Promise<() => void> => {
      const stop = new AbortController();
      stops.push(stop);
      const log = pino({ level: 'silent' });
      const recordTimes = new RecordTimes(clock, floor);
      const deps = { client, clock, recordTimes, stores: { instances }, log, metrics: () => undefined };
      void createHistoryController(deps as unknown as CommonDeps & WriteDeps).run({
        stop: stop.signal,
        abort: stop.signal,
      });
      await settle();
      return () => stop.abort();
    },
    reasons: (uid: string) => stored.get(`default/h-${uid}`)?.spec.entries.map(({ reason }) => reason),
  };
}

describe('histories of instances', () => {
  it('cost one write for a start, some time after it, and none for what changes nothing', async () => {
    const { calls, clock, instances, lead, reasons } = world();
    await lead();
    for (const [index, reason] of ['Pending', 'Scheduling', 'PullingImage', 'Starting'].entries()) {
      const stages = index > 0 ? { claimed: '2026-01-01T00:00:01Z' } : {};
      instances.put(waits('one', reason, { stages }));
      await clock.advance(2000);
    }
    expect(calls).toEqual([]);
    await clock.advance(15_000);
    expect(calls).toEqual(['create h-uid-one']);
    expect(reasons('uid-one')).toEqual(['Claimed', 'Starting']);
    const last = waits('one', 'Starting', { stages: { claimed: '2026-01-01T00:00:01Z' } });
    instances.put({ ...last, metadata: { ...last.metadata, resourceVersion: '9' } });
    await clock.advance(20 * 60_000);
    expect(calls).toHaveLength(1);
  });

  it('sort behind what an earlier leader recorded, whose clock was ahead', async () => {
    const { clock, instances, lead, stored } = world();
    const floor = clock.now() + 60_000;
    await lead(floor);
    instances.put(waits('one', 'Pending'));
    await clock.advance(15_000);
    instances.put(waits('two', 'Pending'));
    await clock.advance(15_000);
    const recorded = ['one', 'two'].map((name) => stored.get(`default/h-uid-${name}`)?.spec.entries[0]?.recordedAt);
    expect(recorded).toEqual(['2026-01-01T00:01:00Z', '2026-01-01T00:01:15Z']);
    expect(stored.get('default/h-uid-one')?.spec.entries[0]?.at).toBe('2026-01-01T00:00:15Z');
  });

  it('tell how a start ended, also when another one follows at once', async () => {
    const { clock, instances, lead, reasons } = world();
    await lead();
    const stages = { claimed: '2026-01-01T00:00:01Z' };
    instances.put(waits('one', 'Scheduling', { stages }));
    await clock.advance(20_000);
    const ending = { reason: 'GPUUnhealthy', message: '', at: '2026-01-01T00:00:20Z' };
    instances.put(waits('one', 'BackingOff', { stages, ending }));
    await clock.advance(2_000);
    const next = { incarnation: 2, stages: { claimed: '2026-01-01T00:00:22Z' } };
    instances.put(waits('one', 'Scheduling', next));
    await clock.advance(1_000);
    instances.put(waits('one', 'Starting', next));
    await clock.advance(20_000);
    expect(reasons('uid-one')).toEqual(['Claimed', 'Scheduling', 'GPUUnhealthy', 'Claimed', 'Starting']);
  });

  it('stay for a week after the instance, and tell its end', async () => {
    const { clock, instances, lead, stored, reasons } = world();
    await lead();
    instances.put(waits('one', 'CrashLoop'));
    await clock.advance(5000);
    instances.remove('default/one');
    await clock.advance(15_000);
    expect(reasons('uid-one')).toEqual(['Deleted']);
    const history = stored.get('default/h-uid-one');
    expect(history?.metadata).toMatchObject({
      labels: { [HISTORY_OF]: 'one' },
      annotations: { [ENDED_AT]: history?.spec.endedAt },
    });
    await clock.advance(WEEK_MS - 3_600_000);
    expect(stored.size).toBe(1);
    await clock.advance(3_600_000 + 20 * 60_000);
    expect(stored.size).toBe(0);
  });

  it('tell the end at once, since nothing else does', async () => {
    const { calls, clock, instances, lead, reasons } = world();
    await lead();
    instances.put(waits('one', 'CrashLoop'));
    await clock.advance(1000);
    instances.remove('default/one');
    await settle();
    expect([calls, reasons('uid-one')]).toEqual([['create h-uid-one'], ['Deleted']]);
    await clock.advance(20_000);
    expect(calls).toHaveLength(1);
  });

  it('keep that their instance answered a request, from the moment on that it may', async () => {
    const { calls, clock, instances, lead, stored } = world();
    const isAnswer = () => stored.get('default/h-uid-one')?.metadata.annotations?.[ANSWERED] !== undefined;
    const made = (annotations: Record<string, string>, status: GpuInstanceStatus = {}): GpuInstance => {
      const { metadata, ...rest } = waits('one', 'Pending', { incarnation: 0, ...status });
      return { ...rest, metadata: { ...metadata, annotations: { [REQUEST_HASH]: 'hash', ...annotations } } };
    };
    await lead();
    instances.put(made({}));
    await clock.advance(16_000);
    expect(isAnswer()).toBe(false);
    instances.put(made({ [ANSWERED]: 'true' }));
    await clock.advance(16_000);
    expect([isAnswer(), calls.length]).toEqual([true, 2]);
    // Its tenant takes the mark away.
    instances.put(made({}));
    instances.remove('default/one');
    await clock.advance(16_000);
    expect(isAnswer()).toBe(true);
  });

  it('miss nothing that the status still says after a leader died, and end with instances that went meanwhile', async () => {
    const { clock, instances, lead, stored, reasons } = world();
    const kill = await lead();
    instances.put(waits('one', 'Scheduling'));
    instances.put(waits('two', 'Scheduling'));
    await clock.advance(16_000);
    instances.put(
      waits('one', 'CrashLoop', { ending: { reason: 'NodeLost', message: '', at: '2026-01-01T00:00:20Z' } }),
    );
    await clock.advance(5000);
    kill();
    instances.put(waits('three', 'Scheduling'));
    instances.remove('default/two');
    await clock.advance(60_000);
    expect(reasons('uid-one')).toEqual(['Scheduling']);
    await lead();
    await clock.advance(60_000);
    expect(reasons('uid-one')).toEqual(['Scheduling', 'NodeLost', 'CrashLoop']);
    expect(reasons('uid-three')).toEqual(['Scheduling']);
    expect(stored.get('default/h-uid-two')?.spec.endedAt).toBeDefined();
  });

  it('are written again after a conflict, on what is there then', async () => {
    const { clock, failures, instances, lead, reasons } = world();
    await lead();
    instances.put(waits('one', 'Scheduling'));
    await clock.advance(16_000);
    failures.push(new ConflictError({ message: 'changed', status: 409, reason: 'Conflict' }));
    instances.put(waits('one', 'CrashLoop'));
    await clock.advance(20_000);
    expect(reasons('uid-one')).toEqual(['Scheduling', 'CrashLoop']);
  });

  it('of instances that are gone have a bound for each tenant: the oldest go first', async () => {
    const { calls, clock, lead, put, stored } = world();
    for (let index = 0; index < 1003; index += 1) {
      const endedAt = new Date(clock.now() - index * 1000).toISOString();
      const metadata = { namespace: 'default', name: `h-${index}`, annotations: { [ENDED_AT]: endedAt } };
      put({ metadata, spec: { instance: 'x', instanceUid: String(index), endedAt, dropped: 0, entries: [] } });
    }
    await lead();
    await clock.advance(31_000);
    expect(stored.size).toBe(1000);
    expect(calls).toEqual(['delete h-1000', 'delete h-1001', 'delete h-1002']);
  });
});
