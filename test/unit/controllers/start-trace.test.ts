import { expect, test } from 'vitest';
import { startTrace } from '../../../src/controllers/gpu-instance/decide/status/start-trace.ts';
import { traceStarts } from '../../../src/controllers/gpu-instance/trace-starts.ts';
import {
  type GpuInstance,
  type GpuInstanceStatus,
  TRACEPARENT,
} from '../../../src/resources/instances/gpu-instance.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import { READY as POD_READY, SCHEDULED, startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';
import { startTestTracing } from '../../support/tracing/test-tracing.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CREATE = 'b7ad6b7169203331';
const PARENT = `00-${TRACE}-${CREATE}-01`;
const time = (seconds: number): number => Date.UTC(2026, 0, 1, 0, 0, seconds);
const at = (seconds: number): string => new Date(time(seconds)).toISOString();

const CLAIMED: GpuInstanceStatus = {
  incarnation: 1,
  podName: 'one-1',
  claim: claimOn('n'),
  stages: { accepted: at(0), claimed: at(1) },
};
const STARTED = { ...CLAIMED, stages: { ...CLAIMED.stages, scheduled: at(3), pulled: at(40), started: at(40) } };
const READY = { ...STARTED, firstReady: at(45), stages: { ...STARTED.stages, ready: at(45) } };
const FAILED = { ...STARTED, ending: { reason: 'ImagePullFailed', message: 'nginx:nope', at: at(60) } };

function instance(status?: GpuInstanceStatus, traceparent = PARENT): GpuInstance {
  const made = gpuInstance('one', {}, status);
  return { ...made, metadata: { ...made.metadata, annotations: { [TRACEPARENT]: traceparent } } };
}

test('a start is traced below the request that created it, with the times of the status', async () => {
  const tracing = await startTestTracing();
  traceStarts(tracing.tracer)(instance(STARTED), READY);
  const spans = await tracing.end();
  const all = spans.at(-1);
  expect(all).toMatchObject({ name: 'start instance', parentId: CREATE, from: time(0), to: time(45), failed: false });
  expect(all?.attributes).toEqual({
    'berth.tenant': 'default',
    'berth.instance': 'one',
    'berth.instance.uid': 'uid-one',
    'berth.instance.start': 1,
    'berth.gpu.count': 1,
    'berth.gpu.product': 'NVIDIA-A100-SXM4-80GB',
    'k8s.node.name': 'n',
    'k8s.pod.name': 'one-1',
  });
  expect(spans.slice(0, -1).map(({ name, from, to }) => [name, from, to])).toEqual([
    ['claim', time(0), time(1)],
    ['schedule', time(1), time(3)],
    ['start container', time(3), time(40)],
    ['become ready', time(40), time(45)],
  ]);
  for (const span of spans) expect(span.traceId).toBe(TRACE);
  for (const span of spans.slice(0, -1)) expect(span.parentId).toBe(all?.spanId);
});

test('a start that fails is traced as far as it came, with the reason and without what the tenant wrote', async () => {
  const tracing = await startTestTracing();
  traceStarts(tracing.tracer)(instance(STARTED), FAILED);
  const spans = await tracing.end();
  expect(spans.map(({ name }) => name)).toEqual(['claim', 'schedule', 'start container', 'start instance']);
  const all = spans.at(-1);
  expect(all).toMatchObject({ to: time(60), failed: true, attributes: { 'error.type': 'ImagePullFailed' } });
  expect(JSON.stringify(spans)).not.toContain('nginx:nope');
});

test.each<[string, GpuInstanceStatus | undefined, GpuInstanceStatus]>([
  ['nothing is decided', undefined, { stages: { accepted: at(0) } }],
  ['the start has begun', CLAIMED, STARTED],
  ['it was ready before', READY, { ...READY, podIP: '10.0.0.1' }],
  ['it ends after it was ready', READY, { ...READY, ending: FAILED.ending }],
  ['its end was known before', FAILED, { ...FAILED, podIP: '10.0.0.1' }],
  ['a pod that ends became ready', FAILED, { ...READY, ending: FAILED.ending }],
])('a write that says no news traces nothing: %s', (_, before, after) => {
  expect(startTrace(instance(before), after)).toBeUndefined();
});

