import { describe, expect, test } from 'vitest';
import { endingOf, settledEnding } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { limitedUntil, nextStartOf, withStart } from '../../../src/controllers/gpu-instance/decide/failures.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { contentHash } from '../../../src/lib/content-hash.ts';
import type { GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import {
  instanceState,
  isAskedForAgain,
  isSwitchedOff,
  startHash,
} from '../../../src/resources/instances/instance-state.ts';
import { NOW, observed } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const HOUR = 3_600_000;
const SPEC = { image: 'debian:12', gpu: { count: 1 } };
const at = (ms: number): string => new Date(ms).toISOString();

/** An instance that was edited after its start had ended in this way. */
function edited(edit: Partial<GpuInstanceSpec>, { reason = 'ContainerFailed', hash = startHash } = {}): GpuInstance {
  const before = gpuInstance('one', SPEC);
  const ending = { reason, message: '', at: at(NOW), generation: 1, startHash: hash(before.spec) };
  const after = gpuInstance('one', { ...SPEC, ...edit }, { ending, incarnation: 1 });
  return { ...after, metadata: { ...after.metadata, generation: 2 } };
}

describe('what a start depends on', () => {
  test.each<[string, Partial<GpuInstanceSpec>]>([
    ['maxDuration', { maxDuration: '2h' }],
    ['idleTimeout', { idleTimeout: '2h' }],
    ['onNoCapacity', { onNoCapacity: 'Fail' }],
    ['onExpiry', { onExpiry: 'Delete' }],
    ['onGPUFailure', { onGPUFailure: 'Restart' }],
    ['diskPolicy', { diskPolicy: 'Retain' }],
    ['displayName', { displayName: 'x' }],
    ['label', { label: 'x' }],
    ['stats', { stats: 'x' }],
    ['sshKeyIds', { sshKeyIds: [1] }],
    ['installMonitoring', { installMonitoring: true }],
    ['requestedRuntype', { requestedRuntype: 'x' }],
  ])('an edit of %s starts nothing, and cuts no pause short', (_name, edit) => {
    expect(isSwitchedOff(edited(edit))).toBe(true);
    const failed = edited(edit, { reason: 'PodDeleted' });
    failed.status = { ...failed.status, failures: { count: 6, lastTime: at(NOW) } };
    expect(nextStartOf(failed, NOW)).toBe(NOW + 600_000);
  });

  test.each<[string, Partial<GpuInstanceSpec>]>([
    ['image', { image: 'debian:13' }],
    ['command', { command: ['a'] }],
    ['args', { args: ['a'] }],
    ['env', { env: [{ name: 'A', value: 'b' }] }],
    ['onStart', { onStart: 'true' }],
    ['runtype', { runtype: 'args' }],
    ['templateId', { templateId: 1 }],
    ['templateHashId', { templateHashId: 'a' }],
    ['gpu', { gpu: { count: 2 } }],
    ['offerId', { offerId: 1 }],
    ['diskGb', { diskGb: 5 }],
    ['offerDiskSpace', { offerDiskSpace: 5 }],
    ['imagePullSecrets', { imagePullSecrets: [{ name: 'a' }] }],
    ['ports', { ports: [{ containerPort: 1, protocol: 'TCP' }] }],
    ['runtimeClassName', { runtimeClassName: 'kata' }],
    ['hostUsers', { hostUsers: false }],
    ['type', { type: 'Interruptible' }],
  ])('an edit of %s starts what failed', (_name, edit) => {
    expect(isSwitchedOff(edited(edit))).toBe(false);
  });
});

describe('an ending of an earlier version', () => {
  /** The hash of the release before: over what was left of the spec. */
  const earlier = ({ displayName: _n, label: _l, powerState: _p, startRequest: _r, ...rest }: GpuInstanceSpec) => {
    const { diskPolicy: _d, onExpiry: _e, onGPUFailure: _g, sshKeyIds: _k, installMonitoring: _m, ...content } = rest;
    return contentHash(content);
  };
  const upgraded = (instance: GpuInstance): GpuInstance => ({
    ...instance,
    status: { ...instance.status, ...settledEnding(instance) },
  });

  test('starts nothing by the upgrade', () => {
    const labelled = edited({ label: 'x' }, { hash: earlier });
    expect(isAskedForAgain(labelled)).toBe(false);
    const known = upgraded(labelled);
    expect(isAskedForAgain(known)).toBe(false);
    expect(known.status?.ending?.startHash).toBe(startHash(labelled.spec));
    const extended = { ...known, spec: { ...known.spec, maxDuration: '2h' } };
    expect(isAskedForAgain(extended)).toBe(false);
  });

  test('loses no start that was asked for before', () => {
    const asked = edited({ image: 'debian:13' }, { hash: earlier });
    expect(isAskedForAgain(asked)).toBe(true);
    expect(isAskedForAgain(upgraded(asked))).toBe(true);
    expect(isAskedForAgain(upgraded(edited({ startRequest: 'now' }, { hash: earlier })))).toBe(true);
  });
});

describe('eleven starts an hour', () => {
  const starts = (count: number, from: number): string[] =>
    Array.from({ length: count }, (_, index) => at(from + index * 1000));

  test.each(['PodDeleted', 'Completed', 'Preempted', 'Stopped'])(
    'hold after %s, however often a start is asked for',
    (reason) => {
      let instance = gpuInstance('one', SPEC);
      const begun: number[] = [];
      for (let now = NOW; now < NOW + 3 * HOUR; now += 10_000) {
        const generation = (instance.metadata.generation ?? 0) + 1;
        const spec = { ...instance.spec, startRequest: String(now), image: `debian:${now}` };
        instance = { ...instance, metadata: { ...instance.metadata, generation }, spec };
        if (planNext(observed({ instance, now })).do !== 'claim') continue;
        begun.push(now);
        const claim = claimOn('n', { grantedAt: at(now) });
        const ending = {
          reason,
          message: '',
          at: at(now),
          generation,
          startHash: startHash(spec),
          startRequest: String(now),
        };
        instance = { ...instance, status: { ...instance.status, claim, incarnation: begun.length, ending } };
        const seen = endingOf(instance.status);
        instance = { ...instance, status: seen && releasedStatus(instance, seen, now) };
        if (instance.status) instance.status.intervals = [];
      }
      for (const start of begun) {
        expect(begun.filter((other) => other >= start && other < start + HOUR).length).toBeLessThanOrEqual(11);
      }
      expect(begun).toHaveLength(33);
    },
  );

  test('says when the next one is due', () => {
    const recentStarts = starts(11, NOW - 60_000);
    const instance = gpuInstance('one', SPEC, { recentStarts });
    const seen = observed({ instance });
    expect(planNext(seen)).toEqual({ do: 'wait', until: NOW - 60_000 + HOUR });
    const status = statusOf(seen, { host: '', port: 22 });
    expect(instanceState({ ...instance, status })).toEqual({
      state: 'pending',
      reason: 'StartLimit',
      message: `The instance has started 11 times within an hour, which is the most. The next start is due at ${at(NOW - 60_000 + HOUR)}.`,
    });
    expect(planNext(observed({ instance, now: NOW - 60_000 + HOUR }))).toEqual({ do: 'claim' });
  });

  test('counts each start that ends, keeps the last eleven, and no time that is still to come', () => {
    expect(withStart(starts(11, NOW), at(NOW + 20_000))).toEqual([...starts(11, NOW).slice(1), at(NOW + 20_000)]);
    expect(withStart(starts(11, NOW), at(NOW + 2 * HOUR))).toEqual([at(NOW + 2 * HOUR)]);
    expect(limitedUntil({ status: { recentStarts: starts(11, NOW + HOUR) } }, NOW)).toBe(0);
    expect(limitedUntil({ status: { recentStarts: starts(10, NOW) } }, NOW + HOUR)).toBe(0);
  });
});
