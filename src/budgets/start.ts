import { monthOf } from '../ledger/month.ts';
import { costAt, parseBalance, parseMoney } from '../resources/money.ts';
import { type Budget, type BudgetStatus, GPU_HOURS } from '../resources/tenants/budget.ts';
import { HOUR_MS, type Line } from './accounts.ts';
import { purseOf } from './purse.ts';
import { budgetRefusal, type BudgetWords } from './words.ts';

/** A budget as it is set, with what the controller counted of it in this month. */
interface SetBudget {
  budget: Budget | undefined;
  status: BudgetStatus | undefined;
  words: BudgetWords;
}

/** A start: what it costs, undefined while nobody knows, and how much of it needs room, in milliseconds. */
interface WantedStart {
  price: { pricePerHour: string; currency: string } | undefined;
  ms: number;
  /** Milliseconds since the epoch. */
  now: number;
}

/** Why a budget has no room for a start; undefined where it has, or where nothing shows that it has not. */
export function startRefusal(set: SetBudget, { price, ms, now }: WantedStart): string | undefined {
  const month = monthOf(now);
  for (const { line, needed } of [...moneyOf(set, price, Math.min(ms, month.to - now)), ...gpuHoursOf(set)]) {
    const isFull = needed > 0n && line.spent + line.reserved + needed > line.max;
    if (isFull || line.spent >= line.max) return budgetRefusal(line, needed, month, set.words);
  }
  return undefined;
}

interface Needed {
  line: Line;
  needed: bigint;
}

function moneyOf({ budget, status }: SetBudget, price: WantedStart['price'], ms: number): Needed[] {
  const perHour = price === undefined ? 0n : parseMoney(price.pricePerHour);
  // A free place draws on no money.
  if (price === undefined || perHour === 0n) return [];
  const purse = purseOf(budget, status, price.currency);
  if (purse === undefined) return [];
  const { max, spent, reserved } = purse;
  return [{ line: { unit: price.currency, max, spent, reserved, perHour }, needed: costAt(perHour, ms) }];
}

/** How many GPUs it gets is not known before. */
function gpuHoursOf({ budget, status }: SetBudget): Needed[] {
  if (budget?.gpuHours === undefined) return [];
  const counted = status?.lines.find(({ unit }) => unit === GPU_HOURS)?.spent ?? '0';
  const max = BigInt(budget.gpuHours) * BigInt(HOUR_MS);
  const spent = (parseBalance(counted) * BigInt(HOUR_MS)) / 1_000_000n;
  return [{ line: { unit: GPU_HOURS, max, spent, reserved: 0n, perHour: 0n }, needed: 0n }];
}
