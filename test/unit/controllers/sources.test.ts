import { expect, test } from 'vitest';
import { priorityOf } from '../../../src/controllers/gpu-instance/sources.ts';
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
