import { describe, expect, test } from 'vitest';
import type { SessionEvidence } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { EARLIER, NOW, observed, readyNode, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const SSH = { host: 'ssh.test', port: 22 };
const MINUTE = 60_000;
/** When the instance is deleted that was stopped at the half hour. */
const DUE = NOW + MINUTE;
const LIMITS = { maxDuration: '10m', idleTimeout: '10m' };
const DELETE = { ...LIMITS, onExpiry: 'Delete' as const };

/** Instance `one` whose start ends at the half hour. */
function ending(reason: 'Expired' | 'Idle', spec: Partial<GpuInstanceSpec> = DELETE): GpuInstance {
  const status = { claim: { ...claimOn('n'), grantedAt: EARLIER }, incarnation: 1, podName: 'one-1' };
  const first = gpuInstance('one', spec, { ...status, stages: { ready: EARLIER } });
  const ended = { ...first, status: endedStatus(first, { reason, message: 'Over.' }, NOW) };
  return { ...ended, status: statusOf(observed({ instance: ended, pod: startedPod() }), SSH) };
}

/** The same once its pod is gone and its place given back. */
function stopped(reason: 'Expired' | 'Idle', spec?: Partial<GpuInstanceSpec>): GpuInstance {
  const first = ending(reason, spec);
  const seen = endingOf(first.status);
  if (seen === undefined) throw new Error('no ending');
  const released = { ...first, status: releasedStatus(first, seen, NOW) };
  return { ...released, status: statusOf(observed({ instance: released, pods: [] }), SSH) };
}

function edited(instance: GpuInstance, spec: Partial<GpuInstanceSpec>): GpuInstance {
  const generation = (instance.metadata.generation ?? 0) + 1;
  return { ...instance, metadata: { ...instance.metadata, generation }, spec: { ...instance.spec, ...spec } };
}

function next(instance: GpuInstance, now = DUE, sessions?: SessionEvidence) {
  return planNext(observed({ instance, pods: [], now, sessions }));
}

/** The instance after the controller has looked at it and written what it saw. */
function looked(instance: GpuInstance, more: { sessions?: SessionEvidence } = {}): GpuInstance {
  return { ...instance, status: statusOf(observed({ instance, pods: [], ...more }), SSH) };
}

describe.each(['Expired', 'Idle'] as const)('onExpiry Delete after %s', (reason) => {
  test('first ends the start, and deletes the instance a minute after its place was given back', () => {
    const pod = startedPod();
    expect(planNext(observed({ instance: ending(reason), pod }))).toEqual({ do: 'deletePods', pods: [pod] });
    expect(next(stopped(reason), NOW)).toEqual({ do: 'wait', until: DUE });
    expect(next(stopped(reason))).toEqual({ do: 'deleteInstance' });
    const said = stopped(reason).status?.conditions?.find(({ type }) => type === 'Ready');
    expect(said).toMatchObject({ reason, message: expect.stringContaining('deleted at 2026-01-01T00:31:00.000Z') });
  });

  test('waits until every replica that serves instances has reported after that', () => {
    const evidence = { since: 0, until: DUE - 1, versions: ['1'] };
    expect(next(stopped(reason), DUE, evidence)).toEqual({ do: 'wait', until: DUE + 5_000 });
    expect(next(stopped(reason), DUE, { ...evidence, until: DUE, versions: ['0'] }).do).toBe('wait');
    expect(next(stopped(reason), DUE, { ...evidence, until: DUE }).do).toBe('deleteInstance');
  });

  const longer: Partial<GpuInstanceSpec> = { maxDuration: '20m', idleTimeout: '20m' };
  const KEEP: Partial<GpuInstanceSpec>[] = [
    longer,
    { maxDuration: undefined, idleTimeout: undefined },
    { onExpiry: 'Stop' },
    { powerState: 'Stopped' },
  ];
  test.each(KEEP)('keeps an instance that is edited to %o, for good', (edit) => {
    for (const before of [ending(reason), stopped(reason)]) {
      const kept = edited(before, edit);
      const { claim: _claim, ...status } = looked(kept).status ?? {};
      expect(next({ ...kept, status })).toEqual({ do: 'observe' });
      expect(next({ ...edited({ ...kept, status }, DELETE), spec: before.spec })).not.toMatchObject({
        do: 'deleteInstance',
      });
    }
  });

  test('keeps an instance of which a start is asked for', () => {
    expect(next(edited(stopped(reason), { startRequest: 'again' }))).toEqual({ do: 'claim' });
  });

  test('is not put off by a label, nor by a shorter limit', () => {
    expect(next(looked(edited(stopped(reason), { label: 'x', maxDuration: '1m', idleTimeout: '1m' })))).toEqual({
      do: 'deleteInstance',
    });
  });

  test('is decided at the end of the start: an edit to Delete that comes later deletes nothing', () => {
    const before = stopped(reason, { ...LIMITS, onExpiry: 'Stop' });
    expect(next(edited(before, { onExpiry: 'Delete' }), DUE + 1000 * MINUTE)).toEqual({ do: 'observe' });
  });

  test('keeps an instance whose node falls silent while it ends', () => {
    const silent = observed({ instance: ending(reason), pod: startedPod(), node: readyNode('n', 'Unknown') });
    expect(statusOf(silent, SSH).ending).not.toHaveProperty('limit');
  });

  test('deletes no instance that an earlier release stopped', () => {
    const { ending: old, ...status } = stopped(reason).status ?? {};
    const { limit: _limit, ...rest } = old ?? { reason, message: '', at: EARLIER };
    expect(next({ ...stopped(reason), status: { ...status, ending: rest } })).toEqual({ do: 'observe' });
  });
});

test('an instance that was in use at its end, as a late report says, is kept for good', () => {
  const before = stopped('Idle');
  const metadata = { ...before.metadata, annotations: { 'berth.dev/last-activity': '2026-01-01T00:29:50Z' } };
  const kept = looked({ ...before, metadata });
  expect(next(kept)).toEqual({ do: 'observe' });
  expect(next({ ...kept, metadata: before.metadata })).toEqual({ do: 'observe' });
});

test('an instance that ended as idle is kept when the gateways were away meanwhile', () => {
  const sessions = { since: NOW + 1, until: DUE, versions: ['1'] };
  expect(next(stopped('Idle'), DUE, sessions)).toEqual({ do: 'observe' });
  expect(next(stopped('Expired'), DUE, sessions)).toEqual({ do: 'deleteInstance' });
});
