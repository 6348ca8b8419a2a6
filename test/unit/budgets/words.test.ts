import { expect, test } from 'vitest';
import type { Line } from '../../../src/budgets/accounts.ts';
import { budgetRefusal, tenantBudget } from '../../../src/budgets/words.ts';
import { monthOf } from '../../../src/ledger/month.ts';

const MONTH = monthOf(Date.UTC(2026, 0, 31, 23, 30));
const HALF: Line = { unit: 'USD', max: 2_000_000n, spent: 30_000n, reserved: 970_000n, perHour: 1_000_000n };

function said(line: Line, needed: bigint): string {
  return budgetRefusal(line, needed, MONTH, tenantBudget([]));
}

// A status that has other words is written, and its write is the next look: the two would go on for ever.
test('a refusal says the same a moment later, while others spend and the month ends', () => {
  const first = said(HALF, 1_010_000n);
  const later = said({ ...HALF, spent: 30_004n, reserved: 969_996n }, 1_009_996n);
  expect(first).toMatch(/takes 51 per cent: of 2\.00 USD, 2 per cent are spent, and 49 per cent are set aside/);
  expect(later).toBe(first);
});
