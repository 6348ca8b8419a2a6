import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { startTimes } from '../../../src/controllers/gpu-instance/decide/status/stage-times.ts';
import { createStartMetric } from '../../../src/controllers/gpu-instance/start-metric.ts';
import type { GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { startedPod } from '../../support/instance-world.ts';
import { gpuInstance } from '../../support/inventory-world.ts';

const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString();
const condition = (type: string, seconds: number) => ({ type, status: 'True', lastTransitionTime: at(seconds) });

const CLAIMED: GpuInstanceStatus = { incarnation: 1, stages: { accepted: at(0), claimed: at(1) } };
const READY: GpuInstanceStatus = {
  ...CLAIMED,
  stages: { ...CLAIMED.stages, scheduled: at(3), pulled: at(40), started: at(40), ready: at(45) },
};
const POD = startedPod({ conditions: [condition('PodReadyToStartContainers', 6), condition('Initialized', 10)] });

test('a start is measured once, in parts that add up to the time from the claim to the login', () => {
  const times = startTimes(CLAIMED, READY, POD);
  expect(times).toEqual([
    { stage: 'scheduled', seconds: 2 },
    { stage: 'prepared', seconds: 7 },
    { stage: 'started', seconds: 30 },
    { stage: 'ready', seconds: 5 },
  ]);
  expect(startTimes(READY, READY, POD)).toEqual([]);
  expect(startTimes(CLAIMED, CLAIMED, POD)).toEqual([]);
});

test('a pod without init containers says early that they have ended: the network counts to what comes before', () => {
  const pod = startedPod({ conditions: [condition('Initialized', 3), condition('PodReadyToStartContainers', 8)] });
  expect(startTimes(CLAIMED, READY, pod)).toContainEqual({ stage: 'prepared', seconds: 5 });
});

test('a first claim is measured, apart from those that had to wait, and later claims are not', async () => {
  const world = controllerWorld();
  world.instances.upsert(held(gpuInstance('quick')));
  world.instances.upsert(held(gpuInstance('slow', {}, { conditions: [] })));
  world.instances.upsert(held(gpuInstance('again', {}, { incarnation: 1 })));
  for (const name of ['quick', 'slow', 'again']) await world.reconcile(name).catch(() => undefined);
  expect(world.stageTimes.map(({ stage }) => stage)).toEqual(['claimed', 'waited']);
});

test('the histogram has a series for each stage and no other, from the beginning', async () => {
  const registry = new Registry();
  const note = createStartMetric(registry);
  note(startTimes(CLAIMED, READY, POD));
  const text = await registry.metrics();
  const counts = text.split('\n').filter((line) => line.startsWith('berth_instance_start_stage_seconds_count'));
  expect(counts).toEqual([
    'berth_instance_start_stage_seconds_count{stage="claimed"} 0',
    'berth_instance_start_stage_seconds_count{stage="waited"} 0',
    'berth_instance_start_stage_seconds_count{stage="scheduled"} 1',
    'berth_instance_start_stage_seconds_count{stage="prepared"} 1',
    'berth_instance_start_stage_seconds_count{stage="started"} 1',
    'berth_instance_start_stage_seconds_count{stage="ready"} 1',
  ]);
});
