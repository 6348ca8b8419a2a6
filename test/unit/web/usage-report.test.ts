import { expect, it } from 'vitest';
import type { UsageAnswer } from '../../../src/http/features/usage/schema.ts';
import { joined, ratesOf } from '../../../src/web/page/parts/rates.ts';
import { money } from '../../../src/web/page/parts/words.ts';
import { decimalsOf, isModel, periods, seriesOf, tokens } from '../../../src/web/page/usage/report.ts';

it.each([
  ['2026-11-23T23:59:59Z', ['2026-11-01 2026-11-23', '2026-10-01 2026-10-31', '2026-10-25 2026-11-23']],
  ['2026-01-01T00:00:00Z', ['2026-01-01 2026-01-01', '2025-12-01 2025-12-31', '2025-12-03 2026-01-01']],
  ['2028-03-01T12:00:00Z', ['2028-03-01 2028-03-01', '2028-02-01 2028-02-29', '2028-02-01 2028-03-01']],
])('the periods at %s are whole days in UTC', (now, expected) => {
  const found = periods(Date.parse(now)).map(({ period: { from, to } }) => `${from} ${to}`);
  expect(found.slice(0, 3)).toEqual(expected);
});

it('every day has a bar, also one without usage, and another currency is another chart', () => {
  const amount = { product: null, gpu_seconds: 3600, open: false };
  const items = [
    { ...amount, group: '2026-02-27', cost: '1.50', currency: 'USD' },
    { ...amount, group: '2026-03-01', cost: '2.25', currency: 'USD' },
    { ...amount, group: '2026-03-01', cost: '9', currency: 'EUR' },
  ];
  const report = { from: '2026-02-27', to: '2026-03-01', items } as unknown as UsageAnswer;
  const [days, costs] = seriesOf(report, 'USD', ({ cost }) => Number(cost));
  expect(days.map((at) => new Date(at * 1000).toISOString().slice(0, 10))).toEqual([
    '2026-02-27',
    '2026-02-28',
    '2026-03-01',
  ]);
  expect(costs).toEqual([1.5, 0, 2.25]);
});

it('models are told from instances, whatever instances are called, and their tokens are input and output', () => {
  expect(['model/Qwen/Qwen3-8B', 'models', 'model', 'instances'].map(isModel)).toEqual([true, false, false, false]);
  expect(tokens({ input_tokens: 100, output_tokens: 7 })).toBe(107);
});

it.each([
  [20, 0],
  [1, 0],
  [0.5, 1],
  [0.03 - 0.02, 2],
  [0.015 - 0.01, 3],
  [0.0001, 4],
])('lines that are %f from each other need %i decimals', (step, decimals) => {
  expect(decimalsOf(step)).toBe(decimals);
});

it('adds up no amounts of two currencies', () => {
  const at = (price: string | null, currency: string | null) => ({ price_per_hour: price, currency });
  const running = [at('1.00', 'USD'), at('2.50', 'EUR'), at('0.25', 'USD'), at(null, null)];
  expect(ratesOf(running)).toEqual([
    ['USD', 1.25],
    ['EUR', 2.5],
  ]);
  expect(joined(ratesOf(running))).toBe(`${money(1.25, 'USD')} + ${money(2.5, 'EUR')}`);
  expect(joined(ratesOf([at(null, null)]))).toBe('');
});
