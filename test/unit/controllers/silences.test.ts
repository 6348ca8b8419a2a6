import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { withSilences } from '../../../src/controllers/gpu-instance/decide/silences.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { claimedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { nextLook } from '../../../src/controllers/gpu-instance/decide/next-look.ts';
import { silentMs } from '../../../src/ledger/silence.ts';
import type { Node, Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { EARLIER, NOW, observed, READY, readyNode, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const MINUTE = 60_000;
const SSH = { host: 'ssh.test', port: 22 };
const POD = startedPod({ conditions: [SCHEDULED, READY] });
const at = (minute: number): string => new Date(Date.parse(EARLIER) + minute * MINUTE).toISOString();

/** A node whose Ready condition has this status since a minute. */
function node(status: string, since: number): Node {
  const { metadata, ...rest } = readyNode('n');
  const conditions = [{ type: 'Ready', status, lastTransitionTime: at(since), message: 'said' }];
  return { ...rest, metadata, status: { ...rest.status, conditions } };
}

function instance(spec: Partial<GpuInstanceSpec> = {}, status: GpuInstanceStatus = {}): GpuInstance {
  const claim = { ...claimOn('n'), grantedAt: EARLIER };
  return gpuInstance('one', spec, { claim, incarnation: 1, podName: 'one-1', stages: { ready: EARLIER }, ...status });
}

describe('a node that does not answer', () => {
  test('is silent from when Kubernetes noticed it until it answers', () => {
    const silent = withSilences(instance(), { node: node('Unknown', 10) }, NOW);
    expect(silent.status?.silences).toEqual([{ from: at(10) }]);
    expect(withSilences(silent, { node: node('Unknown', 10) }, NOW + MINUTE)).toBe(silent);
    const back = withSilences(silent, { node: node('True', 20) }, NOW);
    expect(back.status?.silences).toEqual([{ from: at(10), to: at(20) }]);
    expect(withSilences(back, { node: node('True', 20) }, NOW + MINUTE)).toBe(back);
    const again = withSilences(back, { node: node('Unknown', 25) }, NOW);
    expect(again.status?.silences).toEqual([{ from: at(10), to: at(20) }, { from: at(25) }]);
  });

  test('is silent still when its Node object is gone, since when it was silent', () => {
    const silent = withSilences(instance(), { node: node('Unknown', 10) }, NOW);
    expect(withSilences(silent, { node: undefined }, NOW).status?.silences).toEqual([{ from: at(10) }]);
    expect(withSilences(instance(), { node: undefined }, NOW).status?.silences).toEqual([{ from: at(30) }]);
  });

  test('has no silence while its kubelet says itself that it is not ready', () => {
    expect(withSilences(instance(), { node: node('False', 10) }, NOW)).toEqual(instance());
    const silent = withSilences(instance(), { node: node('Unknown', 10) }, NOW);
    expect(withSilences(silent, { node: node('False', 20) }, NOW).status?.silences).toEqual([
      { from: at(10), to: at(20) },
    ]);
  });

  test('makes no silence that overlaps another, ends before it began, or lies in the future, whatever clocks say', () => {
    const past = withSilences(
      instance({}, { silences: [{ from: at(5), to: at(12) }] }),
      { node: node('Unknown', 10) },
      NOW,
    );
    expect(past.status?.silences?.at(-1)).toEqual({ from: at(12) });
    const silent = withSilences(instance(), { node: node('Unknown', 10) }, NOW);
    expect(withSilences(silent, { node: node('True', 9) }, NOW).status?.silences).toEqual([
      { from: at(10), to: at(30) },
    ]);
    expect(withSilences(silent, { node: node('True', 40) }, NOW).status?.silences).toEqual([
      { from: at(10), to: at(30) },
    ]);
    expect(withSilences(instance(), { node: node('Unknown', 40) }, NOW).status?.silences).toEqual([{ from: at(30) }]);
  });

  test('may come and go for ever: the list is bounded, and its sum stays', () => {
    const lengths = fc.array(fc.tuple(fc.integer({ min: 1, max: 90 }), fc.integer({ min: 1, max: 90 })), {
      minLength: 20,
      maxLength: 60,
    });
    fc.assert(
      fc.property(lengths, (flips) => {
        let seen = instance();
        let [minute, sum] = [0, 0];
        for (const [heard, silent] of flips) {
          minute += heard;
          seen = withSilences(seen, { node: node('Unknown', minute) }, Date.parse(at(minute)));
          minute += silent;
          sum += silent;
          seen = withSilences(seen, { node: node('True', minute) }, Date.parse(at(minute)));
          const { silences = [] } = seen.status ?? {};
          expect(silences.length).toBeLessThanOrEqual(16);
          expect(silentMs(silences, Date.parse(EARLIER), Date.parse(at(minute)))).toBe(sum * MINUTE);
          for (const [index, { from, to = '' }] of silences.entries()) {
            expect(from < to).toBe(true);
            expect(from >= (silences[index - 1]?.to ?? '')).toBe(true);
          }
        }
      }),
      { numRuns: 10 },
    );
  });
});

/** What the start is billed when this ends it at the half hour, while its node is silent since the tenth minute. */
function billed(over: { instance?: GpuInstance; pod?: Pod | undefined; node?: Node | undefined; overspent?: string }) {
  const seen = observed({ instance: instance(), pod: POD, node: node('Unknown', 10), ...over });
  const step = planNext(seen);
  if (step.do !== 'end') return step.do;
  const end = new Date(step.ending.at ?? NOW).toISOString();
  const status = { ...seen.instance.status, ending: { reason: step.ending.reason, message: '', at: end } };
  const ending = endingOf(status);
  if (ending === undefined) throw new Error('no ending');
  return releasedStatus({ ...seen.instance, status }, ending, NOW).usage?.gpuSeconds;
}

describe('a start whose node was silent', () => {
  const deleting = (one: GpuInstance) => ({ ...one, metadata: { ...one.metadata, deletionTimestamp: EARLIER } });
  const gone = (reason: string) =>
    startedPod({ conditions: [{ type: 'DisruptionTarget', status: 'True', reason }] }, { deletionTimestamp: EARLIER });
  const known = { silences: [{ from: at(10) }], podUid: 'pod-1' };
  const collected = startedPod(gone('DeletionByPodGC').status, { deletionTimestamp: at(10) });

  test.each([
    ['its owner stops it', { instance: instance({ powerState: 'Stopped' }) }],
    ['its owner deletes it', { instance: deleting(instance()) }],
    ['the taint manager deletes its pod', { pod: gone('DeletionByTaintManager') }],
    ['PodGC deletes its pod', { instance: instance({}, known), pod: gone('DeletionByPodGC'), node: undefined }],
    ['another client deletes its pod', { pod: startedPod({}, { deletionTimestamp: EARLIER }) }],
    [
      'PodGC deleted its pod and its Node object was gone before anybody looked',
      { instance: instance(), pod: collected, node: undefined },
    ],
    [
      'its owner stops it after that',
      { instance: instance({ powerState: 'Stopped' }), pod: collected, node: undefined },
    ],
    ['pod and Node object are gone', { instance: instance({}, known), pod: undefined, node: undefined }],
  ])('is not billed for the silence when %s', (_name, over) => {
    expect(billed(over)).toBe(600);
  });

  test('is billed until its program ended where that came before the silence', () => {
    const terminated = { exitCode: 143, startedAt: EARLIER, finishedAt: at(5) };
    const main = { name: 'main', image: 'i', imageID: '', ready: false, restartCount: 0, state: { terminated } };
    const drained = startedPod({ phase: 'Failed', containerStatuses: [main] }, { deletionTimestamp: at(5) });
    const silent = node('Unknown', 10);
    expect(billed({ pod: drained, node: { ...silent, spec: { unschedulable: true } } })).toBe(300);
  });

  test('is billed while its kubelet answers, although the node is not ready', () => {
    expect(billed({ instance: instance({ powerState: 'Stopped' }), node: node('False', 10) })).toBe(1800);
  });

  test('is ended neither for its time nor for idleness nor for a budget while it is silent, nor when it is back', () => {
    for (const spec of [{ maxDuration: '15m' }, { idleTimeout: '15m' }]) {
      expect(planNext(observed({ instance: instance(spec), pod: POD, node: node('Unknown', 10) })).do).toBe('observe');
      expect(planNext(observed({ instance: instance(spec), pod: POD, node: node('False', 10) })).do).toBe('observe');
      const back = instance(spec, { silences: [{ from: at(10), to: at(28) }] });
      expect(planNext(observed({ instance: back, pod: POD, node: node('True', 28) })).do).toBe('observe');
    }
    expect(
      planNext(observed({ instance: instance(), pod: POD, node: node('Unknown', 10), overspent: 'spent' })).do,
    ).toBe('observe');
  });

  test('gets the silence on top of maxDuration, and a whole idleTimeout after it', () => {
    const look = (spec: Partial<GpuInstanceSpec>) => {
      const back = instance(spec, { silences: [{ from: at(10), to: at(28) }] });
      const seen = observed({ instance: back, pod: POD, node: node('True', 28) });
      const reasons = { step: { do: 'observe' as const }, writeAfterMs: 0, repairAfterMs: undefined, isHidden: false };
      return nextLook(seen, reasons)?.requeueAfterMs;
    };
    expect(look({ maxDuration: '15m' })).toBe(3 * MINUTE);
    expect(look({ idleTimeout: '15m' })).toBe(13 * MINUTE);
  });

  test('says so, and what its kubelet says when that answers', () => {
    const said = (one: Node) =>
      statusOf(observed({ instance: instance(), pod: POD, node: one }), SSH).conditions?.find(
        ({ type }) => type === 'Ready',
      );
    expect(said(node('Unknown', 10))).toMatchObject({
      reason: 'NodeLost',
      message: expect.stringContaining('nothing is billed'),
    });
    expect(said(node('False', 10))).toMatchObject({
      reason: 'NodeLost',
      message: expect.stringContaining('not ready: said. The kubelet answers'),
    });
  });

  test('leaves its silences in its bill, and none to the next start', () => {
    const seen = observed({
      instance: instance(
        {},
        { silences: [{ from: at(10), to: at(12) }], ending: { reason: 'Stopped', message: '', at: at(30) } },
      ),
    });
    const ending = endingOf(seen.instance.status);
    if (ending === undefined) throw new Error('no ending');
    const released = releasedStatus(seen.instance, ending, NOW);
    expect(released.intervals).toMatchObject([{ silences: [{ from: at(10), to: at(12) }], gpuSeconds: 28 * 60 }]);
    expect(released).not.toHaveProperty('silences');
    const { settings } = seen;
    if (settings === undefined) throw new Error('no settings');
    const next = claimedStatus(seen.instance, claimOn('n'), { persistent: false, settings });
    expect(next).not.toHaveProperty('silences');
  });
});
