import { describe, expect, test } from 'vitest';
import { endingOf } from '../../../src/controllers/gpu-instance/decide/endings.ts';
import { nextLook } from '../../../src/controllers/gpu-instance/decide/next-look.ts';
import type { Observed } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { eventsOf } from '../../../src/controllers/gpu-instance/decide/status/event.ts';
import { gpuHealthy } from '../../../src/controllers/gpu-instance/decide/status/conditions.ts';
import { statusOf } from '../../../src/controllers/gpu-instance/decide/status/status.ts';
import { endedStatus, releasedStatus } from '../../../src/controllers/gpu-instance/decide/transitions.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { fold } from '../../../src/resources/history-fold.ts';
import type { Claim, GpuInstance, GpuInstanceSpec } from '../../../src/resources/instances/gpu-instance.ts';
import { instanceState, startHash } from '../../../src/resources/instances/instance-state.ts';
import { EARLIER, NOW, observed, READY, readyNode, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const SSH = { host: 'ssh.test', port: 2222 };
const SECOND = 1_000;
const RESTART: Partial<GpuInstanceSpec> = { onGPUFailure: 'Restart' };

type Report = Record<string, 'Healthy' | 'Unhealthy' | 'Unknown'>;

/** The pod, with what the kubelet says of its GPUs. */
function podWith(report: Report | undefined, resource = 'nvidia.com/gpu') {
  const resources = Object.entries(report ?? {}).map(([resourceID, health]) => ({ resourceID, health }));
  const state = { running: { startedAt: EARLIER } };
  const main = { name: 'main', image: 'debian:12', imageID: '', ready: true, restartCount: 0, state };
  const told = report && { allocatedResourcesStatus: [{ name: resource, resources }] };
  return startedPod({ conditions: [SCHEDULED, READY], containerStatuses: [{ ...main, ...told }] });
}

/** An instance that runs, with two GPUs. */
function running(spec: Partial<GpuInstanceSpec> = {}, claim: Partial<Claim> = {}): GpuInstance {
  const status = { claim: claimOn('n', { gpuCount: 2, ...claim }), incarnation: 1, podName: 'one-1', podUid: 'pod-1' };
  return gpuInstance('one', spec, { ...status, runtype: 'ssh', stages: { ready: EARLIER } });
}

function seen(instance: GpuInstance, report: Report | undefined, over: Partial<Observed> = {}): Observed {
  return observed({ instance, pod: podWith(report), ...over });
}

/** What the controller writes of one look after the other; each is seconds after `NOW` and a report. */
function looks(instance: GpuInstance, ...reports: readonly (readonly [number, Report | undefined])[]): GpuInstance {
  return reports.reduce((before, [seconds, report]) => {
    const look = seen(before, report, { now: NOW + seconds * SECOND });
    return { ...before, status: statusOf(look, SSH) };
  }, instance);
}

const at = (seconds: number): string => new Date(NOW + seconds * SECOND).toISOString();

describe('the condition GPUHealthy', () => {
  test.each<[string, Report | undefined, Partial<GpuInstanceSpec>, { is: string | undefined; says: RegExp }]>([
    ['has no report', undefined, {}, { is: undefined, says: /^$/ }],
    ['has healthy GPUs', { a: 'Healthy', b: 'Healthy' }, {}, { is: 'True Healthy', says: /as healthy\.$/ }],
    [
      'has a GPU of unknown health',
      { a: 'Healthy', b: 'Unknown' },
      {},
      { is: 'Unknown Unknown', says: /^GPU b is of unknown/ },
    ],
    [
      'keeps an unhealthy GPU',
      { a: 'Healthy', b: 'Unhealthy' },
      {},
      { is: 'False Unhealthy', says: /^GPU b is .*keeps running.*Restart\.$/ },
    ],
    [
      'will leave two',
      { a: 'Unhealthy', b: 'Unhealthy' },
      RESTART,
      { is: 'False Unhealthy', says: /^GPUs a and b are .* at 2026-01-01T00:31:00\.000Z\.$/ },
    ],
  ])('of an instance that %s', (_what, report, spec, { is, says }) => {
    const found = gpuHealthy(seen(running(spec), report));
    expect(found && `${found.status} ${found.reason}`).toBe(is);
    expect(found?.message ?? '').toMatch(says);
  });

  test('says nothing without a pod, and nothing of devices that are no GPUs of the claim', () => {
    expect(gpuHealthy(observed({ instance: running() }))).toBeUndefined();
    const pod = podWith({ a: 'Unhealthy' }, 'example.com/nic');
    expect(gpuHealthy(observed({ instance: running(), pod }))).toBeUndefined();
    const slices = running({}, { resourceName: 'nvidia.com/mig-1g.10gb' });
    const slice = podWith({ 'MIG-a': 'Unhealthy' }, 'nvidia.com/mig-1g.10gb');
    expect(gpuHealthy(observed({ instance: slices, pod: slice }))).toMatchObject({ status: 'False' });
  });

  test('says that a GPU has recovered, and of the next start no more', () => {
    const back = looks(running(), [0, { a: 'Unhealthy' }], [30, { a: 'Healthy' }], [40, { a: 'Healthy' }]);
    expect(findCondition(back.status?.conditions, 'GPUHealthy')).toMatchObject({ status: 'True', reason: 'Recovered' });
    expect(back.status?.unhealthyGPUs).toBeUndefined();
    const claim = claimOn('n', { grantedAt: at(300) });
    const next = looks({ ...back, status: { ...back.status, claim } }, [310, { a: 'Healthy' }]);
    expect(findCondition(next.status?.conditions, 'GPUHealthy')).toMatchObject({ status: 'True', reason: 'Healthy' });
  });
});

describe('the GPUs in the status', () => {
  test('keep the time when each was first seen, in whatever order the kubelet lists them', () => {
    const one = looks(running(), [0, { a: 'Healthy', b: 'Unhealthy' }], [20, { b: 'Unhealthy', a: 'Unhealthy' }]);
    expect(one.status?.unhealthyGPUs).toEqual([
      { id: 'a', since: at(20) },
      { id: 'b', since: at(0) },
    ]);
    const again = looks(one, [25, { a: 'Unhealthy', b: 'Unhealthy' }]);
    expect(again.status).toEqual(one.status);
  });

  test('are no more than a status has room for, with ids that are no longer', () => {
    const report = Object.fromEntries(
      Array.from({ length: 200 }, (_, index) => [`${index}-${'x'.repeat(5_000)}`, 'Unhealthy' as const]),
    );
    const { status } = looks(running(), [0, report]);
    expect(status?.unhealthyGPUs).toHaveLength(64);
    expect(Math.max(...(status?.unhealthyGPUs ?? []).map(({ id }) => id.length))).toBe(128);
    expect(findCondition(status?.conditions, 'GPUHealthy')?.message).toMatch(/ and 56 more are unhealthy/);
  });
});

describe('an instance with an unhealthy GPU', () => {
  const SICK: Report = { a: 'Healthy', b: 'Unhealthy' };

  test('is kept for as long as its owner chose so', () => {
    const instance = looks(running(), [0, SICK]);
    expect(planNext(seen(instance, SICK, { now: NOW + 3_600 * SECOND })).do).toBe('observe');
  });

  test('ends after a minute where its owner chose so, and the controller looks just then', () => {
    const instance = looks(running(RESTART), [0, SICK]);
    const early = seen(instance, SICK, { now: NOW + 59 * SECOND });
    const step = planNext(early);
    expect(step.do).toBe('observe');
    const none = { writeAfterMs: 0, repairAfterMs: undefined, isHidden: false };
    expect(nextLook(early, { step, ...none })).toEqual({ requeueAfterMs: SECOND });
    expect(planNext(seen(instance, SICK, { now: NOW + 60 * SECOND }))).toEqual({
      do: 'end',
      ending: {
        reason: 'GPUUnhealthy',
        message: 'GPU b was unhealthy for 60 seconds, for which the instance is to start again.',
      },
    });
  });

  test('outlives GPUs that recover, also where one does while the next fails', () => {
    const flap = looks(
      running(RESTART),
      [0, SICK],
      [40, { a: 'Unhealthy', b: 'Unhealthy' }],
      [50, { a: 'Unhealthy', b: 'Healthy' }],
    );
    expect(planNext(seen(flap, { a: 'Unhealthy' }, { now: NOW + 99 * SECOND })).do).toBe('observe');
    expect(planNext(seen(flap, { a: 'Unhealthy' }, { now: NOW + 100 * SECOND })).do).toBe('end');
    const again = looks(running(RESTART), [0, SICK], [50, { a: 'Healthy', b: 'Healthy' }], [55, SICK]);
    expect(planNext(seen(again, SICK, { now: NOW + 70 * SECOND })).do).toBe('observe');
  });

  test('stays while nothing is known: without a report, and on a node that does not answer', () => {
    const instance = looks(running(RESTART), [0, SICK]);
    const later = { now: NOW + 90 * SECOND };
    expect(planNext(seen(instance, undefined, later)).do).toBe('observe');
    expect(planNext(seen(instance, { a: 'Healthy', b: 'Unknown' }, later)).do).toBe('observe');
    expect(planNext(seen(instance, SICK, { ...later, node: readyNode('n', 'Unknown') })).do).toBe('observe');
  });

  test('is billed until the controller ended the start, and starts again with no fault of the node', () => {
    const sick = looks(running(RESTART), [0, SICK]);
    const step = planNext(seen(sick, SICK, { now: NOW + 60 * SECOND }));
    if (step.do !== 'end') throw new Error('It did not end.');
    const ended = { ...sick, status: endedStatus(sick, step.ending, NOW + 60 * SECOND) };
    const stopping = { ...ended, status: statusOf(seen(ended, SICK, { now: NOW + 61 * SECOND }), SSH) };
    expect(instanceState(stopping)).toMatchObject({ state: 'interrupted', reason: 'GPUUnhealthy' });
    const ending = endingOf(stopping.status);
    if (ending === undefined) throw new Error('It has no ending.');
    const free = { ...stopping, status: releasedStatus(stopping, ending, NOW + 90 * SECOND) };
    expect(free.status.intervals?.at(-1)).toMatchObject({ from: new Date(EARLIER).toISOString(), to: at(60) });
    expect(free.status.unhealthyGPUs).toBeUndefined();
    expect(free.status.failures).toEqual({ count: 1, lastTime: at(60) });
    expect(planNext(observed({ instance: free, now: NOW + 90 * SECOND }))).toEqual({ do: 'claim' });
    // While no place is free it says why it waits.
    const waiting = { reason: 'WaitingForCapacity', message: 'No place is free.' } as const;
    const waits = statusOf(observed({ instance: free, now: NOW + 91 * SECOND }), SSH, waiting);
    expect(instanceState({ ...free, status: waits })).toMatchObject({ state: 'interrupted', reason: 'GPUUnhealthy' });
    expect(findCondition(waits.conditions, 'GPUHealthy')).toBeUndefined();
  });

  test('gets the next GPUs after growing pauses, when it breaks them soon after each start', () => {
    let failures: NonNullable<GpuInstance['status']>['failures'];
    const pauses = [1, 2, 3].map((start) => {
      const instance = running(RESTART);
      const stages = { ready: at(start * 600) };
      const status = { ...instance.status, stages, ...(failures && { failures }) };
      const broken = { ...instance, status };
      const over = NOW + (start * 600 + 90) * SECOND;
      const ended = { ...broken, status: endedStatus(broken, { reason: 'GPUUnhealthy', message: '' }, over) };
      const ending = endingOf(ended.status);
      if (ending === undefined) throw new Error('It has no ending.');
      const free = { ...ended, status: releasedStatus(ended, ending, over) };
      ({ failures } = free.status);
      const step = planNext(observed({ instance: free, now: over }));
      return step.do === 'wait' ? (step.until - over) / SECOND : step.do;
    });
    expect(pauses).toEqual([1, 4, 16]);
  });
});

describe('what is told', () => {
  test('an Event for each GPU that fails, and one when they are well again', () => {
    const well = looks(running(), [0, { a: 'Healthy', b: 'Healthy' }]);
    const first = looks(well, [10, { a: 'Healthy', b: 'Unhealthy' }]);
    const second = looks(first, [20, { a: 'Unhealthy', b: 'Unhealthy' }]);
    const back = looks(second, [30, { a: 'Healthy', b: 'Healthy' }]);
    const told = [
      [well, first],
      [first, looks(first, [15, { a: 'Healthy', b: 'Unhealthy' }])],
      [first, second],
      [second, back],
      [back, looks(back, [35, { a: 'Healthy', b: 'Healthy' }])],
    ] as const;
    expect(
      told.map(([before, after]) =>
        eventsOf(before, after).map(({ type, reason, message }) => `${type} ${reason} ${message}`),
      ),
    ).toEqual([
      ['Warning GPUBecameUnhealthy GPU b is unhealthy, as the node reports.'],
      [],
      ['Warning GPUBecameUnhealthy GPU a is unhealthy, as the node reports.'],
      ['Normal GPURecovered The GPUs of the instance are healthy again.'],
      [],
    ]);
  });

  test('the history has each of them once', () => {
    const steps = [
      looks(running(), [0, { a: 'Healthy', b: 'Unhealthy' }]),
      looks(running(), [0, { a: 'Healthy', b: 'Unhealthy' }], [5, { a: 'Healthy', b: 'Unhealthy' }]),
      looks(running(), [0, { a: 'Healthy', b: 'Unhealthy' }], [10, { a: 'Healthy', b: 'Healthy' }]),
    ];
    const history = steps.reduce<Parameters<typeof fold>[0]>(
      (before, one) => fold(before, one, { gone: false, now: NOW }),
      undefined,
    );
    const told = history?.entries.filter(({ reason }) => reason.startsWith('GPU'));
    expect(told?.map(({ at: when, type, reason, start }) => [Date.parse(when), type, reason, start])).toEqual([
      [NOW, 'Warning', 'GPUBecameUnhealthy', 1],
      [NOW + 10 * SECOND, 'Normal', 'GPURecovered', 1],
    ]);
  });
});

test('the choice is not part of what a start depends on: to change it starts nothing that ended', () => {
  expect(startHash(gpuInstance('one', RESTART).spec)).toBe(startHash(gpuInstance('one').spec));
});

describe('GPUs that Dynamic Resource Allocation gave out', () => {
  const device = (name: string, isTainted = false) => ({
    driver: 'gpu.nvidia.com',
    pool: 'n',
    device: name,
    uuid: `GPU-${name}`,
    isTainted,
  });
  const look = (instance: GpuInstance, devices: Observed['devices'] = [], over: Partial<Observed> = {}) =>
    observed({ instance, pod: podWith(undefined), devices, ...over });

  test('stand in the status while the start lasts, in its bill, and not in the next start', () => {
    const first = { ...running(), status: statusOf(look(running(), [device('gpu-0'), device('gpu-3')]), SSH) };
    const [a, b] = ['gpu-0', 'gpu-3'].map((name) => ({
      driver: 'gpu.nvidia.com',
      pool: 'n',
      device: name,
      uuid: `GPU-${name}`,
    }));
    expect(first.status.devices).toEqual([a, b]);
    // The claim is gone before the pod, and a cache may not have it yet.
    const later = { ...first, status: statusOf(look(first), SSH) };
    expect(later.status.devices).toEqual([a, b]);
    const status = { ...later.status, stages: { ...later.status.stages, started: EARLIER } };
    const ended = {
      ...later,
      status: endedStatus({ ...later, status }, { reason: 'Stopped', message: 'Stopped.' }, NOW),
    };
    const ending = endingOf(ended.status);
    if (ending === undefined) throw new Error('it has no ending');
    const released = releasedStatus(ended, ending, NOW + SECOND);
    expect(released.intervals?.at(-1)?.devices).toEqual([a, b]);
    expect(released).not.toHaveProperty('devices');
  });

  test('keep the UUIDs that were told while their slice is away', () => {
    const [a, b] = [device('gpu-0'), device('gpu-3')];
    const first = { ...running(), status: statusOf(look(running(), [a, b]), SSH) };
    const untold = [a, b].map(({ uuid: _uuid, ...place }) => place);
    const away = { ...first, status: statusOf(look(first, untold), SSH) };
    expect(away.status.devices).toEqual(first.status.devices);
    const other = [{ ...a, uuid: 'GPU-new' }, untold[1] ?? b];
    const uuids = statusOf(look(away, other), SSH).devices?.map(({ uuid }) => uuid);
    expect(uuids).toEqual(['GPU-new', 'GPU-gpu-3']);
    const moved = [{ ...(untold[0] ?? a), pool: 'm' }];
    expect(statusOf(look(away, moved), SSH).devices?.map(({ uuid }) => uuid)).toEqual([undefined]);
  });

  test('are unhealthy with a taint, and leave after a minute where the owner wants it', () => {
    const sick = look(running(RESTART), [device('gpu-0', true), device('gpu-3')]);
    expect(gpuHealthy(sick)).toMatchObject({ status: 'False', message: expect.stringMatching(/^GPU GPU-gpu-0 is /) });
    const status = statusOf(sick, SSH);
    expect(status.unhealthyGPUs).toEqual([{ id: 'GPU-gpu-0', since: at(0) }]);
    const next = (seconds: number) =>
      planNext(look({ ...running(RESTART), status }, sick.devices, { now: NOW + seconds * SECOND, node: readyNode() }));
    expect(next(30)).not.toMatchObject({ ending: { reason: 'GPUUnhealthy' } });
    expect(JSON.stringify(next(61))).toContain('GPUUnhealthy');
    expect(gpuHealthy(look({ ...running(), status }, [device('gpu-0'), device('gpu-3')]))).toMatchObject({
      status: 'True',
      reason: 'Recovered',
    });
  });
});
