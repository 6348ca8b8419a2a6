import { pino } from 'pino';
import { expect, test } from 'vitest';
import type { Run } from '../../../src/controllers/gpu-instance/act/run.ts';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { checkLogin } from '../../../src/controllers/gpu-instance/act/check-pod.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { writeLateUsageRecords } from '../../../src/controllers/gpu-instance/act/clean-up.ts';
import { UnrecordedInstances } from '../../../src/controllers/gpu-instance/unrecorded.ts';
import type { GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import type { Pod } from '../../../src/kube/types.ts';
import { claimingCache } from '../../support/claiming-cache.ts';
import { cacheOf } from '../../support/controller-world.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { EARLIER, NOW, observed, READY, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimedPod, claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { recordingClient } from '../../support/recording-client.ts';

const SSH = { host: 'ssh.test', port: 22 };
const CLAIMED: GpuInstanceStatus = { claim: { ...claimOn('n'), grantedAt: EARLIER }, incarnation: 1, podName: 'one-1' };
const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();

/** A pod whose program ran between two minutes of the half hour. */
function endedPod(startedAt: string, finishedAt: string) {
  const terminated = { exitCode: 0, startedAt, finishedAt };
  const main = { name: 'main', image: 'i', imageID: '', ready: false, restartCount: 0, state: { terminated } };
  return startedPod({ phase: 'Succeeded', conditions: [SCHEDULED], containerStatuses: [main] });
}

/** Usage after the end of a start whose pod is seen like this for the first time. */
function billOf(pod: ReturnType<typeof endedPod>) {
  const seen = observed({ instance: gpuInstance('one', { runtype: 'args' }, CLAIMED), pod });
  const step = planNext(seen);
  if (step.do !== 'end') throw new Error(`the step is ${step.do}`);
  const instance = { ...seen.instance, status: endedStatus(seen.instance, step.ending, NOW) };
  const ended = { ...instance, status: statusOf({ ...seen, instance }, SSH) };
  const ending = endingOf(ended.status);
  if (ending === undefined) throw new Error('no ending');
  return releasedStatus(ended, ending, NOW).usage?.gpuSeconds;
}

test('a program that ran and ended while nobody watched is billed for as long as it ran', () => {
  expect(billOf(endedPod(at(10), at(15)))).toBe(300);
});

test('a container that could not be started is not billed from the epoch', () => {
  expect(billOf(endedPod('1970-01-01T00:00:00Z', at(15)))).toBe(0);
});

test('a node whose clock is ahead puts no stage into the future', () => {
  const running = { startedAt: at(40) };
  const main = { name: 'main', image: 'i', imageID: '', ready: true, restartCount: 0, state: { running } };
  const conditions = [SCHEDULED, { ...READY, lastTransitionTime: at(40) }];
  const pod = startedPod({ phase: 'Running', conditions, containerStatuses: [main] });
  const { stages } = statusOf(observed({ instance: gpuInstance('one', {}, CLAIMED), pod }), SSH);
  expect(stages).toMatchObject({ started: at(30), ready: at(30) });
});

test('whoever gives a pod a month to end has it ended all the same', () => {
  const ending = { reason: 'PodDeleted', message: '', at: EARLIER, generation: 1 };
  const instance = gpuInstance('one', {}, { ...CLAIMED, ending });
  const slow = startedPod({}, { deletionTimestamp: '2026-02-01T00:00:00Z' });
  expect(planNext(observed({ instance, pod: slow }))).toEqual({ do: 'deletePods', pods: [slow] });
  const soon = startedPod({}, { deletionTimestamp: '2026-01-01T00:30:20Z' });
  expect(planNext(observed({ instance, pod: soon }))).toEqual({ do: 'observe' });
});

test('logins are tried for a minute; an image that lets none work counts as up since its pod was ready', () => {
  const instance = gpuInstance('one', {}, { ...CLAIMED, runtype: 'ssh' });
  const pod = startedPod({ conditions: [SCHEDULED, READY] });
  const events: string[] = [];
  const deps = {
    logins: { last: () => false },
    events: { record: (_type: unknown, _object: unknown, { reason }: { reason: string }) => events.push(reason) },
  };
  const run = { deps, key: 'default/one' } as unknown as Run;
  const early = observed({ instance, pod, now: Date.parse(EARLIER) + 59_000 });
  expect(checkLogin(run, early)).toBe('pending');
  expect(statusOf({ ...early, login: 'pending' }, SSH).stages?.ready).toBeUndefined();
  const late = observed({ instance, pod, now: Date.parse(EARLIER) + 60_000 });
  expect(checkLogin(run, late)).toBeUndefined();
  expect(statusOf(late, SSH).stages?.ready).toBe(new Date(EARLIER).toISOString());
  expect(events).toEqual(['LoginFailed']);
});

test('an instance whose finalizer was removed leaves its usage record, once', async () => {
  const log = pino({ level: 'silent' });
  const unrecorded = new UnrecordedInstances(log);
  const woken: string[] = [];
  unrecorded.source.start((key) => woken.push(key));
  const { client, calls } = recordingClient();
  const clock = fakeClock();
  clock.jumpWall(NOW - clock.now());
  const stores = { pods: { by: () => [] } };
  const run = { deps: { client, clock, unrecorded, stores }, key: 'default/one', context: { log } } as unknown as Run;
  const usage = { gpuSeconds: 10, cost: '1.00', currency: 'USD' };
  const before = gpuInstance('one', {}, { ...CLAIMED, usage, stages: { ready: at(20) } });
  unrecorded.noteChange({ key: 'default/one', before, after: undefined });
  expect(woken.splice(0)).toEqual(['default/one']);
  await writeLateUsageRecords(run);
  await writeLateUsageRecords(run);
  expect(calls).toHaveLength(1);
  expect(calls[0]?.arguments[1]).toMatchObject({ spec: { instanceUid: before.metadata.uid, gpuSeconds: 610 } });
  // An instance that was cleaned up has its record already. One that never had a place costs nothing.
  unrecorded.markRecorded(before);
  unrecorded.noteChange({ key: 'default/one', before, after: undefined });
  unrecorded.noteChange({ key: 'default/two', before: gpuInstance('two'), after: undefined });
  expect(woken).toEqual([]);
});

test('an instance that goes while its claim is on its pod alone had a place too', () => {
  const unrecorded = new UnrecordedInstances(pino({ level: 'silent' }));
  const one = gpuInstance('one');
  const before = claimingCache(cacheOf<Pod>([claimedPod(one, claimOn('n'))]), [one]).store.get('default/one');
  unrecorded.noteChange({ key: 'default/one', before, after: undefined });
  expect(unrecorded.withKey('default/one')).toEqual([before]);
});

test('an instance that goes while no controller leads has its usage recorded by the next leader', () => {
  const unrecorded = new UnrecordedInstances(pino({ level: 'silent' }));
  const open = gpuInstance('one', {}, CLAIMED);
  const { claim: _claim, ...released } = open.status ?? {};
  unrecorded.noteChange({ key: 'default/one', before: open, after: undefined });
  // The leader that released this one has written its record.
  const closed = { ...gpuInstance('two'), status: released };
  unrecorded.noteChange({ key: 'default/two', before: closed, after: undefined });
  const woken: string[] = [];
  unrecorded.source.start((key) => woken.push(key));
  expect(woken).toEqual(['default/one']);
  expect(unrecorded.withKey('default/one')).toEqual([open]);
});
