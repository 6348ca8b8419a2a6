import { describe, expect, test } from 'vitest';
import { instanceSources, priorityOf } from '../../../src/controllers/gpu-instance/sources.ts';
import { controllerWorld, held } from '../../support/controller-world.ts';
import type { GpuInstanceSpec, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

test('an instance that waits for a place, a change of its spec or its end comes before one with a status to write', () => {
  const claim = claimOn('n');
  const settled = { claim, observedGeneration: 1 };
  const of = (status: object, metadata: object): string => {
    const instance = gpuInstance('one', {}, status);
    return priorityOf({ ...instance, metadata: { ...instance.metadata, generation: 1, ...metadata } });
  };
  expect(of({}, {})).toBe('normal');
  expect(of({ observedGeneration: 1 }, {})).toBe('normal');
  expect(of(settled, {})).toBe('low');
  expect(of(settled, { generation: 2 })).toBe('normal');
  expect(of(settled, { deletionTimestamp: '2026-01-01T00:00:00Z' })).toBe('normal');
});

/** A new leader, and one whose place was coming. */
function controllerWorldOfOne() {
  const made = controllerWorld();
  const condition = { type: 'Claimed', status: 'False', reason: 'PlaceComing', message: '' };
  const status = { waitingSince: '2026-01-01T00:00:00.000Z', othersEnded: true, conditions: [condition] };
  made.instances.upsert(held(gpuInstance('coming', { gpu: { count: 8 } }, status as GpuInstanceStatus)));
  const woken: string[] = [];
  for (const source of instanceSources(made.deps)) source.start((key) => woken.push(key));
  const claimed = (name: string) => made.instances.store.get(`default/${name}`)?.status?.claim !== undefined;
  return { ...made, woken, claimed };
}

describe('a new leader whose first looks end in any order', () => {
  /** Two that wait for the eight GPUs of the one node; `last` waits for others where it names a product. */
  const takeover = (product?: string) => {
    const made = controllerWorld();
    const condition = { type: 'Claimed', status: 'False', reason: 'WaitingForCapacity', message: '' };
    const waits = (name: string, waitingSince: string, gpu: GpuInstanceSpec['gpu']) => {
      const status = { waitingSince, conditions: [condition] } as GpuInstanceStatus;
      return held(gpuInstance(name, { gpu }, status));
    };
    made.instances.upsert(waits('first', '2026-01-01T00:00:00.000Z', { count: 8, ...(product && { product }) }));
    made.instances.upsert(waits('second', '2026-01-01T00:00:10.000Z', { count: 8 }));
    const woken: string[] = [];
    const stops = instanceSources(made.deps).map((source) => source.start((key) => woken.push(key)));
    const claimed = (name: string) => made.instances.store.get(`default/${name}`)?.status?.claim !== undefined;
    const stop = (): void => {
      for (const end of stops) end();
    };
    return { ...made, woken, claimed, stop };
  };

  test('gives nobody what may be for one that has waited longer', async () => {
    const { reconcile, claimed, stop } = takeover();
    await reconcile('second');
    expect(claimed('second')).toBe(false);
    await reconcile('first');
    expect([claimed('first'), claimed('second')]).toEqual([true, false]);
    stop();
  });

  test('gives it to the next when the first look at the other has failed, or does not end', async () => {
    const failed = takeover();
    await failed.reconcile('second');
    failed.woken.length = 0;
    failed.deps.ceilingsOf = () => {
      throw new Error('The API server is away.');
    };
    await expect(failed.reconcile('first')).rejects.toThrow('away');
    await failed.clock.advance(1_000);
    expect(failed.woken).toContain('default/second');
    failed.stop();
    const slow = takeover();
    await slow.reconcile('second');
    slow.woken.length = 0;
    await slow.clock.advance(11_000);
    expect(slow.woken).toContain('default/second');
    await slow.reconcile('second');
    expect(slow.claimed('second')).toBe(true);
    slow.stop();
  });

  test('gives what is free to one that came since, when the looks at one whose place was coming fail for a minute', async () => {
    const { instances, deps, clock, woken, reconcile, claimed } = controllerWorldOfOne();
    const { ceilingsOf } = deps;
    deps.ceilingsOf = () => {
      throw new Error('The API server is away.');
    };
    await expect(reconcile('coming')).rejects.toThrow('away');
    deps.ceilingsOf = ceilingsOf;
    const late = held(gpuInstance('late', { gpu: { count: 8 } }));
    instances.upsert({ ...late, metadata: { ...late.metadata, creationTimestamp: '2026-01-01T00:00:30Z' } });
    await reconcile('late');
    expect(claimed('late')).toBe(false);
    woken.length = 0;
    await clock.advance(61_000);
    expect(woken).toContain('default/late');
    await reconcile('late');
    expect(claimed('late')).toBe(true);
  });

  test('makes nobody wait for one that wants other GPUs', async () => {
    const { reconcile, claimed, stop } = takeover('NVIDIA-H100');
    await reconcile('second');
    expect(claimed('second')).toBe(true);
    stop();
  });
});

test('a quota wakes the instances of its namespace alone', () => {
  const { instances, quotas, deps } = controllerWorld();
  const status = { conditions: [{ type: 'Ready', status: 'False', reason: 'QuotaExceeded', message: '' }] };
  const over = gpuInstance('over', {}, status as GpuInstanceStatus);
  instances.upsert(over);
  instances.upsert({ ...over, metadata: { ...over.metadata, namespace: 'elsewhere' } });
  const keys: string[] = [];
  const stops = instanceSources(deps).map((source) => source.start((key) => keys.push(key)));
  keys.length = 0;
  quotas.upsert({ metadata: { name: 'q', namespace: 'elsewhere', resourceVersion: '9' } });
  expect(keys).toEqual(['elsewhere/over']);
  for (const stop of stops) stop();
});

test('new ceilings wake the instances of their tenant that wait for a place', () => {
  const { instances, limits, deps } = controllerWorld();
  const status = { conditions: [{ type: 'Ready', status: 'False', reason: 'WaitingForCapacity', message: '' }] };
  const waiting = gpuInstance('waiting', {}, status as GpuInstanceStatus);
  instances.upsert(waiting);
  instances.upsert({ ...waiting, metadata: { ...waiting.metadata, namespace: 'elsewhere' } });
  const keys: string[] = [];
  const stops = instanceSources(deps).map((source) => source.start((key) => keys.push(key)));
  keys.length = 0;
  const metadata = { name: 'berth', namespace: 'elsewhere', resourceVersion: '9' };
  const spec = { ...DEFAULT_CEILINGS, policies: [] };
  limits.upsert({ metadata, spec });
  expect(keys).toEqual(['elsewhere/waiting']);
  // Its status alone: what of a budget is spent.
  limits.upsert({ metadata: { ...metadata, resourceVersion: '10' }, spec, status: {} });
  expect(keys).toEqual(['elsewhere/waiting']);
  for (const stop of stops) stop();
});

test('a pod that lost its labels and owner still wakes its instance when it ends', () => {
  const { pods, deps } = controllerWorld();
  const keys: string[] = [];
  const stops = instanceSources(deps).map((source) => source.start((key) => keys.push(key)));
  const annotations = { 'berth.dev/claim': '{"instance":"uid-one"}' };
  pods.upsert({ metadata: { namespace: 'tenant', name: 'one-2', uid: 'p', resourceVersion: '9', annotations } });
  pods.upsert({ metadata: { namespace: 'tenant', name: 'other-2', uid: 'q', resourceVersion: '9' } });
  expect(keys).toEqual(['tenant/one']);
  for (const stop of stops) stop();
});
