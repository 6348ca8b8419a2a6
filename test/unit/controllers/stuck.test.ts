import { describe, expect, test } from 'vitest';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import type { Observed } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { EARLIER, observed, READY, readyNode, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const START = Date.parse(EARLIER);
const MINUTE = 60_000;
const time = (minute: number): string => new Date(START + minute * MINUTE).toISOString();
const CLAIMED: GpuInstanceStatus = {
  claim: { ...claimOn('n'), grantedAt: EARLIER },
  incarnation: 1,
  podName: 'one-1',
  podUid: 'pod-1',
  runtype: 'ssh',
  stages: { claimed: EARLIER, scheduled: EARLIER },
};
const SET_UP = { type: 'PodReadyToStartContainers', status: 'True', lastTransitionTime: EARLIER };
const NOT_SET_UP = { ...SET_UP, status: 'False' };

type Status = NonNullable<Pod['status']>;
type ContainerStatus = NonNullable<Status['containerStatuses']>[number];

function container(state: object, more: Partial<ContainerStatus> = {}): ContainerStatus {
  return { name: 'main', image: 'debian:12', imageID: '', ready: false, restartCount: 0, state, ...more };
}

const waits = (reason: string, more: Partial<ContainerStatus> = {}) => container({ waiting: { reason } }, more);
const CRASHED = { terminated: { exitCode: 3, startedAt: time(1), finishedAt: time(1) } };

function podWith({ conditions = [], ...status }: Status): Pod {
  return startedPod({ phase: 'Pending', conditions: [SCHEDULED, ...conditions], ...status });
}

/** What is decided after so many minutes: the reason of the ending, or `goes on`. */
function after(minute: number, pod: Pod, over: Partial<Observed> & { status?: GpuInstanceStatus } = {}): string {
  const { status, ...rest } = over;
  const instance = gpuInstance('one', {}, { ...CLAIMED, ...status });
  const step = planNext(observed({ instance, pod, now: START + minute * MINUTE, ...rest }));
  return step.do === 'end' ? step.ending.reason : step.do === 'observe' ? 'goes on' : step.do;
}

/** The words of the ending after an hour. */
function words(pod: Pod): string {
  const step = planNext(observed({ instance: gpuInstance('one', {}, CLAIMED), pod, now: START + 60 * MINUTE }));
  return step.do === 'end' ? step.ending.message : '';
}

describe('every start ends or runs', () => {
  const TOOLS = { name: 'berth-tools', state: { running: { startedAt: EARLIER } } };
  const init = (status: Partial<ContainerStatus>): Status => ({
    conditions: [SET_UP],
    initContainerStatuses: [container({}, { name: 'from-a-webhook', ...status })],
    containerStatuses: [waits('PodInitializing')],
  });

  test.each<[string, Status, number, string]>([
    [
      'network or volumes are not there',
      { conditions: [NOT_SET_UP], containerStatuses: [waits('ContainerCreating')] },
      5,
      'ContainerNotCreated',
    ],
    ['the kubelet says nothing at all', {}, 5, 'ContainerNotCreated'],
    ['the copy of the tools hangs', init(TOOLS), 5, 'ContainerNotCreated'],
    ['an init container of a webhook hangs', init({ state: TOOLS.state }), 5, 'PodFailed'],
    ['an init container fails again and again', init(waits('CrashLoopBackOff', { name: 'one' })), 5, 'PodFailed'],
    ['the image of an init container never comes', init(waits('PodInitializing', { name: 'one' })), 20, 'PodFailed'],
    [
      'the registry sends a byte a second',
      { conditions: [SET_UP], containerStatuses: [waits('ContainerCreating')] },
      20,
      'ImagePullFailed',
    ],
    [
      'an old kubelet says no more than that it waits',
      { containerStatuses: [waits('ContainerCreating')] },
      20,
      'ImagePullFailed',
    ],
    [
      'the container cannot be started, and is tried again',
      { conditions: [SET_UP], containerStatuses: [waits('CrashLoopBackOff', { restartCount: 2, lastState: CRASHED })] },
      20,
      'ContainerFailed',
    ],
  ])('%s', (_what, status, minute, reason) => {
    expect(after(minute - 0.1, podWith(status))).toBe('goes on');
    expect(after(minute, podWith(status))).toBe(reason);
  });

  test('a start whose container ran has twenty minutes from then, and six restarts', () => {
    const status = { ...CLAIMED, stages: { ...CLAIMED.stages, started: time(15) } };
    const crashing = (restartCount: number) =>
      podWith({
        conditions: [SET_UP],
        containerStatuses: [waits('CrashLoopBackOff', { restartCount, lastState: CRASHED })],
      });
    expect(after(34.9, crashing(5), { status })).toBe('goes on');
    expect(after(35, crashing(5), { status })).toBe('ContainerFailed');
    expect(after(16, crashing(6), { status })).toBe('ContainerFailed');
    expect(words(crashing(6))).toContain('ended 6 times before the instance was ready. Its last exit code was 3.');
  });

  test('a container beside the main one that is never ready is the fault of the operator', () => {
    const status = { ...CLAIMED, stages: { ...CLAIMED.stages, started: EARLIER } };
    const main = container({ running: { startedAt: EARLIER } }, { ready: true });
    const pod = podWith({ containerStatuses: [main, waits('CrashLoopBackOff', { name: 'from-a-webhook' })] });
    expect(after(19.9, pod, { status })).toBe('goes on');
    expect(after(20, pod, { status })).toBe('PodFailed');
  });

  test('the words say who is to blame', () => {
    expect(words(podWith({ conditions: [NOT_SET_UP] }))).toMatch(/^Node n did not set up the pod within 5 minutes/);
    expect(words(podWith(init(TOOLS)))).toMatch(/^The init container berth-tools does not end on node n/);
    expect(words(podWith(init({ state: TOOLS.state })))).toContain('The operator of the cluster must see to it.');
    expect(words(podWith({ conditions: [SET_UP], containerStatuses: [waits('ContainerCreating')] }))).toMatch(
      /^debian:12 did not come to node n within 20 minutes/,
    );
  });
});

describe('a start that gets on is left alone', () => {
  const CREATING = podWith({ conditions: [NOT_SET_UP], containerStatuses: [waits('ContainerCreating')] });

  test('a disk that Kubernetes takes from a silent node first has ten minutes', () => {
    const status = { ...CLAIMED, diskPersistent: true };
    expect(after(9.9, CREATING, { status })).toBe('goes on');
    expect(after(10, CREATING, { status })).toBe('ContainerNotCreated');
  });

  test('a pod that is ready has its minute for a login, however long no controller was there', () => {
    const running = container(
      { running: { startedAt: time(58) } },
      { ready: true, restartCount: 9, lastState: CRASHED },
    );
    const pod = podWith({ phase: 'Running', conditions: [READY], containerStatuses: [running] });
    const status = { ...CLAIMED, stages: { ...CLAIMED.stages, started: EARLIER } };
    expect(after(60, pod, { status })).toBe('goes on');
    expect(after(60, pod)).toBe('goes on');
  });

  test('a start whose container began to run while no controller looked has its time from then', () => {
    const running = container({ running: { startedAt: time(58) } });
    expect(after(60, podWith({ phase: 'Running', conditions: [SET_UP], containerStatuses: [running] }))).toBe(
      'goes on',
    );
  });

  test('a crash loop after a start was ready ends by its bill alone', () => {
    const status = { ...CLAIMED, stages: { ...CLAIMED.stages, started: EARLIER, ready: EARLIER } };
    const crash = waits('CrashLoopBackOff', { restartCount: 99, lastState: CRASHED });
    expect(after(6_000, podWith({ containerStatuses: [crash] }), { status })).toBe('goes on');
  });

  test('sidecars run for as long as the pod does', () => {
    const meshed = (started: boolean): Pod => {
      const initContainerStatuses = [container({ running: { startedAt: EARLIER } }, { name: 'mesh', started })];
      const status = { conditions: [SET_UP], initContainerStatuses, containerStatuses: [waits('ContainerCreating')] };
      const { spec = { containers: [] }, ...pod } = podWith(status);
      return { ...pod, spec: { ...spec, initContainers: [{ name: 'mesh', restartPolicy: 'Always' }] } };
    };
    expect(after(19, meshed(true))).toBe('goes on');
    expect(after(20, meshed(true))).toBe('ImagePullFailed');
    // One that does not start is no sidecar yet.
    expect(after(5, meshed(false))).toBe('PodFailed');
  });

  test('no limit counts while the node is silent, and one whose node comes and goes ends all the same', () => {
    const silent = readyNode('n', 'Unknown');
    expect(after(14, CREATING, { node: silent })).toBe('goes on');
    expect(after(100, CREATING, { node: undefined })).toBe('goes on');
    const back = (minute: number) => {
      const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: time(minute) }];
      return { ...silent, status: { ...silent.status, conditions } };
    };
    expect(after(14, CREATING, { node: back(10) })).toBe('goes on');
    expect(after(15, CREATING, { node: back(10) })).toBe('ContainerNotCreated');
    expect(after(15, CREATING, { node: back(14) })).toBe('ContainerNotCreated');
  });

  test('of a container that starts again, only the pull of its restart counts', () => {
    const status = { ...CLAIMED, stages: { ...CLAIMED.stages, started: time(1), ready: time(1) } };
    const ended = { terminated: { exitCode: 1, startedAt: time(1), finishedAt: time(600) } };
    const pod = podWith({ containerStatuses: [waits('ImagePullBackOff', { restartCount: 1, lastState: ended })] });
    expect(after(619, pod, { status })).toBe('goes on');
    expect(after(620, pod, { status })).toBe('ImagePullFailed');
  });
});
