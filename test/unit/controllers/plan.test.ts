import { describe, expect, test } from 'vitest';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { startHash } from '../../../src/resources/instances/instance-state.ts';
import { endedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { POD_FINALIZER } from '../../../src/resources/pod/pod-finalizer.ts';
import {
  EARLIER,
  NOW,
  observed,
  READY,
  readyNode,
  SCHEDULED,
  startedPod,
  unboundPod,
} from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const CLAIMED: GpuInstanceStatus = { claim: claimOn('n'), incarnation: 1, podName: 'one-1' };
const ending = (reason: string, generation = 1) => ({ reason, message: '', at: EARLIER, generation });
const DELETING = { deletionTimestamp: EARLIER };

function deleted(status?: GpuInstanceStatus) {
  const instance = gpuInstance('one', {}, status);
  return { ...instance, metadata: { ...instance.metadata, ...DELETING } };
}

function terminated(exitCode: number) {
  return { phase: exitCode === 0 ? 'Succeeded' : 'Failed', containerStatuses: [main({ terminated: { exitCode } })] };
}

function main(state: object) {
  return { name: 'main', image: 'debian:12', imageID: '', ready: false, restartCount: 0, state };
}

function waiting(reason: string) {
  return startedPod({ conditions: [SCHEDULED], containerStatuses: [main({ waiting: { reason, message: 'said' } })] });
}

describe('without a claim', () => {
  test.each([
    ['a new one asks for a place', gpuInstance('one'), { do: 'claim' }],
    ['a stopped one rests', gpuInstance('one', { powerState: 'Stopped' }), { do: 'observe' }],
    [
      'one that was refused rests until its owner asks again',
      gpuInstance('one', {}, { ending: ending('NoCapacity') }),
      { do: 'observe' },
    ],
    [
      'one whose owner switched it on again asks again',
      gpuInstance('one', {}, { ending: ending('NoCapacity', 0) }),
      { do: 'claim' },
    ],
    ['one that was preempted asks again', gpuInstance('one', {}, { ending: ending('Preempted') }), { do: 'claim' }],
    ['a deleted one is cleaned up', deleted(), { do: 'cleanUp' }],
  ])('%s', (_name, instance, step) => {
    expect(planNext(observed({ instance }))).toEqual(step);
  });

  test('after a failure it waits for its pause to end', () => {
    const failures = { count: 6, lastTime: '2026-01-01T00:25:00Z' };
    const step = planNext(observed({ instance: gpuInstance('one', {}, { failures }) }));
    expect(step).toEqual({ do: 'wait', until: Date.UTC(2026, 0, 1, 0, 35) });
  });

  test('after a failure and an edit by the owner it does not wait', () => {
    const failures = { count: 6, lastTime: '2026-01-01T00:25:00Z' };
    const status = { failures, ending: ending('PodRejected', 0) };
    expect(planNext(observed({ instance: gpuInstance('one', {}, status) }))).toEqual({ do: 'claim' });
  });

  test('without its template it waits', () => {
    expect(planNext({ ...observed({ instance: gpuInstance('one') }), settings: undefined })).toEqual({ do: 'observe' });
  });

  test('a pod without a claim is deleted', () => {
    const pod = startedPod();
    expect(planNext(observed({ instance: gpuInstance('one'), pod }))).toEqual({ do: 'deletePods', pods: [pod] });
  });

  test('nothing starts before the last pod is gone', () => {
    const pod = startedPod({}, DELETING);
    expect(planNext(observed({ instance: gpuInstance('one'), pod }))).toEqual({ do: 'observe' });
  });
});

describe('with a claim', () => {
  test('the pod is created, and then observed', () => {
    expect(planNext(observed())).toEqual({ do: 'createPod' });
    expect(planNext(observed({ pod: startedPod() }))).toEqual({ do: 'observe' });
  });

  test('while a pod of an earlier start is still ending, no other is created', () => {
    const old = startedPod({}, { name: 'one-0', ...DELETING });
    expect(planNext(observed({ pods: [old] }))).toEqual({ do: 'observe' });
  });

  test('a second live pod is deleted', () => {
    const [pod, other] = [startedPod(), startedPod({}, { name: 'one-0', uid: 'pod-0' })];
    expect(planNext(observed({ pod, pods: [pod, other] }))).toEqual({ do: 'deletePods', pods: [other] });
  });

  test.each([
    [
      'switched off',
      { instance: gpuInstance('one', { powerState: 'Stopped' }, CLAIMED), pod: startedPod() },
      'Stopped',
    ],
    ['deleted', { instance: deleted(CLAIMED), pod: startedPod() }, 'Stopped'],
    ['its program ended well', { pod: startedPod(terminated(0)) }, 'Completed'],
    ['its program failed', { pod: startedPod(terminated(3)) }, 'ContainerFailed'],
    ['evicted', { pod: startedPod({ phase: 'Failed', reason: 'Evicted' }) }, 'PodFailed'],
    [
      'refused by the node',
      { pod: startedPod({ phase: 'Failed', reason: 'UnexpectedAdmissionError' }) },
      'AdmissionRejected',
    ],
    [
      'refused for want of GPUs',
      { pod: startedPod({ phase: 'Failed', reason: 'OutOfnvidia.com/gpu' }) },
      'AdmissionRejected',
    ],
    ['deleted by another client', { pod: startedPod({}, DELETING) }, 'PodDeleted'],
    [
      'preempted by the scheduler',
      {
        pod: startedPod(
          { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' }] },
          DELETING,
        ),
      },
      'Preempted',
    ],
    ['gone after it was seen', { instance: gpuInstance('one', {}, { ...CLAIMED, podUid: 'pod-1' }) }, 'PodDeleted'],
    ['an image name that cannot be', { pod: waiting('InvalidImageName') }, 'InvalidImage'],
    ['an image that never comes', { pod: waiting('ImagePullBackOff') }, 'ImagePullFailed'],
    ['a container that cannot be made', { pod: waiting('CreateContainerError') }, 'ContainerNotCreated'],
    ['settings that no node can use', { pod: waiting('CreateContainerConfigError') }, 'ContainerInvalid'],
    ['a place that another pod took', { pod: unboundPod() }, 'PlaceLost'],
    [
      'its time is over',
      {
        instance: gpuInstance('one', { maxDuration: '10m' }, { ...CLAIMED, stages: { ready: EARLIER } }),
        pod: startedPod({ conditions: [SCHEDULED, READY] }),
      },
      'Expired',
    ],
    [
      'it is idle',
      {
        instance: gpuInstance('one', { idleTimeout: '10m' }, { ...CLAIMED, stages: { ready: EARLIER } }),
        pod: startedPod({ conditions: [SCHEDULED, READY] }),
      },
      'Idle',
    ],
  ])('%s: the ending is written down first', (_name, over, reason) => {
    expect(planNext(observed(over))).toMatchObject({ do: 'end', ending: { reason } });
  });

  test('a pod that the scheduler does not report on is given up after two minutes, and not before', () => {
    const claim = { ...claimOn('n'), grantedAt: EARLIER };
    const instance = gpuInstance('one', {}, { ...CLAIMED, claim });
    const pod = { ...startedPod({ phase: 'Pending' }), spec: { containers: [] } };
    const after = (ms: number) => planNext(observed({ instance, pod, now: Date.parse(EARLIER) + ms }));
    expect(after(119_999)).toEqual({ do: 'observe' });
    expect(after(120_000)).toMatchObject({ do: 'end', ending: { reason: 'PlaceLost' } });
  });

  test('a recent session keeps an instance from being idle', () => {
    const instance = gpuInstance('one', { idleTimeout: '10m' }, { ...CLAIMED, stages: { ready: EARLIER } });
    instance.metadata.annotations = { 'berth.dev/last-activity': '2026-01-01T00:25:00Z' };
    const pod = startedPod({ conditions: [SCHEDULED, READY] });
    expect(planNext(observed({ instance, pod }))).toEqual({ do: 'observe' });
  });

  test('an instance that loses its node does not pay for the time in which the node was silent', () => {
    const lost = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByTaintManager' };
    const pod = startedPod({ conditions: [lost] }, DELETING);
    const step = planNext(observed({ pod, node: readyNode('n', 'Unknown') }));
    expect(step).toMatchObject({ do: 'end', ending: { reason: 'NodeLost', at: Date.parse(EARLIER) } });
  });

  test('an instance whose pod goes for a taint of its device is told that, and not that a client deleted it', () => {
    const message = 'Device Taint manager: deleting due to NoExecute taint';
    const taken = { type: 'DisruptionTarget', status: 'True', reason: 'DeletionByDeviceTaintManager', message };
    const step = planNext(observed({ pod: startedPod({ conditions: [taken] }, DELETING), node: readyNode() }));
    expect(step).toMatchObject({
      do: 'end',
      ending: { reason: 'GPUUnhealthy', message: `Kubernetes deleted the pod: ${message}.` },
    });
  });

  test('the steps of an ending: delete the pod, wait, release, rest, and the spec stays as its owner wrote it', () => {
    const instance = gpuInstance('one', {}, { ...CLAIMED, ending: ending('Expired') });
    const pod = startedPod();
    expect(planNext(observed({ instance, pod }))).toEqual({ do: 'deletePods', pods: [pod] });
    const going = startedPod({}, DELETING);
    expect(planNext(observed({ instance, pod: going }))).toEqual({ do: 'observe' });
    expect(planNext(observed({ instance }))).toMatchObject({ do: 'release', ending: { reason: 'Expired' } });
    const released = gpuInstance('one', {}, { incarnation: 1, ending: ending('Expired') });
    expect(planNext(observed({ instance: released }))).toEqual({ do: 'observe' });
  });

  test('a preempted instance is not switched off', () => {
    const instance = gpuInstance('one', { type: 'Interruptible' }, { ...CLAIMED, ending: ending('Preempted') });
    const pod = startedPod();
    expect(planNext(observed({ instance, pod }))).toEqual({ do: 'deletePods', pods: [pod] });
  });
});

describe('an edit after the ending', () => {
  const NOW_ISO = new Date(NOW).toISOString();
  /** Instance `one` whose start ended for a reason, edited since then. */
  function edited(
    reason: Parameters<typeof endedStatus>[1]['reason'],
    before: Partial<GpuInstanceSpec>,
    edit: Partial<GpuInstanceSpec>,
    more = {},
  ) {
    const first = gpuInstance('one', before, { ...CLAIMED, ...more });
    const status = endedStatus(first, { reason, message: '' }, NOW);
    const after = gpuInstance('one', { ...before, ...edit }, status);
    return { ...after, metadata: { ...after.metadata, generation: 2 } };
  }
  const UNRELATED: Partial<GpuInstanceSpec>[] = [
    { label: 'x' },
    { displayName: 'x' },
    { stats: 'x' },
    { sshKeyIds: [1] },
  ];

  test.each(UNRELATED)('of %o brings no finished or expired instance back', (edit) => {
    const pod = startedPod();
    const { status, ...rest } = edited('Completed', {}, edit);
    const { claim: _claim, ...released } = status ?? {};
    expect(planNext(observed({ instance: { ...rest, status: released } }))).toEqual({ do: 'observe' });
    const instance = edited('Expired', { onExpiry: 'Delete' }, edit);
    expect(planNext(observed({ instance, pod }))).toEqual({ do: 'deletePods', pods: [pod] });
  });

  test.each(UNRELATED)('of %o cuts no pause short', (edit) => {
    const { status, ...rest } = edited('PodFailed', {}, edit);
    const { claim: _claim, ...released } = status ?? {};
    const failures = { count: 6, lastTime: NOW_ISO };
    const instance = { ...rest, status: { ...released, failures } };
    expect(planNext(observed({ instance }))).toMatchObject({ do: 'wait' });
    const mended = { ...instance, spec: { ...instance.spec, image: 'other' } };
    expect(planNext(observed({ instance: mended }))).toEqual({ do: 'claim' });
  });

  test('is no matter once the instance is being deleted', () => {
    const pod = startedPod();
    for (const onExpiry of ['Delete', 'Stop'] as const) {
      const instance = edited('Expired', { onExpiry }, { label: 'x' });
      const going = { ...instance, metadata: { ...instance.metadata, ...DELETING } };
      expect(planNext(observed({ instance: going, pod }))).toEqual({ do: 'deletePods', pods: [pod] });
    }
  });

  /** The next step once the GPUs are free. */
  function afterRelease({ status, ...rest }: ReturnType<typeof edited>) {
    const { claim: _claim, ...released } = status ?? {};
    return planNext(observed({ instance: { ...rest, status: released } }));
  }

  test('of the image starts one that failed, and none that ran to its end', () => {
    expect(afterRelease(edited('InvalidImage', {}, { image: 'debian:12' }))).toEqual({ do: 'claim' });
    for (const reason of ['Completed', 'Expired', 'Idle'] as const) {
      expect(afterRelease(edited(reason, {}, { image: 'debian:12' }))).toEqual({ do: 'observe' });
    }
  });

  test.each(['Completed', 'Expired', 'Idle', 'ContainerFailed', 'NoCapacity'] as const)(
    'after %s another startRequest starts it, once',
    (reason) => {
      const before = { startRequest: 'a' };
      expect(afterRelease(edited(reason, before, { startRequest: 'b' }))).toEqual({ do: 'claim' });
      expect(afterRelease(edited(reason, before, { label: 'x' }))).toEqual({ do: 'observe' });
      expect(afterRelease(edited(reason, {}, { startRequest: 'a' }))).toEqual({ do: 'claim' });
      expect(afterRelease(edited(reason, before, { startRequest: undefined }))).toEqual({ do: 'observe' });
    },
  );

  test('onExpiry Delete deletes no instance whose owner asked for a start meanwhile', () => {
    const instance = edited('Expired', { onExpiry: 'Delete' }, { startRequest: 'a' });
    const pod = startedPod();
    expect(planNext(observed({ instance, pod }))).toEqual({ do: 'deletePods', pods: [pod] });
  });

  test('an instance that was switched off starts when it is switched on, with nothing else changed', () => {
    const off = edited('Completed', {}, { powerState: 'Stopped' });
    const { claim: _claim, ...released } = off.status ?? {};
    const status = statusOf(observed({ instance: { ...off, status: released } }), { host: '', port: 22 });
    const on = gpuInstance('one', {}, status);
    expect(planNext(observed({ instance: { ...on, metadata: { ...on.metadata, generation: 3 } } }))).toEqual({
      do: 'claim',
    });
  });
});

test.each([
  ['Stopped', 'Stopped by its owner.', 'Stopped by its owner on 2026-01-01 at 00:00 UTC.'],
  ['ContainerFailed', 'The program ended with exit code 3', 'The program ended with exit code 3.'],
])(
  'the message of an instance that is off says why, and leaves the next step to who shows it: %s',
  (reason, said, message) => {
    const ending = { reason, message: said, at: EARLIER, startHash: startHash(gpuInstance('one').spec) };
    const powerState = reason === 'Stopped' ? 'Stopped' : 'Running';
    const instance = gpuInstance('one', { powerState }, { incarnation: 1, ending });
    const { conditions } = statusOf(observed({ instance }), { host: '', port: 22 });
    expect(findCondition(conditions, 'Ready')).toMatchObject({ reason, message });
  },
);

test.each([
  [
    'was preempted',
    { incarnation: 1, ending: { reason: 'Preempted', message: '', at: EARLIER } },
    'Stopped by its owner.',
  ],
  ['never had a place', {}, 'The instance was not started.'],
])('an instance that its owner switches off and that %s says so', (_what, status, message) => {
  const instance = gpuInstance('one', { powerState: 'Stopped' }, status);
  const { conditions } = statusOf(observed({ instance }), { host: '', port: 22 });
  expect(findCondition(conditions, 'Ready')).toMatchObject({ reason: 'Stopped', message });
});

// The tenant can do nothing about the image of the tools, so its instance must stay switched on and try again.
test.each([
  ['InvalidImageName', 0],
  ['ErrImageNeverPull', 0],
  ['ImagePullBackOff', 1_200_000],
  ['CreateContainerError', 120_000],
])("a container that is not the tenant's, and waits with %s, backs off", (reason, limit) => {
  const tools = { ...main({ waiting: { reason, message: 'said' } }), name: 'berth-tools' };
  const pod = startedPod({ conditions: [SCHEDULED], initContainerStatuses: [tools] });
  const now = Date.parse(EARLIER) + limit;
  const step = planNext(observed({ pod, now }));
  expect(step).toMatchObject({
    do: 'end',
    ending: { reason: 'PodFailed', message: expect.stringContaining('berth-tools') },
  });
  if (limit > 0) expect(planNext(observed({ pod, now: now - 1 }))).toEqual({ do: 'observe' });
});

describe('a program of runtype args', () => {
  const instance = gpuInstance('one', {}, { ...CLAIMED, runtype: 'args' });

  test.each([
    [0, 'Completed'],
    [3, 'ContainerFailed'],
  ])('that ends with %i is over, although a container that a webhook added goes on', (exitCode, reason) => {
    const { containerStatuses } = terminated(exitCode);
    const pod = startedPod({ phase: 'Running', containerStatuses });
    expect(planNext(observed({ instance, pod }))).toMatchObject({ do: 'end', ending: { reason } });
  });

  test('that restarts with runtype ssh goes on', () => {
    const { containerStatuses } = terminated(3);
    const pod = startedPod({ phase: 'Running', containerStatuses });
    expect(planNext(observed({ pod }))).toEqual({ do: 'observe' });
  });
});

describe('a drain is no failed start', () => {
  const EVICTED = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' };
  const node = readyNode();
  const tainted = (key: string) => ({ ...node, spec: { taints: [{ key, effect: 'NoSchedule' }] } });
  const DRAINED = [
    ['cordoned', { ...node, spec: { ...node.spec, unschedulable: true } }],
    ['going', { ...node, metadata: { ...node.metadata, ...DELETING } }],
    ['emptied by the Cluster Autoscaler', tainted('ToBeDeletedByClusterAutoscaler')],
    ['emptied by Karpenter', tainted('karpenter.sh/disrupted')],
  ] as const;
  const reasonOf = (over: Parameters<typeof observed>[0]) => {
    const step = planNext(observed(over));
    return step.do === 'end' ? step.ending.reason : step.do;
  };
  const GONE = gpuInstance('one', {}, { ...CLAIMED, podUid: 'pod-1' });

  test.each(DRAINED)('on a node that is %s, whether the pod is evicted, deleted or gone', (_how, drained) => {
    const evicted = startedPod({ conditions: [EVICTED] }, DELETING);
    expect(reasonOf({ pod: evicted, node: drained })).toBe('NodeLost');
    expect(reasonOf({ pod: startedPod({}, DELETING), node: drained })).toBe('NodeLost');
    expect(reasonOf({ instance: GONE, node: drained })).toBe('NodeLost');
  });

  test('elsewhere the instance backs off: its tenant may delete its pods', () => {
    for (const other of [node, tainted('team')]) {
      expect(reasonOf({ pod: startedPod({ conditions: [EVICTED] }, DELETING), node: other })).toBe('PodDeleted');
      expect(reasonOf({ instance: GONE, node: other })).toBe('PodDeleted');
    }
  });

  test('a node that shuts down ends pods by itself, and one short of memory ends them for their own fault', () => {
    const ended = (reason: string) => {
      const condition = { type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet' };
      return startedPod({ phase: 'Failed', reason, conditions: [condition] });
    };
    expect(reasonOf({ pod: ended('Terminated') })).toBe('NodeLost');
    expect(reasonOf({ pod: ended('Evicted') })).toBe('PodFailed');
  });
});

describe('a pod that another client deleted by force', () => {
  const endedAt = '2026-01-01T00:20:00Z';
  const terminated = { exitCode: 137, startedAt: EARLIER, finishedAt: endedAt };
  const failed = startedPod({ phase: 'Failed', containerStatuses: [main({ terminated })] }, DELETING);

  test('while nobody watched has not failed by itself, and its bill ends with its program', () => {
    const step = planNext(observed({ pod: failed }));
    expect(step).toMatchObject({ do: 'end', ending: { reason: 'PodDeleted', at: Date.parse(endedAt) } });
  });

  test.each([
    [0, 'Completed'],
    [3, 'ContainerFailed'],
  ])('long after its program had ended by itself with %i runs it no second time', (exitCode, reason) => {
    const asked = { deletionTimestamp: '2026-01-01T00:25:30Z', deletionGracePeriodSeconds: 30 };
    const terminated = (finishedAt: string) => ({ exitCode, startedAt: EARLIER, finishedAt });
    const pod = (finishedAt: string) =>
      startedPod(
        {
          phase: exitCode === 0 ? 'Succeeded' : 'Failed',
          containerStatuses: [main({ terminated: terminated(finishedAt) })],
        },
        asked,
      );
    const reasonAt = (finishedAt: string) => planNext(observed({ pod: pod(finishedAt) }));
    expect(reasonAt(endedAt)).toMatchObject({ do: 'end', ending: { reason, at: Date.parse(endedAt) } });
    // It may have ended for the deletion, on a node whose clock is behind.
    expect(reasonAt('2026-01-01T00:24:40Z')).toMatchObject({ do: 'end', ending: { reason: 'PodDeleted' } });
  });

  test.each([
    ['and is deleting it', DELETING],
    ['and will delete it', {}],
  ])('the garbage collector of pods says Failed, because its node is gone, %s', (_when, metadata) => {
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'DeletionByPodGC' }];
    const pod = startedPod({ phase: 'Failed', conditions, containerStatuses: [main({ running: {} })] }, metadata);
    expect(planNext(observed({ pod, node: undefined }))).toMatchObject({ do: 'end', ending: { reason: 'NodeLost' } });
  });
});

describe('a pod that a finalizer of another keeps', () => {
  const ended = { phase: 'Failed', containerStatuses: [main({ terminated: { exitCode: 143 } })] };
  const FOREIGN = { ...DELETING, finalizers: ['tenant.example/keep'] };
  const running = { phase: 'Running', containerStatuses: [main({ running: {} })] };
  const stopped = gpuInstance('one', { powerState: 'Stopped' }, { ...CLAIMED, ending: ending('Stopped') });
  const free = gpuInstance('one', {}, { incarnation: 1 });
  const step = (instance: GpuInstance, pod: Pod) => planNext(observed({ instance, pods: [pod] })).do;

  test('holds its GPUs until its program has ended, and then neither GPUs nor meter', () => {
    expect(step(stopped, startedPod(running, FOREIGN))).toBe('observe');
    expect(step(stopped, startedPod(ended, FOREIGN))).toBe('release');
    const released = gpuInstance('one', { powerState: 'Stopped' }, { incarnation: 1, ending: ending('Stopped') });
    const seen = observed({ instance: released, pods: [startedPod(ended, FOREIGN)] });
    const { conditions = [] } = statusOf(seen, { host: '', port: 22 });
    expect(conditions.find(({ type }) => type === 'Ready')).toMatchObject({ reason: 'Stopped' });
  });

  test('is deleted when its program has ended by itself, after its place is given back', () => {
    expect(step(stopped, startedPod(ended, { finalizers: ['tenant.example/keep'] }))).toBe('release');
    expect(step(free, startedPod(ended, { finalizers: ['tenant.example/keep'] }))).toBe('deletePods');
  });

  test('holds up neither the next start nor the deletion of its instance', () => {
    expect(step(free, startedPod(ended, FOREIGN))).toBe('claim');
    const going = { ...free, metadata: { ...free.metadata, ...DELETING } };
    expect(step(going, startedPod(ended, FOREIGN))).toBe('cleanUp');
  });

  test.each([
    ['has the finalizer of Berth as well', { ...FOREIGN, finalizers: ['tenant.example/keep', POD_FINALIZER] }],
    ['goes by itself', DELETING],
  ])('does hold up the deletion while it %s: its successor gets its name', (_why, metadata) => {
    const going = { ...free, metadata: { ...free.metadata, ...DELETING } };
    expect(step(going, startedPod(ended, metadata))).toBe('observe');
  });
});

test('a disk that is still being provisioned is waited for', () => {
  const message = '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.';
  const pod = unboundPod({ message });
  const after = (ms: number) => planNext(observed({ pod, now: Date.parse(EARLIER) + ms }));
  expect(after(179_999)).toEqual({ do: 'observe' });
  expect(after(180_000)).toMatchObject({ do: 'end', ending: { reason: 'PlaceLost' } });
});

test('a pod that runs on its node goes on, though a scheduler reports that its second binding failed', () => {
  const error = { status: 'False', reason: 'SchedulerError', message: 'pod one-1 is already assigned to node "n"' };
  const pod = startedPod({ conditions: [{ ...SCHEDULED, ...error }, READY] });
  const seen = observed({ pod, node: readyNode(), now: Date.parse(EARLIER) + 3_600_000 });
  expect(planNext(seen)).toEqual({ do: 'observe' });
  const conditions = statusOf(seen, { host: '', port: 22 }).conditions ?? [];
  expect(conditions.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'True', reason: 'Running' });
  expect(conditions.find(({ type }) => type === 'Scheduled')).toMatchObject({ status: 'True', reason: 'Scheduled' });
});

