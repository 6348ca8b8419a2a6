import { pino } from 'pino';
import { expect, test } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { prunePod } from '../../../src/caches/prune.ts';
import { createPodController, reconcilePod } from '../../../src/controllers/pods/controller.ts';
import type { KeepLog } from '../../../src/controllers/history/keep-log.ts';
import { LogTakes } from '../../../src/controllers/history/log-takes.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { ConflictError, NotFoundError } from '../../../src/kube/errors.ts';
import type { Node, Pod } from '../../../src/kube/types.ts';
import { POD_FINALIZER } from '../../../src/resources/pod/pod-finalizer.ts';
import { createControllerMetrics } from '../../../src/runtime/controller-metrics.ts';
import { Fence } from '../../../src/runtime/fence.ts';
import { Registry } from 'prom-client';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { cacheOf, controllerWorld } from '../../support/controller-world.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { startedPod } from '../../support/instance-world.ts';
import { claimOn, gpuInstance, gpuNode } from '../../support/inventory-world.ts';

const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0, resourceVersion: '5' };

function main(state: object): NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number] {
  return { name: 'main', image: '', imageID: '', ready: false, restartCount: 0, state };
}

const running = { phase: 'Running', containerStatuses: [main({ running: {} })] };
const ended = { phase: 'Failed', containerStatuses: [main({ terminated: { exitCode: 137 } })] };

function kept(status: NonNullable<Pod['status']>, metadata: Partial<Pod['metadata']> = DELETED): Pod {
  return prunePod(startedPod(status, { finalizers: ['tenant.example/keep', POD_FINALIZER], ...metadata }));
}

const GONE = new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });

/** The world of pods. `live`: the instance that the API server has; without it, there is none. */
function world(pods: Pod[], refusal?: Error, slowLog = false, live?: GpuInstance) {
  const instances = cacheOf<GpuInstance>([], INDEXES.instances);
  const cache = cacheOf<Pod>(pods, INDEXES.pods);
  const nodes = cacheOf<Node>([gpuNode('n')]);
  const clock = fakeClock();
  const log = pino({ level: 'silent' });
  const patches: unknown[] = [];
  const client = {
    get: () => (live === undefined ? Promise.reject(GONE) : Promise.resolve(live)),
    patch(_type: unknown, _ref: unknown, body: unknown) {
      patches.push(body);
      return refusal === undefined ? Promise.resolve(pods[0]) : Promise.reject(refusal);
    },
  } as unknown as KubeClient;
  const base = controllerWorld().deps;
  const stores = { ...base.stores, instances: instances.store, pods: cache.store, nodes: nodes.store };
  const fence = new Fence(clock, log);
  const kept: string[] = [];
  const reading = Promise.withResolvers<void>();
  const keepLog: KeepLog = ({ pod, phase }) => {
    kept.push(`${pod.metadata.name} ${phase}`);
    return slowLog ? reading.promise : Promise.resolve();
  };
  const logs = new LogTakes({ keep: keepLog, clock, log });
  const once = () => reconcilePod({ client, stores, fence, logs }, 'default/one-1', new AbortController().signal);
  const reconcile = async (): Promise<void> => {
    const before = patches.length;
    await once();
    await settle();
    // It was woken when its log was kept.
    if (patches.length === before) await once();
  };
  const metrics = createControllerMetrics(new Registry(), clock);
  const controller = createPodController({ client, stores, inventory: base.inventory, clock, log, metrics, keepLog });
  return { cache, clock, instances, kept, nodes, patches, reading, reconcile, controller };
}

test('the finalizer of a pod goes when its program has ended, and no other finalizer with it', async () => {
  const { cache, patches, reconcile } = world([kept(running)]);
  await reconcile();
  expect(patches).toEqual([]);
  cache.upsert(kept(ended, { ...DELETED, resourceVersion: '6' }));
  await reconcile();
  expect(patches).toEqual([
    [
      { op: 'test', path: '/metadata/uid', value: 'pod-1' },
      { op: 'test', path: '/metadata/finalizers/1', value: POD_FINALIZER },
      { op: 'remove', path: '/metadata/finalizers/1' },
    ],
  ]);
});

test('a pod of a version that set no finalizer is left alone', async () => {
  const { patches, reconcile } = world([kept(ended, { ...DELETED, finalizers: [] })]);
  await reconcile();
  expect(patches).toEqual([]);
});

