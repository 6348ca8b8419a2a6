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
import type { GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { AlreadyExistsError, KubeError, toKubeError } from '../../../src/kube/errors.ts';
import type { Namespace, Pod } from '../../../src/kube/types.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import { claimingCache } from '../../support/claiming-cache.ts';
import { cacheOf, controllerWorld, held } from '../../support/controller-world.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { EARLIER, NOW, observed, READY, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimedPod, claimOn, gpuInstance, gpuNode } from '../../support/inventory-world.ts';

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
function billOf(pod: ReturnType<typeof endedPod>, powerState?: 'Stopped') {
  const spec = { runtype: 'args' as const, ...(powerState && { powerState }) };
  const seen = observed({ instance: gpuInstance('one', spec, CLAIMED), pod });
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

test('a program on a node whose clock is behind is billed for as long as it ran', () => {
  const hourBack = (minute: number): string => new Date(Date.UTC(2025, 11, 31, 23, minute)).toISOString();
  expect(billOf(endedPod(hourBack(10), hourBack(25)))).toBe(900);
});

test('on a node whose clock is behind, a program that traps its end is billed for its grace', () => {
  const stages = { claimed: EARLIER, started: at(1) };
  const ending = { reason: 'Stopped', message: '', at: at(20), generation: 1 };
  const instance = gpuInstance('one', { powerState: 'Stopped' }, { ...CLAIMED, stages, ending });
  const pod = endedPod('2025-12-31T23:01:00Z', '2025-12-31T23:20:12Z');
  const { ending: after } = statusOf(observed({ instance, pod }), SSH);
  expect(after?.finishedAt).toBe('2026-01-01T00:20:12.000Z');
});

test('whoever stops an instance whose program had ended pays until then', () => {
  expect(billOf(endedPod(at(10), at(15)), 'Stopped')).toBe(300);
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

const LOG = pino({ level: 'silent' });

/** A replica that sees instances go, and an API server for its usage records. */
function replica(clock = fakeClock()) {
  clock.jumpWall(NOW - clock.now());
  const unrecorded = new UnrecordedInstances(LOG, clock);
  const stored = new Map<string, UsageRecord>();
  const api = { refuses: undefined as Error | undefined };
  const client = {
    create(_type: unknown, record: UsageRecord) {
      if (api.refuses) return Promise.reject(api.refuses);
      const { name } = record.metadata;
      if (stored.has(name))
        return Promise.reject(new AlreadyExistsError({ message: '', status: 409, reason: 'AlreadyExists' }));
      stored.set(name, record);
      return Promise.resolve(record);
    },
  };
  const nodes = new Map([['n', gpuNode('n')]]);
  const namespaces = new Map<string, Namespace>();
  const stores = { nodes, namespaces, pods: { by: () => [], get: () => undefined } };
  const deps = { client, clock, unrecorded, stores };
  const run = { deps, key: 'default/one', context: { log: LOG } } as unknown as Run;
  const woken: string[] = [];
  return {
    clock,
    unrecorded,
    stored,
    api,
    nodes,
    namespaces,
    lead: () => unrecorded.source.start((key) => woken.push(key)),
    woken: () => woken.splice(0),
    vanish: (before: GpuInstance) => unrecorded.noteChange({ key: 'default/one', before, after: undefined }),
    write: () => writeLateUsageRecords(run),
    specs: () => [...stored.values()].map(({ spec }) => spec),
  };
}

const STARTED = gpuInstance('one', {}, { ...CLAIMED, stages: { ready: at(20) } });
const HOUR = 3_600_000;

test('an instance whose finalizer was removed leaves its usage record, once', async () => {
  const { unrecorded, lead, woken, vanish, write, specs } = replica();
  lead();
  const usage = { gpuSeconds: 10, cost: '1.00', currency: 'USD' };
  const before = gpuInstance('one', {}, { ...STARTED.status, usage });
  vanish(before);
  expect(woken()).toEqual(['default/one']);
  await write();
  await write();
  expect(specs()).toMatchObject([{ instanceUid: before.metadata.uid, gpuSeconds: 610 }]);
  // An instance that was cleaned up has its record already. One that never had a place costs nothing.
  unrecorded.markRecorded(before);
  vanish(before);
  unrecorded.noteChange({ key: 'default/two', before: gpuInstance('two'), after: undefined });
  expect(woken()).toEqual([]);
});

test('who has a namespace that was made anew pays for nothing that went with the one before', async () => {
  const { namespaces, lead, vanish, write, specs, unrecorded } = replica();
  vanish({ ...STARTED, metadata: { ...STARTED.metadata, creationTimestamp: at(0) } });
  namespaces.set('default', { metadata: { name: 'default', creationTimestamp: at(26) } });
  lead();
  await write();
  expect([specs(), unrecorded.all()]).toEqual([[], []]);
});

test('nobody pays for the silence of a node that began before the instance went', async () => {
  const { nodes, lead, vanish, write, specs } = replica();
  lead();
  const silent = { type: 'Ready', status: 'Unknown' as const, lastTransitionTime: at(25) };
  nodes.set('n', { ...gpuNode('n'), status: { conditions: [silent] } });
  vanish(STARTED);
  await write();
  expect(specs()).toMatchObject([{ gpuSeconds: 300 }]);
});

test('a record that cannot be written for hours has the bill of the moment at which the instance went', async () => {
  const { clock, api, lead, vanish, write, specs } = replica();
  lead();
  vanish(STARTED);
  api.refuses = new KubeError({ message: 'etcdserver: no leader', status: 500, reason: 'InternalError' });
  for (let hour = 0; hour < 5; hour += 1) {
    await expect(write()).rejects.toThrow('no leader');
    await clock.advance(HOUR);
  }
  api.refuses = undefined;
  await write();
  expect(specs()).toMatchObject([{ gpuSeconds: 600, endedAt: new Date(NOW).toISOString() }]);
});

test('a leader who follows within the hour writes what the one before could not, until the moment of the end', async () => {
  const { clock, lead, woken, vanish, write, specs } = replica();
  vanish(STARTED);
  await clock.advance(HOUR / 2);
  lead();
  expect(woken()).toEqual(['default/one']);
  await clock.advance(3 * HOUR);
  await write();
  expect(specs()).toMatchObject([{ gpuSeconds: 600, endedAt: new Date(NOW).toISOString() }]);
});

test('a replica whose clock was hours ahead when an instance went bills none of them once it leads', async () => {
  const { clock, lead, vanish, write, specs } = replica();
  clock.jumpWall(2 * HOUR);
  vanish(STARTED);
  await clock.advance(20_000);
  clock.jumpWall(-2 * HOUR);
  lead();
  await write();
  expect(specs()).toMatchObject([{ gpuSeconds: 600, endedAt: new Date(NOW).toISOString() }]);
});

test('a standby of weeks writes no record anew that was written, exported and deleted', async () => {
  const { clock, stored, lead, woken, vanish, write, specs } = replica();
  vanish(STARTED);
  // The leader of that time wrote it, and the operator has deleted the records of the month since.
  await clock.advance(480 * HOUR);
  stored.clear();
  lead();
  await write();
  expect([woken(), specs()]).toEqual([[], []]);
});

test('a replica that leads again writes nothing anew that it wrote or saw before', async () => {
  const { clock, stored, unrecorded, lead, woken, vanish, write, specs } = replica();
  const end = lead();
  vanish(STARTED);
  await write();
  expect(specs()).toHaveLength(1);
  end();
  const other = gpuInstance('two', {}, STARTED.status);
  unrecorded.noteChange({ key: 'default/two', before: other, after: undefined });
  await clock.advance(30 * 24 * HOUR);
  stored.clear();
  woken();
  lead();
  await write();
  expect([woken(), specs(), unrecorded.all()]).toEqual([[], [], []]);
});

test.each([
  ['while its definition is replaced', 404, '404 page not found', false],
  ['of a kind that is going', 405, { reason: 'MethodNotAllowed', details: {} }, false],
  ['of a kind that is unknown', 404, { reason: 'NotFound', details: {} }, false],
  ['in a namespace that is gone', 404, { reason: 'NotFound', details: { name: 'default', kind: 'namespaces' } }, true],
  [
    'in a namespace that goes',
    403,
    { reason: 'Forbidden', details: { causes: [{ reason: 'NamespaceTerminating' }] } },
    true,
  ],
])(
  'a record that cannot be made %s counts as written only with its namespace gone',
  async (_when, status, body, gone) => {
    const { api, lead, vanish, write, specs, unrecorded } = replica();
    lead();
    vanish(STARTED);
    api.refuses = toKubeError('POST /usagerecords', {
      status,
      body: typeof body === 'string' ? body : { kind: 'Status', ...body },
    });
    if (gone) await write();
    else await expect(write()).rejects.toThrow(String(status));
    expect(unrecorded.all()).toHaveLength(gone ? 0 : 1);
    api.refuses = undefined;
    await write();
    expect(specs()).toHaveLength(gone ? 0 : 1);
  },
);

test('an instance that is back, as after a restore, has not gone', async () => {
  const { unrecorded, lead, woken, vanish } = replica();
  vanish(STARTED);
  unrecorded.noteChange({ key: 'default/one', before: undefined, after: STARTED });
  lead();
  expect(woken()).toEqual([]);
});

test('an instance that goes while its claim is on its pod alone had a place too', () => {
  const unrecorded = new UnrecordedInstances(LOG, fakeClock());
  const one = gpuInstance('one');
  const before = claimingCache(cacheOf<Pod>([claimedPod(one, claimOn('n'))]), [one]).store.get('default/one');
  unrecorded.noteChange({ key: 'default/one', before, after: undefined });
  expect(unrecorded.withKey('default/one').map(({ instance }) => instance)).toEqual([before]);
});

test('marks of instances that went before they were made are no more than so many', () => {
  const unrecorded = new UnrecordedInstances(LOG, fakeClock());
  const open = gpuInstance('one', {}, CLAIMED);
  const uidOf = (uid: string) => ({ ...open, metadata: { ...open.metadata, uid } });
  unrecorded.markRecorded(uidOf('first'));
  for (let index = 0; index < 65_536; index++) unrecorded.markRecorded(uidOf(`gone-${index}`));
  for (const uid of ['first', 'gone-65535'])
    unrecorded.noteChange({ key: 'default/one', before: uidOf(uid), after: undefined });
  expect(unrecorded.all().map(({ metadata }) => metadata.uid)).toEqual(['first']);
});

test('an instance that goes while no controller leads has its usage recorded by the next leader', () => {
  const unrecorded = new UnrecordedInstances(LOG, fakeClock());
  const open = gpuInstance('one', {}, CLAIMED);
  const { claim: _claim, ...released } = open.status ?? {};
  unrecorded.noteChange({ key: 'default/one', before: open, after: undefined });
  // The leader that released this one has written its record.
  const closed = { ...gpuInstance('two'), status: released };
  unrecorded.noteChange({ key: 'default/two', before: closed, after: undefined });
  const woken: string[] = [];
  unrecorded.source.start((key) => woken.push(key));
  expect(woken).toEqual(['default/one']);
  expect(unrecorded.withKey('default/one').map(({ instance }) => instance)).toEqual([open]);
});

test('a program that ran for the first time after its end was decided, and that nobody saw run, is billed', async () => {
  const { instances, pods, reconcile, clock } = controllerWorld(undefined, undefined, { takesChanges: true });
  const second = (one: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, one)).toISOString();
  const ending = { reason: 'Stopped', message: '', at: second(10), generation: 1 };
  const instance = held(gpuInstance('one', {}, { ...CLAIMED, ending }));
  const terminated = { exitCode: 137, startedAt: second(12), finishedAt: second(30) };
  const main = { name: 'main', image: 'i', imageID: '', ready: false, restartCount: 0, state: { terminated } };
  const pod = claimedPod(instance, claimOn('n'));
  instances.upsert(instance);
  pods.upsert({ ...pod, status: { phase: 'Failed', containerStatuses: [main] } });
  clock.stall(40_000);
  await reconcile('one');
  expect(instances.store.get('default/one')?.status).toMatchObject({
    stages: { started: second(12) },
    usage: { gpuSeconds: 18 },
  });
});
