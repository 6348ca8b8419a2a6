import { expect, test } from 'vitest';
import type { Run } from '../../../src/controllers/gpu-instance/act/run.ts';
import { checkLogin } from '../../../src/controllers/gpu-instance/act/check-pod.ts';
import { deadlines } from '../../../src/controllers/gpu-instance/decide/deadlines.ts';
import { type Ending, endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { toInstanceRecord } from '../../../src/http/features/instances/record.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { billsOfInstance } from '../../../src/ledger/bills.ts';
import type { GpuInstance, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { observed, READY, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const SSH = { host: 'ssh.test', port: 22 };
const GRANTED = Date.UTC(2026, 0, 1);
const time = (second: number): string => new Date(GRANTED + second * 1000).toISOString();
const claim = claimOn('n', { gpuCount: 1, pricePerHour: '3600', grantedAt: time(0) });
type ContainerState = Record<string, object>;

/** The only tries that are made: none works. */
const NO_LOGIN = {
  deps: { logins: { last: () => false }, events: { record: () => undefined } },
  key: 'default/one',
} as unknown as Run;

/** A pod as its kubelet reports it, with the main container in this state. */
function podWith(state: ContainerState, more: { lastState?: ContainerState; restartCount?: number } = {}): Pod {
  const main = { name: 'main', image: 'i', imageID: '', ready: 'running' in state, restartCount: 0, state, ...more };
  const scheduled = { ...SCHEDULED, lastTransitionTime: time(1) };
  const runs = (state['running'] as { startedAt: string } | undefined)?.startedAt;
  const conditions = runs === undefined ? [scheduled] : [scheduled, { ...READY, lastTransitionTime: runs }];
  return startedPod({ phase: 'Running', conditions, containerStatuses: [main] });
}

/** The runs of a container, as [first second, last second], seen by a controller that looks between them, too. */
function podsOf(runs: readonly (readonly [number, number])[]): { second: number; pod: Pod }[] {
  return runs.flatMap(([from, to], restartCount) => {
    const before = runs[restartCount - 1];
    const ended = (run: readonly [number, number] | undefined) =>
      run && { terminated: { exitCode: 1, startedAt: time(run[0]), finishedAt: time(run[1]) } };
    const lastState = ended(before);
    const more = { restartCount, ...(lastState && { lastState }) };
    const waiting = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off' } };
    return [
      { second: from + 1, pod: podWith({ running: { startedAt: time(from) } }, more) },
      { second: to - 1, pod: podWith({ running: { startedAt: time(from) } }, more) },
      { second: to + 1, pod: podWith(waiting, { ...more, lastState: ended([from, to]) ?? {} }) },
    ];
  });
}

const FRESH: GpuInstanceStatus = {
  claim,
  incarnation: 1,
  podName: 'one-1',
  runtype: 'ssh',
  stages: { claimed: time(0) },
};

/** The status after a controller saw these pods one after the other, and no login worked. */
function watched(
  seen: readonly { second: number; pod: Pod }[],
  { spec = {}, status = FRESH }: { spec?: Partial<GpuInstanceSpec>; status?: GpuInstanceStatus } = {},
): GpuInstance {
  let instance = gpuInstance('one', spec, status);
  for (const { second, pod } of seen) {
    const view = observed({ instance, pod, now: GRANTED + second * 1000 });
    instance = { ...instance, status: statusOf({ ...view, login: checkLogin(NO_LOGIN, view) }, SSH) };
  }
  return instance;
}

/** GPU seconds on the bill when the owner stops the instance in this second. */
function billedAt(instance: GpuInstance, second: number): number | undefined {
  const now = GRANTED + second * 1000;
  const ended = { ...instance, status: endedStatus(instance, { reason: 'Stopped', message: '' }, now) };
  const ending = endingOf(ended.status);
  if (ending === undefined) throw new Error('no ending');
  return releasedStatus(ended, ending, now).usage?.gpuSeconds;
}

test('a container that restarts before each login is billed from its first run on, back-offs included', () => {
  const runs = [
    [3, 53],
    [54, 104],
    [118, 168],
    [194, 244],
    [295, 303],
  ] as const;
  const instance = watched(podsOf(runs));
  expect(instance.status?.stages).toMatchObject({ started: time(3) });
  // Logins fail and no run lasted for a minute: it does not count as an instance that runs.
  expect(instance.status?.stages?.ready).toBeUndefined();
  expect(billedAt(instance, 305)).toBe(302);
});

test('restarts move the begin of the meter no later, whether a login worked or not', () => {
  const ready = watched(podsOf([[3, 200]]));
  expect(ready.status?.stages).toMatchObject({ started: time(3), ready: time(3) });
  const again = watched(podsOf([[500, 600]]), { status: ready.status ?? {} });
  expect(again.status?.stages).toEqual(ready.status?.stages);
});

test('a controller that missed the first run bills from the earliest that the kubelet still says', () => {
  const [, , , second] = podsOf([
    [3, 53],
    [54, 104],
  ]);
  if (second === undefined) throw new Error('no second run');
  expect(watched([second]).status?.stages?.started).toBe(time(3));
});

test.each([
  ['is pulled', { waiting: { reason: 'ContainerCreating' } }],
  ['cannot be pulled', { waiting: { reason: 'ImagePullBackOff' } }],
  ['could not be started', { terminated: { exitCode: 128, startedAt: '1970-01-01T00:00:00Z', finishedAt: time(9) } }],
])('nothing is billed while its container %s', (_what, state) => {
  const instance = watched([{ second: 10, pod: podWith(state) }]);
  expect(instance.status?.stages?.started).toBeUndefined();
  expect(billedAt(instance, 600)).toBe(0);
});

test('maxDuration, idleTimeout, the record and the open bill count from where the bill does', () => {
  const spec = { maxDuration: '10m', idleTimeout: '5m' };
  const [first] = podsOf([[3, 53]]);
  if (first === undefined) throw new Error('no run');
  const instance = watched([first], { spec });
  expect(instance.status?.stages?.ready).toBeUndefined();
  const now = GRANTED + 100_000;
  const due = deadlines(observed({ instance, pod: first.pod, now }));
  expect(due.map(({ at, ending: { reason } }) => [reason, new Date(at).toISOString()])).toEqual(
    expect.arrayContaining([
      ['Idle', time(303)],
      ['Expired', time(603)],
    ]),
  );
  const around = { driver: undefined, images: undefined, template: undefined, defaultImage: 'i', place: undefined };
  expect(toInstanceRecord(instance, { ...around, nearLimits: [] }).expires_at).toBe(time(603));
  expect(billsOfInstance(instance, now).map(({ interval }) => [interval.from, interval.gpuSeconds])).toEqual([
    [time(3), 97],
  ]);
});

test('stopping a start that waits for its login makes it no start that was ready', () => {
  const [first] = podsOf([[3, 53]]);
  if (first === undefined) throw new Error('no run');
  const instance = watched([first]);
  const ending = endedStatus(instance, { reason: 'Stopped', message: '' }, GRANTED + 43_000);
  const after = watched([{ ...first, second: 44 }], { status: ending });
  expect(after.status?.stages?.ready).toBeUndefined();
  expect(after.status?.firstReady).toBeUndefined();
  expect(billedAt(after, 43)).toBe(40);
});

/** A start that ran from second 3 on, and whose end was decided in second 100 for this reason. */
function endedAt100(ending: Partial<Ending> = {}): GpuInstance {
  const instance = gpuInstance('one', {}, { ...FRESH, stages: { claimed: time(0), started: time(3), ready: time(5) } });
  const decided = endedStatus(instance, { reason: 'Stopped', message: '', ...ending }, GRANTED + 100_000);
  return { ...instance, status: decided };
}

/** A pod that is deleted, as its kubelet reports it once its container has ended. */
function endedPod(finishedAt: string, phase = 'Failed'): Pod {
  const { status = {}, ...pod } = podWith({ terminated: { exitCode: 137, startedAt: time(3), finishedAt } });
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: time(130) }, status: { ...status, phase } };
}

/** GPU seconds on the bill when the pods are gone, after the controller saw these. */
function billOf(instance: GpuInstance, pods: readonly { second: number; pod: Pod }[]): number | undefined {
  let seen = instance;
  for (const { second, pod } of pods) {
    const view = observed({ instance: seen, pod, now: GRANTED + second * 1000 });
    seen = { ...seen, status: statusOf(view, SSH) };
  }
  const ending = endingOf(seen.status);
  if (ending === undefined) throw new Error('no ending');
  return releasedStatus(seen, ending, GRANTED + 600_000).usage?.gpuSeconds;
}

test.each(['Stopped', 'Expired', 'Idle', 'Preempted', 'BudgetSpent', 'NodeLost', 'GPUUnhealthy'] as const)(
  'a program that traps TERM pays until it has ended, whatever ends it: %s',
  (reason) => {
    expect(billOf(endedAt100({ reason }), [{ second: 131, pod: endedPod(time(130)) }])).toBe(127);
    expect(billOf(endedAt100({ reason }), [{ second: 113, pod: endedPod(time(112)) }])).toBe(109);
  },
);

test('the bill ends at the grace after the decision at the latest, and with the decision where nothing else is known', () => {
  // A kubelet that is slow, and one whose clock is an hour ahead.
  expect(billOf(endedAt100(), [{ second: 400, pod: endedPod(time(399)) }])).toBe(127);
  expect(billOf(endedAt100(), [{ second: 110, pod: endedPod(time(3_710)) }])).toBe(107);
  // One whose clock is an hour behind.
  expect(billOf(endedAt100(), [{ second: 110, pod: endedPod(time(-3_600)) }])).toBe(97);
  expect(billOf(endedAt100(), [])).toBe(97);
});

test('a program that had ended on a silent node is billed until it ended, whoever ended the start meanwhile', () => {
  const instance = endedAt100();
  const unheard = (silences: { from: string; to?: string }[]): GpuInstance => ({
    ...instance,
    status: { ...instance.status, silences },
  });
  const back = [{ second: 200, pod: endedPod(time(50)) }];
  expect(billOf(unheard([{ from: time(80) }]), back)).toBe(47);
  expect(billOf(unheard([{ from: time(80), to: time(150) }]), back)).toBe(47);
  // The node answered when the end was decided.
  expect(billOf(unheard([{ from: time(80), to: time(90) }]), back)).toBe(87);
  // Nobody had heard that it began, either.
  const { stages: _unheard, ...status } = unheard([{ from: time(80) }]).status ?? {};
  expect(billOf({ ...instance, status }, back)).toBe(47);
});

test('a container that is between two restarts when its end is decided is billed until then', () => {
  const waiting = podWith(
    { waiting: { reason: 'CrashLoopBackOff' } },
    { lastState: { terminated: { exitCode: 1, startedAt: time(3), finishedAt: time(20) } }, restartCount: 1 },
  );
  expect(billOf(endedAt100(), [{ second: 101, pod: waiting }])).toBe(97);
  expect(billOf(endedAt100(), [{ second: 101, pod: endedPod(time(20)) }])).toBe(97);
  // It was started once more before its kubelet heard of the deletion.
  const seen = [
    { second: 101, pod: endedPod(time(99), 'Running') },
    { second: 115, pod: endedPod(time(114)) },
  ];
  expect(billOf(endedAt100(), seen)).toBe(111);
});

test('where the decision knows when the use ended, a container that ends later changes nothing', () => {
  const at = GRANTED + 60_000;
  const lost = endedAt100({ reason: 'NodeLost', at });
  expect(billOf(lost, [{ second: 700, pod: endedPod(time(699)) }])).toBe(57);
});

test('while a start ends, the interface counts it until its container had ended', () => {
  const instance = endedAt100();
  const view = observed({ instance, pod: endedPod(time(120)), now: GRANTED + 121_000 });
  const seen = { ...instance, status: statusOf(view, SSH) };
  expect(billsOfInstance(seen, GRANTED + 300_000)).toMatchObject([{ open: false, interval: { to: time(120) } }]);
});
