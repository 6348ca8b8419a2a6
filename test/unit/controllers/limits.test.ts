import { describe, expect, test } from 'vitest';
import type { SessionEvidence } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { nextLook } from '../../../src/controllers/gpu-instance/decide/next-look.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { EARLIER, NOW, observed, READY, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const SSH = { host: 'ssh.test', port: 22 };
const POD = startedPod({ conditions: [SCHEDULED, READY] });
const minute = (count: number): number => Date.parse(EARLIER) + count * 60_000;
const at = (count: number): string => new Date(minute(count)).toISOString();

/** Instance `one`, ready for half an hour, whose spec was edited since its creation. */
function edited(spec: Partial<GpuInstanceSpec>, limits: GpuInstance['status'] = {}): GpuInstance {
  const status = { claim: { ...claimOn('n'), grantedAt: EARLIER }, incarnation: 1, podName: 'one-1' };
  const instance = gpuInstance('one', spec, {
    ...status,
    observedGeneration: 1,
    stages: { ready: EARLIER },
    ...limits,
  });
  return { ...instance, metadata: { ...instance.metadata, generation: 2, resourceVersion: '50' } };
}

function stepOf(instance: GpuInstance, more: { now?: number; sessions?: SessionEvidence } = {}): string {
  const step = planNext(observed({ instance, pod: POD, ...more }));
  return step.do === 'end' ? step.ending.reason : step.do;
}

describe('a limit that was set a moment ago', () => {
  test('ends nothing as idle before its own time, whatever was before', () => {
    const first = edited({ idleTimeout: '1m', onExpiry: 'Delete' });
    expect(stepOf(first)).toBe('observe');
    const { status } = { status: statusOf(observed({ instance: first, pod: POD }), SSH) };
    expect(status.limits).toEqual({ idleTimeout: { value: '1m', since: at(30) } });
    const known = { ...first, status };
    expect(stepOf(known, { now: minute(31) - 1 })).toBe('observe');
    expect(stepOf(known, { now: minute(31) })).toBe('Idle');
    const other = { ...known, spec: { ...known.spec, idleTimeout: '2m' } };
    expect(stepOf(other, { now: minute(60) })).toBe('observe');
    expect(statusOf(observed({ instance: other, pod: POD, now: minute(60) }), SSH).limits?.idleTimeout?.since).toBe(
      at(60),
    );
    const none = { ...known, spec: { ...known.spec, idleTimeout: undefined } };
    expect(statusOf(observed({ instance: none, pod: POD }), SSH).limits).toBeUndefined();
  });

  test('and is over already ends the start a minute after it was seen, not at once', () => {
    const first = edited({ maxDuration: '1m' });
    expect(stepOf(first)).toBe('observe');
    const known = { ...first, status: statusOf(observed({ instance: first, pod: POD }), SSH) };
    expect(stepOf(known, { now: minute(31) - 1 })).toBe('observe');
    expect(stepOf(known, { now: minute(31) })).toBe('Expired');
  });

  test('is none that stands there since the creation', () => {
    const instance = gpuInstance('one', { maxDuration: '30m', idleTimeout: '31m' }, edited({}).status);
    expect(statusOf(observed({ instance, pod: POD }), SSH).limits).toEqual({
      maxDuration: { value: '30m', since: at(0) },
      idleTimeout: { value: '31m', since: at(0) },
    });
    expect(stepOf(instance)).toBe('Expired');
    expect(stepOf(instance, { now: minute(30) - 1 })).toBe('observe');
  });
});

describe('an instance that seems idle', () => {
  const limits = { limits: { idleTimeout: { value: '10m', since: EARLIER } } };
  const idle = edited({ idleTimeout: '10m' }, limits);
  const evidence = { since: 0, until: minute(10), versions: ['50', '51'] };

  test('ends when all who serve it have reported after its time was over', () => {
    expect(stepOf(idle, { sessions: evidence })).toBe('Idle');
  });

  test.each([
    ['a replica has not reported since', { ...evidence, until: minute(10) - 1 }],
    ['nothing is known of a replica', { ...evidence, until: -Infinity }],
    ['a replica does not know the instance as it is', { ...evidence, versions: ['50', '49'] }],
    ['a replica says nothing of what it knows', { ...evidence, versions: [''] }],
    ['nobody could log in until a moment ago', { ...evidence, since: minute(21) }],
  ])('goes on while %s', (_name, sessions) => {
    expect(stepOf(idle, { sessions })).toBe('observe');
    const seen = observed({ instance: idle, pod: POD, sessions });
    const reasons = { step: { do: 'observe' as const }, writeAfterMs: 0, repairAfterMs: undefined, isHidden: false };
    expect(nextLook(seen, reasons)?.requeueAfterMs).toBe(sessions.since > 0 ? 60_000 : 5_000);
  });

  test('is used by a session that is told late', () => {
    const used = { ...idle, metadata: { ...idle.metadata, annotations: { 'berth.dev/last-activity': at(29) } } };
    expect(stepOf(used, { sessions: { ...evidence, until: NOW } })).toBe('observe');
  });
});
