import { expect, test } from 'vitest';
import { strictestBudget } from '../../../src/budgets/strictest.ts';
import { budgetSchema } from '../../../src/resources/tenants/budget.ts';

test('several policies allow the smaller amount of what both name, and nothing else', () => {
  const usd = (max: string) => budgetSchema.parse({ costs: [{ currency: 'USD', max }] });
  const eur = budgetSchema.parse({ costs: [{ currency: 'EUR', max: '5' }], gpuHours: 7 });
  expect(strictestBudget(usd('10'), usd('9.99'))).toEqual(usd('9.99'));
  expect(strictestBudget(usd('10'), budgetSchema.parse({ gpuHours: 3 }))).toEqual({ ...usd('10'), gpuHours: 3 });
  const none = [
    { currency: 'USD', max: '0' },
    { currency: 'EUR', max: '0' },
  ];
  expect(strictestBudget(usd('10'), eur)).toEqual({ costs: none, gpuHours: 7 });
  expect(strictestBudget(budgetSchema.parse({}), budgetSchema.parse({}))).toEqual(budgetSchema.parse({}));
});
