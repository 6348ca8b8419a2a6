import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { factsHash, fold, sameHistory } from '../../../src/resources/history-fold.ts';
import { type InstanceHistorySpec, instanceHistorySpecSchema } from '../../../src/resources/instance-history.ts';
import { type GpuInstance, type GpuInstanceStatus, STAGES } from '../../../src/resources/instances/gpu-instance.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const BEGIN = Date.UTC(2026, 0, 1);
const time = (second: number): string => new Date(BEGIN + second * 1000).toISOString().replace('.000', '');

function waits(reason: string, message = '', over: GpuInstanceStatus = {}): GpuInstance {
  const ready = { type: 'Ready', status: 'False', reason, message, lastTransitionTime: time(0) } as const;
  return gpuInstance('one', {}, { incarnation: 1, conditions: [ready], ...over });
}

function told(...versions: readonly (readonly [second: number, instance: GpuInstance])[]) {
  return versions.reduce<InstanceHistorySpec | undefined>(
    (history, [second, instance]) => fold(history, instance, { gone: false, now: BEGIN + second * 1000 }),
    undefined,
  );
}

function reasons(history: InstanceHistorySpec | undefined): string[] {
  return (history?.entries ?? []).map(({ reason, count }) => (count === 1 ? reason : `${reason} ${count}`));
}

const anyInstance = fc
  .record({
    start: fc.integer({ min: 1, max: 3 }),
    reason: fc.constantFrom('Scheduling', 'PullingImage', 'ImagePullBackOff', 'CrashLoop', 'Running', 'Stopped'),
    message: fc.constantFrom('', 'a', 'b', `${'x'.repeat(511)}\u{1F680}`),
    stages: fc.dictionary(fc.constantFrom(...STAGES), fc.integer({ min: 0, max: 50 }).map(time)),
    ending: fc.option(
      fc.record({ reason: fc.constantFrom('Stopped', 'NodeLost'), message: fc.string(), at: fc.nat(50).map(time) }),
    ),
  })
  .map(({ start, reason, message, stages, ending }) =>
    waits(reason, message, { incarnation: start, stages, ...(ending !== null && { ending }) }),
  );