test('a pod that is gone meanwhile is no error, and one that another client changed is looked at again', async () => {
  const gone = world([kept(ended)], GONE);
  await expect(gone.reconcile()).resolves.toBeUndefined();
  const changed = world([kept(ended)], new ConflictError({ message: 'changed', status: 409, reason: 'Conflict' }));
  await expect(changed.reconcile()).rejects.toThrow('changed');
});

test('the loss of a node lets the deleted pods of that node go', async () => {
  const { nodes, patches, controller } = world([kept(running)]);
  const [stop, abort] = [new AbortController(), new AbortController()];
  const run = controller.run({ stop: stop.signal, abort: abort.signal });
  nodes.upsert({ ...gpuNode('n'), metadata: { ...gpuNode('n').metadata, resourceVersion: '7', annotations: {} } });
  nodes.remove({ ...gpuNode('n'), metadata: { name: 'n', resourceVersion: '8' } });
  await expect.poll(() => patches.length).toBe(1);
  stop.abort();
  await run;
});

test('the last words of a program are kept before its pod goes, for ten seconds at most', async () => {
  const { clock, kept: logs, patches, reconcile } = world([kept(ended)], undefined, true);
  await reconcile();
  expect([logs, patches]).toEqual([['one-1 ended'], []]);
  await clock.advance(9_999);
  await reconcile();
  expect(patches).toEqual([]);
  await clock.advance(1);
  await reconcile();
  expect([logs, patches.length]).toEqual([['one-1 ended'], 1]);
});

test('the log of a pod that is deleted is followed while its program ends, and not read again', async () => {
  const { cache, kept: logs, patches, reconcile } = world([kept(running)]);
  await reconcile();
  expect([logs, patches.length]).toEqual([['one-1 ending'], 0]);
  cache.upsert(kept(ended, { ...DELETED, resourceVersion: '6' }));
  await reconcile();
  expect([logs, patches.length]).toEqual([['one-1 ending'], 1]);
});

test('the log of a program that ended by itself is kept later, before its pod is deleted', async () => {
  const { kept: logs, patches, reconcile } = world([kept(ended, {})], undefined, true);
  await reconcile();
  expect([logs, patches.length]).toEqual([[], 1]);
});

/** Instance `one` in its start `incarnation`; `holds`: its place. */
function inStart(incarnation: number, holds: boolean, resourceVersion = '5'): GpuInstance {
  const status = { incarnation, podName: `one-${incarnation}`, ...(holds && { claim: claimOn('n') }) };
  const instance = gpuInstance('one', {}, status);
  return { ...instance, metadata: { ...instance.metadata, resourceVersion } };
}

test.each([
  ['whose start holds its place', inStart(1, true), inStart(1, true), 0],
  ['whose start gave its place back', inStart(1, false), inStart(1, false), 1],
  ['that starts again', inStart(2, true), inStart(2, true), 1],
  ['that the cache does not know yet', undefined, inStart(1, true), 0],
  ['whose start the cache does not know yet', inStart(0, false), inStart(1, true), 0],
  ['that came back from a backup', inStart(0, false), inStart(0, false), 1],
  ['that follows one of the same name', undefined, successor(), 1],
])('the pod of an instance %s stays until its end is billed', async (_name, cached, live, patched) => {
  const { instances, patches, reconcile } = world([kept(ended)], undefined, false, live);
  if (cached !== undefined) instances.upsert(cached);
  await reconcile();
  expect(patches).toHaveLength(patched);
});

function successor(): GpuInstance {
  const instance = inStart(1, true);
  return { ...instance, metadata: { ...instance.metadata, uid: 'uid-two' } };
}

test.each([
  ['closes the bill', () => inStart(1, false, '6')],
  ['is gone', () => undefined],
])('an instance that %s lets its pod go', async (_name, after) => {
  const { instances, patches, controller } = world([kept(ended)]);
  instances.upsert(inStart(1, true));
  const [stop, abort] = [new AbortController(), new AbortController()];
  const run = controller.run({ stop: stop.signal, abort: abort.signal });
  await settle();
  expect(patches).toEqual([]);
  const next = after();
  if (next === undefined) instances.remove(inStart(1, true, '6'));
  else instances.upsert(next);
  await expect.poll(() => patches.length).toBe(1);
  stop.abort();
  await run;
});
