import { expect, test } from 'vitest';
import { instanceSources, priorityOf } from '../../../src/controllers/gpu-instance/sources.ts';
import { controllerWorld } from '../../support/controller-world.ts';
import type { GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
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
