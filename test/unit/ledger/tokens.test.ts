import { expect, test } from 'vitest';
import { type Grouping, UsageReport } from '../../../src/ledger/report.ts';
import { costOfTokens } from '../../../src/ledger/tokens.ts';

test('tokens cost what their price says, rounded half up once', () => {
  const prices = { input: '0.20', cachedInput: '0.05', output: '0.60', currency: 'USD' };
  const cost = (input: number, cached: number, output: number): bigint =>
    costOfTokens({ input, cached, output }, prices);
  expect(cost(1_000_000, 0, 0)).toBe(200_000n);
  expect(cost(1_000_000, 1_000_000, 0)).toBe(50_000n);
  expect(cost(0, 0, 1_000_000)).toBe(600_000n);
  expect([cost(2, 0, 0), cost(2, 2, 0), cost(0, 0, 1), cost(1, 0, 0)]).toEqual([0n, 0n, 1n, 0n]);
  expect(cost(5, 0, 0)).toBe(1n);
  // What each call would cost by itself is not what is added up: a thousand calls of one token cost 200 units.
  expect(cost(1000, 0, 0)).toBe(200n);
});

test('tokens and starts of one day, key or instance are told apart or added up, and a day outside does not count', () => {
  const bill = {
    day: '2026-01-01',
    by: 'key/ci',
    model: 'qwen',
    currency: 'USD',
    calls: 1,
    input: 10,
    cached: 4,
    output: 5,
  };
  const interval = { start: 1, from: '2026-01-01T00:00:00Z', to: '2026-01-01T01:00:00Z', product: 'H100', gpuCount: 1 };
  const start = {
    ...interval,
    pricePerHour: '1.00',
    createdBy: 'key/ci',
    gpuSeconds: 3600,
    cost: '1.00',
    currency: 'USD',
  };
  const lines = (group: Grouping) => {
    const report = new UsageReport({ from: Date.UTC(2026, 0, 1), to: Date.UTC(2026, 0, 2), group, most: 10 });
    report.add({ instance: 'one', uid: 'u', interval: start, open: false });
    for (const day of ['2025-12-31', '2026-01-01', '2026-01-02']) report.addTokens({ ...bill, day, cost: 7n });
    report.addTokens({ ...bill, cost: 3n });
    return report.lines();
  };
  const tokens = { calls: 2, input: 20, cached: 8, output: 10 };
  const both = { currency: 'USD', product: 'H100', open: false, gpuMs: 3_600_000n, cost: 1_000_010n, tokens };
  expect(lines('day')).toEqual([{ ...both, group: '2026-01-01' }]);
  expect(lines('key')).toEqual([{ ...both, group: 'key/ci' }]);
  const model = { currency: 'USD', product: '', open: false, gpuMs: 0n, cost: 10n, tokens, group: 'model/qwen' };
  const gpus = { currency: 'USD', product: 'H100', open: false, gpuMs: 3_600_000n, cost: 1_000_000n };
  expect(lines('instance')).toEqual([model, { ...gpus, group: 'one' }]);
  expect(lines('model')).toEqual([{ ...gpus, group: 'instances' }, model]);
});
