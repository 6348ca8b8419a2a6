import { expect, it } from 'vitest';
import { keyBudgetReader, spentMessage } from '../../../src/budgets/counted.ts';
import { tenantBudget } from '../../../src/budgets/words.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import type { BudgetStatus } from '../../../src/resources/tenants/budget.ts';

function status(...lines: [unit: string, max: string, spent: string][]): BudgetStatus {
  const counted = {
    month: '2026-11',
    renewsAt: '2026-12-01T00:00:00.000Z',
    at: '2026-11-23T00:00:00.000Z',
    percent: 0,
  };
  return { ...counted, lines: lines.map(([unit, max, spent]) => ({ unit, max, spent })) };
}

const SPENT = status(['USD', '500.00', '500.01']);

it('a budget is spent for what draws on it', () => {
  const both = status(['EUR', '0.00', '0.00'], ['USD', '5.00', '5.00'], ['GPU-hours', '9.00', '3.00']);
  const place = (perHour: string, currency: string) =>
    spentMessage(both, tenantBudget(['gold']), { perHour, currency });
  expect(place('1.00', 'USD')).toContain('5.00 of 5.00 USD');
  expect(place('1.00', 'EUR')).toContain('0.00 of 0.00 EUR');
  expect(place('0', 'USD')).toBeUndefined();
  expect(
    spentMessage(status(['GPU-hours', '9.00', '9.00']), tenantBudget(['gold']), { perHour: '0', currency: 'USD' }),
  ).toContain('The operator can change budget in TenantPolicy gold.');
  const credited = status(['USD', '5.00', '-5.00'], ['EUR', '0.00', '0.00']);
  expect(spentMessage(credited, tenantBudget([]), { perHour: '1.00', currency: 'USD' })).toBeUndefined();
});

it('the budget of a key is what the controller counted in this month, and people have none', () => {
  const key = { metadata: { namespace: 'team', name: 'ci' }, spec: {}, status: { budget: SPENT } } as unknown as ApiKey;
  const store = { get: (name: string) => (name === 'team/ci' ? key : undefined) };
  const read = (month: string) => keyBudgetReader(store, { now: () => Date.parse(`${month}-23T00:00:00Z`) });
  const limits = { budget: { costs: [{ currency: 'USD', max: '500' }] } };
  const caller = { namespace: 'team', name: 'ci', limits };
  expect(read('2026-11')(caller)).toBe(SPENT);
  expect(read('2026-12')(caller)).toBeUndefined();
  expect(read('2026-11')({ namespace: 'team', name: 'ci' })).toBeUndefined();
  expect(read('2026-11')({ ...caller, namespace: 'neighbour' })).toBeUndefined();
});
