import { describe, expect, test } from 'vitest';
import { deadlines, isIdleOpen } from '../../../src/controllers/gpu-instance/decide/deadlines.ts';
import type { MonitorState, Observed } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import { planNext } from '../../../src/controllers/gpu-instance/decide/plan.ts';
import { monitoring } from '../../../src/controllers/gpu-instance/decide/status/monitoring.ts';
import { monitorStateOf } from '../../../src/controllers/gpu-instance/decide/observed.ts';
import type { Claim, GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { readMonitorLine } from '../../../src/ssh/session/check-login.ts';
import { EARLIER, NOW, observed, READY, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const MONITORED = { 'berth.dev/monitor': 'true', 'berth.dev/instance-uid': 'uid-one' };
const MINUTE = 60_000;

interface World {
  spec?: Partial<GpuInstanceSpec>;
  status?: Partial<GpuInstanceStatus>;
  claim?: Partial<Claim>;
  labels?: Record<string, string>;
  over?: Partial<Observed>;
}

/** An instance that has run for half an hour, with an exporter and `idleTimeout` of ten minutes. */
function world({ spec, status, claim, labels = MONITORED, over }: World = {}): Observed {
  const instance = gpuInstance(
    'one',
    { installMonitoring: true, idleTimeout: '10m', ...spec },
    {
      claim: claimOn('n', claim),
      incarnation: 1,
      podName: 'one-1',
      podUid: 'pod-1',
      stages: { ready: EARLIER },
      ...status,
    },
  );
  const pod = startedPod({ conditions: [SCHEDULED, READY] }, { labels });
  return observed({ instance, pod, ...over });
}

function said(gpus: MonitorState['gpus'], askedAt = NOW, busyAt?: number): { over: Partial<Observed> } {
  return { over: { monitor: { gpus, askedAt, busyAt } } };
}

/** Its container began again so many minutes ago; it ended then when it is not `up`. */
function restarted(
  minutes: number,
  isUp: boolean,
  monitor?: MonitorState,
  isolation: Claim['isolation'] = 'whole',
): World {
  const at = new Date(NOW - minutes * MINUTE).toISOString();
  const ready = { type: 'Ready', status: isUp ? 'True' : 'False', lastTransitionTime: at };
  const last = { lastState: { terminated: { exitCode: 137, startedAt: EARLIER, finishedAt: at } } };
  const state = isUp ? { running: { startedAt: at } } : { waiting: { reason: 'CrashLoopBackOff' } };
  const main = { name: 'main', image: 'debian:12', imageID: '', ready: isUp, restartCount: 1, state, ...last };
  const pod = startedPod({ conditions: [SCHEDULED, ready], containerStatuses: [main] }, { labels: MONITORED });
  return { claim: { isolation }, status: { stages: { started: EARLIER, ready: EARLIER } }, over: { pod, monitor } };
}

const FRESH: MonitorState = { gpus: 'measured', askedAt: NOW, busyAt: undefined };

const DCGM = { metadata: { name: 'dcgm', namespace: 'gpu-operator' } };

describe('the condition Monitoring', () => {
  test.each<[string, World, string, string]>([
    ['was not asked for', { spec: { installMonitoring: false } }, 'False', 'NotRequested'],
    ['waits for its pod', { over: { pod: undefined } }, 'Unknown', 'NoPod'],
    ['is on a simulated node', { claim: { simulated: true } }, 'False', 'Simulated'],
    ['was not looked at yet', {}, 'Unknown', 'NotSeen'],
    ['measures', said('measured'), 'True', 'Measures'],
    ['has MIG slices', said('partial'), 'False', 'GpuLoadUnknown'],
    ['has no tool', said('none'), 'False', 'NoGpuTool'],
    ['has a tool that fails', said('failed'), 'False', 'GpuToolFails'],
    ['does not answer', said('silent'), 'False', 'DoesNotAnswer'],
    ['has no tool, and its node has DCGM', { over: { ...said('none').over, exporter: DCGM } }, 'True', 'ExporterFound'],
    ['was asked for after the start', { labels: {} }, 'False', 'NextStart'],
    ['runs the image alone', { labels: {}, status: { runtype: 'args' } }, 'False', 'ExporterNotFound'],
    [
      'runs the image alone, and its node has DCGM',
      { labels: {}, status: { runtype: 'args' }, over: { exporter: DCGM } },
      'True',
      'ExporterFound',
    ],
  ])('of an instance that %s', (_what, seen, status, reason) => {
    expect(monitoring(world(seen))).toMatchObject({ status, reason });
  });

  test('stays what it was until a new leader has looked', () => {
    const known = { type: 'Monitoring', reason: 'Measures', message: 'said', lastTransitionTime: EARLIER };
    const status = { conditions: [{ ...known, status: 'True' as const }] };
    expect(monitoring(world({ status }))).toEqual({ status: 'True', reason: 'Measures', message: 'said' });
  });
});

describe('an idle instance with an exporter', () => {
  test.each<[string, World, string]>([
    ['ends at once without an exporter', { spec: { installMonitoring: false }, labels: {} }, 'end'],
    ['waits for the first answer', {}, 'observe'],
    ['waits for an answer since its time was over', said('measured', Date.parse(EARLIER) + 9 * MINUTE), 'observe'],
    ['ends when no GPU was busy', said('measured'), 'end'],
    ['waits for an exporter that is silent', said('silent', Date.parse(EARLIER) + 15 * MINUTE - 1), 'observe'],
    ['ends when the exporter stays silent', said('silent', Date.parse(EARLIER) + 15 * MINUTE), 'end'],
    ['ends when GPUs were busy long ago', said('measured', NOW, NOW - 11 * MINUTE), 'end'],
    ['stays while a GPU is busy', said('measured', NOW, NOW - MINUTE), 'observe'],
    [
      'ends when others may have been busy on its GPU',
      { claim: { isolation: 'time_sliced' }, ...said('measured', NOW, NOW - MINUTE) },
      'end',
    ],
    // The exporter is in the container, and forgets with it what it saw.
    ['stays while its container is about to begin again', restarted(1, false), 'observe'],
    ['ends when its container does not come back', restarted(5, false), 'end'],
    ['stays for its time when its exporter has begun anew', restarted(9, true, FRESH), 'observe'],
    ['ends when that has seen no busy GPU for the time', restarted(10, true, FRESH), 'end'],
    [
      'ends where nothing is measured for it, although its container began anew',
      restarted(1, true, FRESH, 'time_sliced'),
      'end',
    ],
  ])('%s', (_what, seen, step) => {
    expect(planNext(world(seen)).do).toBe(step);
  });

  test('is asked again soon while its end is open, and ends ten minutes after its GPUs rest', () => {
    expect(isIdleOpen(world())).toBe(true);
    expect(deadlines(world())[0]?.at).toBe(NOW + 5_000);
    const busy = world(said('measured', NOW, NOW - MINUTE));
    expect([isIdleOpen(busy), deadlines(busy)[0]?.at]).toEqual([false, NOW + 9 * MINUTE]);
    expect(deadlines(world(said('measured')))[0]?.ending.message).toBe(
      'No session was open for 10m, and no GPU was busy.',
    );
  });
});

test.each([
  ['nvidia-smi 2 37\n', { gpus: 'measured', busyAt: NOW - 37_000 }],
  ['welcome to zsh\nrocm-smi 1 -\n', { gpus: 'measured', busyAt: undefined }],
  ['nvidia-smi 0 -\n', { gpus: 'partial' }],
  ['none 0 -\n', { gpus: 'none' }],
  ['failed 0 8\n', { gpus: 'failed', busyAt: NOW - 8_000 }],
  ['nvidia-smi 2 -37\n', { gpus: 'silent' }],
  ['nvidia-smi 99999 1\n', { gpus: 'silent' }],
  ['evil 1 1\n', { gpus: 'silent' }],
  ['', { gpus: 'silent', busyAt: undefined }],
])('what an exporter says, %j, is checked', (text, state) => {
  expect(monitorStateOf(readMonitorLine(text), NOW)).toMatchObject({ askedAt: NOW, ...state });
});
