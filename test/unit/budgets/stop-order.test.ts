import { expect, test } from 'vitest';
import { stopOrder } from '../../../src/budgets/stop-order.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

test('an instance that ends already, or holds no place, is not stopped again', () => {
  const claim = claimOn('n');
  const ending = { reason: 'Stopped', message: '', at: '2026-01-01T00:00:00Z' };
  const ends = { instance: gpuInstance('ends', {}, { claim, ending }), claim };
  const waits = { instance: gpuInstance('waits'), claim: undefined };
  expect(stopOrder([ends, waits, { instance: gpuInstance('runs', {}, { claim }), claim }])).toEqual(['default/runs']);
});