test.each([
  "0/3 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 2 node(s) didn't match.",
  '0/3 nodes are available: 1 node(s) had volume node affinity conflict.',
])('a volume that is made for its first consumer gets the same time: %s', (message) => {
  const instance = gpuInstance('one', {}, CLAIMED);
  const after = (ms: number) =>
    planNext(observed({ instance, pod: unboundPod({ message }), now: Date.parse(EARLIER) + ms }));
  expect(after(179_999)).toEqual({ do: 'observe' });
  expect(after(180_000)).toMatchObject({ do: 'end', ending: { reason: 'PlaceLost' } });
});

test.each([
  ['0/2 nodes are available: 1 Insufficient nvidia.com/gpu.', 'Another pod took the place: 0/2 nodes'],
  ['0/2 nodes are available: 1 Too many pods.', 'Another pod took the place: 0/2 nodes'],
  [
    "0/2 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules.",
    'The scheduler refuses the place: 0/2',
  ],
  ['0/2 nodes are available: 1 node(s) exceed max volume count.', 'The scheduler refuses the place: 0/2'],
])('%s: %s', (message, said) => {
  const instance = gpuInstance('one', {}, CLAIMED);
  const step = planNext(observed({ instance, pod: unboundPod({ message }) }));
  expect(step).toMatchObject({ do: 'end', ending: { reason: 'PlaceLost', message: expect.stringContaining(said) } });
});