describe('the history of an instance', () => {
  it('tells of nothing after the instance was gone, also within one second', () => {
    const stopped = new Date(BEGIN + 20_350).toISOString();
    const over = gpuInstance('one', {}, { incarnation: 1, stages: { accepted: time(0), stopped } });
    const history = fold(undefined, over, { gone: true, now: BEGIN + 20_900 });
    expect(history.entries.map(({ at, reason }) => [at, reason]).slice(-2)).toEqual([
      [stopped, 'StartEnded'],
      [stopped, 'Deleted'],
    ]);
    expect(history.endedAt).toBe(time(20));
  });

  it('warns of no program that ran to its end', () => {
    const ending = { reason: 'Completed', message: 'The program ended with exit code 0.', at: time(9) };
    const over = gpuInstance('one', {}, { incarnation: 1, stages: { stopped: time(10) }, ending });
    const entry = told([10, over])?.entries.find(({ reason }) => reason === 'Completed');
    expect(entry).toMatchObject({ message: ending.message, type: 'Normal' });
  });

  it('tells what the status says, each with its own time, however late it is written', () => {
    const stages = { accepted: time(0), claimed: time(1), scheduled: time(2), started: time(4), ready: time(6) };
    const ready = {
      type: 'Ready',
      status: 'True',
      reason: 'Running',
      message: '',
      lastTransitionTime: time(6),
    } as const;
    const runs = gpuInstance('one', {}, { incarnation: 1, stages, claim: claimOn('n'), conditions: [ready] });
    const history = told([15, runs]);
    expect(history?.entries.map(({ at, reason }) => [at, reason])).toEqual([
      [time(0), 'Accepted'],
      [time(1), 'Claimed'],
      [time(2), 'Scheduled'],
      [time(4), 'Started'],
      [time(6), 'Ready'],
    ]);
    expect(history?.entries[1]?.message).toContain('on the node n: 1 NVIDIA-A100');
    const ending = { reason: 'NodeLost', message: 'The node is gone.', at: time(20) };
    const ended = gpuInstance('one', {}, { incarnation: 1, stages, conditions: [ready], ending });
    expect(told([15, runs], [25, ended])?.entries.at(-1)).toMatchObject({ ...ending, type: 'Warning', start: 1 });
  });

  it('has a stop in the order in which it happens, also where some of its times have milliseconds', () => {
    const stages = { accepted: time(0), started: time(4) };
    const ending = { reason: 'Stopped', message: 'Stopped.', at: '2026-01-01T00:00:20.660Z' };
    const stops = waits('Stopping', 'Its pod ends.', { stages, ending });
    const stopped = waits('Stopped', 'Stopped.', { stages: { ...stages, stopped: time(20) }, ending });
    const expected = ['Accepted', 'Started', 'Stopped', 'StartEnded'];
    expect(
      reasons(told([15, waits('Running', '', { stages })], [21, stops], [22, stopped])).filter(
        (one) => one !== 'Running',
      ),
    ).toEqual(expected);
    expect(reasons(told([22, stopped]))).toEqual(expected);
    // Before the reason is known, that it stops is all that there is to tell.
    expect(reasons(told([21, waits('Stopping', '', { stages })]))).toEqual(['Accepted', 'Started', 'Stopping']);
  });

  it('counts what happens again and again, with the newest words', () => {
    const history = told(
      [1, waits('ImagePullBackOff', 'a')],
      [2, waits('ImagePullBackOff', 'a')],
      [3, waits('PullingImage')],
      [4, waits('ImagePullBackOff', 'b')],
      [5, waits('PullingImage')],
    );
    expect(reasons(history)).toEqual(['ImagePullBackOff 2', 'PullingImage 2']);
    expect(history?.entries[0]).toMatchObject({ at: time(1), lastAt: time(4), message: 'b', type: 'Warning' });
  });

  it('says when each was recorded, and never an earlier time than before', () => {
    const first = waits('PullingImage', '', { stages: { accepted: time(0) } });
    const later = waits('PullingImage', 'b', { stages: { accepted: time(0), claimed: time(1) } });
    // Another leader goes on, whose clock is behind.
    const history = told([15, first], [15, first], [12, later]);
    expect(history?.entries.map(({ reason, recordedAt }) => [reason, recordedAt])).toEqual([
      ['Accepted', time(15)],
      ['Claimed', time(15)],
      ['PullingImage', time(15)],
    ]);
    const last = told([15, first], [30, later]);
    expect(last?.entries.map(({ reason, recordedAt }) => [reason, recordedAt])).toEqual([
      ['Accepted', time(15)],
      ['Claimed', time(30)],
      ['PullingImage', time(30)],
    ]);
  });

  it('tells nothing twice, whenever a controller crashes, and fits into its schema', () => {
    fc.assert(
      fc.property(fc.array(anyInstance, { maxLength: 200 }), fc.boolean(), (versions, gone) => {
        let history: InstanceHistorySpec | undefined;
        for (const [index, instance] of versions.entries()) {
          const when = { gone: gone && index === versions.length - 1, now: BEGIN + (60 + index) * 1000 };
          history = fold(history, instance, when);
          // The write was made, and the one who made it did not learn of it.
          expect(fold(history, instance, { ...when, now: when.now + 1000 })).toEqual(history);
          instanceHistorySpecSchema.parse(history);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('tells once that the instance was accepted, however often it starts, also where an earlier version told it', () => {
    const life = (start: number): GpuInstance =>
      waits('Starting', '', { incarnation: start, stages: { accepted: time(0), started: time(start * 10) } });
    const accepted = (history: InstanceHistorySpec | undefined) =>
      history?.entries.filter(({ reason }) => reason === 'Accepted').map(({ start, count }) => [start, count]);
    expect(accepted(told([5, life(1)], [25, life(2)], [35, life(3)]))).toEqual([[0, 1]]);
    expect(accepted(told([5, waits('Pending', '', { incarnation: 0, stages: { accepted: time(0) } })]))).toEqual([
      [0, 1],
    ]);
    const first = told([5, life(1)]);
    const [before, ...entries] = first?.entries ?? [];
    const older = { ...first, entries: [{ ...before, start: 1 }, ...entries] } as InstanceHistorySpec;
    expect(accepted(fold(older, life(2), { gone: false, now: BEGIN + 25_000 }))).toEqual([[1, 1]]);
    // It gave way, and nothing says so any more than that something did.
    const full = { ...older, dropped: 1, entries: [{ ...older.entries[1], at: '2026-01-01T00:00:00.500Z' }] };
    expect(accepted(fold(full as InstanceHistorySpec, life(2), { gone: false, now: BEGIN + 25_000 }))).toEqual([]);
  });

  it('has the newest hundred entries, and says how many gave way', () => {
    const many = Array.from({ length: 150 }, (_, index) => {
      return [index, waits('CrashLoop', '', { incarnation: index, stages: { started: time(index) } })] as const;
    });
    const history = told(...many);
    expect([history?.entries.length, history?.dropped]).toEqual([100, 200]);
    expect(history?.entries.at(-1)).toMatchObject({ reason: 'CrashLoop', start: 149 });
  });

  it('is the same while the facts are, and its hash too', () => {
    const one = waits('Scheduling', 'a');
    const heartbeat = { ...one, metadata: { ...one.metadata, resourceVersion: '2' } };
    expect([sameHistory(one, heartbeat), factsHash(one, false) === factsHash(heartbeat, false)]).toEqual([true, true]);
    const other = waits('Scheduling', 'b');
    expect([sameHistory(one, other), factsHash(one, false) === factsHash(other, false)]).toEqual([false, false]);
    expect(factsHash(one, true)).not.toBe(factsHash(one, false));
  });
});