test('a program that ended before anybody saw it run was ready all the same', () => {
  const found = startTrace(instance(STARTED), { ...READY, ending: { ...FAILED.ending, reason: 'Completed' } });
  expect(found).toMatchObject({ to: time(45), ending: undefined });
});

test('an instance that is refused has the trace of its waiting', () => {
  const ending = { reason: 'NoCapacity', message: '', at: at(2) };
  const found = startTrace(instance(), { stages: { accepted: at(0) }, ending });
  expect(found).toMatchObject({ parent: PARENT, start: 0, from: time(0), to: time(2), ending: 'NoCapacity' });
  expect(found?.stages).toEqual([]);
});

test('a start belongs to the request until the instance was ready once, and then has a trace of its own', () => {
  const second = { ...CLAIMED, incarnation: 2, stages: { accepted: at(0), claimed: at(70) } };
  const ready = { ...second, stages: { ...second.stages, started: at(90), scheduled: at(71), ready: at(99) } };
  const found = startTrace(instance(second), ready);
  expect(found).toMatchObject({ parent: PARENT, start: 2, from: time(70), to: time(99) });
  expect(found?.stages.map(({ name }) => name)).toEqual(['schedule', 'start container', 'become ready']);
  const later = startTrace(instance({ ...second, firstReady: at(45) }), ready);
  expect(later).toMatchObject({ parent: undefined, from: time(70) });
});

test.each<[string, string | undefined]>([
  ['no annotation', undefined],
  ['an empty annotation', ''],
  ['an annotation with more than a traceparent', `${PARENT}-more`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${CREATE}-01`],
  ['a long annotation', '0'.repeat(9_000)],
])('a start has a trace of its own with %s', async (_, traceparent) => {
  const tracing = await startTestTracing();
  const { metadata, ...rest } = gpuInstance('one', {}, STARTED);
  const annotations: Record<string, string> = traceparent === undefined ? {} : { [TRACEPARENT]: traceparent };
  traceStarts(tracing.tracer)({ ...rest, metadata: { ...metadata, annotations } }, READY);
  const spans = await tracing.end();
  expect(spans.length).toBe(5);
  expect(spans.at(-1)?.parentId).toBe('');
  expect(spans.at(-1)?.traceId).not.toBe(TRACE);
});

test('a request that is not traced leaves its instance out, too', async () => {
  const tracing = await startTestTracing();
  traceStarts(tracing.tracer)(instance(STARTED, `00-${TRACE}-${CREATE}-00`), READY);
  expect(await tracing.end()).toEqual([]);
});

test('the controller traces a start once, when the API server has taken the status', async () => {
  const tracing = await startTestTracing();
  let refuses = true;
  const world = controllerWorld(undefined, (path) =>
    refuses && path === '/status' ? Promise.reject(new Error('away')) : Promise.resolve(),
  );
  world.deps.noteStatus = traceStarts(tracing.tracer);
  const status = { ...CLAIMED, diskPersistent: false, diskGb: 10 };
  const main = {
    name: 'main',
    ready: true,
    restartCount: 0,
    image: 'i',
    imageID: '',
    state: { running: { startedAt: at(0) } },
  };
  world.instances.upsert(held(instance(status)));
  world.pods.upsert(startedPod({ phase: 'Running', conditions: [SCHEDULED, POD_READY], containerStatuses: [main] }));
  await expect(world.reconcile('one')).rejects.toThrow('away');
  refuses = false;
  await world.reconcile('one');
  await world.reconcile('one');
  const spans = await tracing.end();
  expect(spans.filter(({ name }) => name === 'start instance').length).toBe(1);
  const { stages } = world.instances.store.get('default/one')?.status ?? {};
  expect(spans.find(({ name }) => name === 'become ready')?.to).toBe(Date.parse(stages?.ready ?? ''));
});
