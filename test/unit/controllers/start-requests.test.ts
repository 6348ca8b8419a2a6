import { describe, expect, test } from 'vitest';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import {
  claimedStatus,
  endedStatus,
  payersOf,
  releasedStatus,
} from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { claimText, withClaimOf } from '../../../src/resources/pod/claim-on-pod.ts';
import {
  CREATED_BY,
  type GpuInstance,
  gpuInstanceStatusSchema,
  STARTED_BY,
} from '../../../src/resources/instances/gpu-instance.ts';
import { isSwitchedOff } from '../../../src/resources/instances/instance-state.ts';
import { NOW, observed } from '../../support/instance-world.ts';
import { claimedPod, claimOn, gpuInstance } from '../../support/inventory-world.ts';

type Reason = Parameters<typeof endedStatus>[1]['reason'];

/** The instance after its owner, or a tool of theirs, wrote this start request. */
function asking(instance: GpuInstance, startRequest: string | undefined): GpuInstance {
  const { metadata, spec } = instance;
  const { startRequest: _before, ...rest } = spec;
  return {
    ...instance,
    metadata: { ...metadata, generation: (metadata.generation ?? 0) + 1 },
    spec: { ...rest, ...(startRequest !== undefined && { startRequest }) },
  };
}

function claimed(instance: GpuInstance): GpuInstance {
  const settings = { image: 'debian:12', runtype: 'ssh', diskGb: 10 } as never;
  const claim = { ...claimOn('n', { grantedAt: new Date(NOW).toISOString() }), ...payersOf(instance) };
  return { ...instance, status: claimedStatus(instance, claim, { persistent: false, settings }) };
}

function ended(instance: GpuInstance, reason: Reason = 'Expired'): GpuInstance {
  const ending = { ...instance, status: endedStatus(instance, { reason, message: '' }, NOW) };
  const seen = endingOf(ending.status);
  const { recentStarts: _starts, ...status } = seen === undefined ? {} : releasedStatus(ending, seen, NOW);
  return { ...instance, status };
}

const starts = (instance: GpuInstance): boolean => planNext(observed({ instance })).do === 'claim';

describe('a start request', () => {
  test('that was honoured before starts nothing when a tool puts it back', () => {
    const first = ended(claimed(asking(gpuInstance('one'), 'A')));
    const second = asking(first, 'B');
    expect(starts(second)).toBe(true);
    const again = asking(ended(claimed(second)), 'A');
    expect(starts(again)).toBe(false);
    expect(isSwitchedOff(again)).toBe(true);
    expect(starts(asking(again, 'C'))).toBe(true);
  });

  test('that was put back while another waits for its place takes that back', () => {
    const waiting = asking(ended(claimed(asking(gpuInstance('one'), 'A'))), 'B');
    expect(starts(asking(waiting, 'A'))).toBe(false);
    expect(starts(asking(asking(waiting, 'A'), 'B'))).toBe(true);
  });

  test('is honoured by the start that it brought, although the text changed while that ran', () => {
    const running = asking(claimed(asking(gpuInstance('one'), 'A')), undefined);
    expect(starts(asking(ended(running), 'A'))).toBe(false);
    expect(starts(asking(ended(asking(running, 'B')), 'B'))).toBe(false);
  });

  test('of which the pod of the first start knows alone is honoured too', () => {
    const asked = asking(gpuInstance('one'), 'A');
    const { status } = claimed(asked);
    const pod = claimedPod(asked, status?.claim ?? expect.unreachable());
    const text = claimText(asked.metadata.uid, status);
    const borne = { ...pod, metadata: { ...pod.metadata, annotations: { 'berth.dev/claim': text } } };
    const seen = asking(withClaimOf(asked, borne), undefined);
    expect(seen.status?.claim).toBeDefined();
    expect(starts(asking(ended(seen), 'A'))).toBe(false);
  });

  test('charges nobody for a start that Berth owes, also when an older one is put back', () => {
    const by = (instance: GpuInstance): GpuInstance => {
      const annotations = { [CREATED_BY]: 'key/mine', [STARTED_BY]: 'B key/other' };
      return { ...instance, metadata: { ...instance.metadata, annotations } };
    };
    const second = by(asking(ended(claimed(asking(gpuInstance('one'), 'A'))), 'B'));
    expect(payersOf(second)).toEqual({ createdBy: 'key/mine', startedBy: 'key/other' });
    const preempted = ended(claimed(second), 'Preempted');
    expect(payersOf(asking(preempted, 'A'))).toEqual({ createdBy: 'key/mine' });
  });

  test('that its owner writes with kubectl charges no key that asked for another start over HTTP', () => {
    const annotations = { [CREATED_BY]: 'key/mine', [STARTED_BY]: 'A key/other' };
    const [asked, theirs] = ['A', 'AB'].map((text) => {
      const { metadata, ...rest } = asking(gpuInstance('one'), text);
      return payersOf({ ...rest, metadata: { ...metadata, annotations } });
    });
    expect(asked).toEqual({ createdBy: 'key/mine', startedBy: 'key/other' });
    expect(theirs).toEqual({ createdBy: 'key/mine' });
  });

  test('is remembered with the seven before it', () => {
    let instance = gpuInstance('one');
    for (let count = 1; count <= 10; count += 1) {
      instance = ended(claimed(asking(instance, `request ${count}`)));
      // Twice the same is one.
      expect(instance.status?.startRequests?.at(-1)).toBe(`request ${count}`);
    }
    expect(instance.status?.startRequests).toEqual([3, 4, 5, 6, 7, 8, 9, 10].map((count) => `request ${count}`));
    expect(gpuInstanceStatusSchema.safeParse(instance.status).error).toBeUndefined();
    for (let count = 3; count <= 10; count += 1) expect(starts(asking(instance, `request ${count}`))).toBe(false);
  });

  test('of an ending that an earlier release wrote is known', () => {
    const { startRequests: _none, ...status } = ended(claimed(asking(gpuInstance('one'), 'A'))).status ?? {};
    const upgraded = asking({ ...gpuInstance('one'), status }, 'A');
    expect(starts(upgraded)).toBe(false);
    const next = ended(claimed(asking(upgraded, 'B')));
    expect(starts(asking(next, 'A'))).toBe(false);
  });
});
