import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { Claim } from '../resources/instances/claim.ts';
import { costOf, formatMoney, parseMoney } from '../resources/money.ts';
import { type Budget, type BudgetStatus, GPU_HOURS } from '../resources/tenants/budget.ts';
import { compareText } from '../lib/compare.ts';
import { type Amount, NO_AMOUNT } from '../ledger/amount.ts';
import { billsOfInstance } from '../ledger/bills.ts';
import { gpuMsOf } from '../ledger/interval.ts';
import type { Month } from '../ledger/month.ts';
import { amountIn, ownersOf, type RecordedSpending, Spending } from './spending.ts';

const HOUR_MS = 3_600_000;
/** Millionths, as money has. */
const UNIT = 1_000_000n;

/** What a budget has to bear. */
export interface Account {
  /** In the month, starts that still run included. */
  spent: Spending;
  /** What is set aside for the rest of the first hour of each start. */
  reserved: Spending;
  /** What one more hour of all that runs costs. */
  perHour: Spending;
}

function amountOf(claim: Claim, ms: number): Amount {
  return { gpuMs: BigInt(gpuMsOf(claim, ms)), cost: parseMoney(costOf(claim.pricePerHour, ms)) };
}

/** What a start needs room for before it gets its place: its first hour, or what is left of the month. */
export function firstHour(claim: Claim, { to }: Month, now: number): Spending {
  return new Spending().add(amountOf(claim, Math.max(0, Math.min(HOUR_MS, to - now))), claim.currency);
}

function rest(whole: bigint, used: bigint): bigint {
  return whole > used ? whole - used : 0n;
}

/** An instance with its claim, also while no cache shows that. */
export interface Holder {
  instance: GpuInstance;
  claim: Claim | undefined;
}

/** What the accounts of a tenant are computed from. */
export interface AccountInput {
  namespace: string;
  /** Every instance of the tenant. */
  holders: Iterable<Holder>;
  recorded: RecordedSpending;
  /** Whether a usage record has this start of an instance. */
  isRecorded: (uid: string, start: number) => boolean;
  /** Milliseconds since the epoch, in the month of `recorded`. */
  now: number;
}

/**
 * The accounts of some owners: what usage records say, and what instances say of starts that no record has. A start that
 * both have counts once, as in a bill.
 */
export function accountsOf(owners: Iterable<string>, input: AccountInput): Map<string, Account> {
  const { namespace, holders, recorded, isRecorded, now } = input;
  const { month } = recorded;
  const accounts = new Map<string, Account>();
  for (const owner of owners) {
    const spent = new Spending().addAll(recorded.of(namespace, owner) ?? new Spending());
    accounts.set(owner, { spent, reserved: new Spending(), perHour: new Spending() });
  }
  for (const { instance, claim } of holders) {
    let running = NO_AMOUNT;
    for (const billed of billsOfInstance(instance, now)) {
      if (isRecorded(billed.uid, billed.interval.start)) continue;
      const amount = amountIn(month, billed);
      if (billed.open) running = amount;
      const { createdBy, currency } = billed.interval;
      for (const owner of ownersOf(createdBy)) accounts.get(owner)?.spent.add(amount, currency);
    }
    if (claim === undefined || instance.status?.ending !== undefined) continue;
    const hour = amountOf(claim, HOUR_MS);
    const first = amountOf(claim, Math.min(HOUR_MS, month.to - now));
    const reserved = { gpuMs: rest(first.gpuMs, running.gpuMs), cost: rest(first.cost, running.cost) };
    for (const owner of ownersOf(claim.createdBy)) {
      const account = accounts.get(owner);
      account?.reserved.add(reserved, claim.currency);
      account?.perHour.add(hour, claim.currency);
    }
  }
  return accounts;
}

/** One part of a budget. Amounts are GPU milliseconds, or millionths of the currency. */
export interface Line {
  /** Currency, or GPU-hours. */
  unit: string;
  max: bigint;
  spent: bigint;
  reserved: bigint;
  perHour: bigint;
}

/**
 * The parts of a budget. A currency that it does not name has a line of nothing where it names others. `wanted`: what an
 * instance needs that is to get a place.
 */
export function linesOf({ costs, gpuHours }: Budget, account: Account, wanted = new Spending()): Line[] {
  const { spent, reserved, perHour } = account;
  const most = new Map(costs.map(({ currency, max }) => [currency, parseMoney(max)]));
  const used = costs.length === 0 ? [] : [spent, perHour, wanted].flatMap((one) => [...one.costs.keys()]);
  const lines = [...new Set([...most.keys(), ...used])].toSorted(compareText).map((currency) => ({
    unit: currency,
    max: most.get(currency) ?? 0n,
    spent: spent.costs.get(currency) ?? 0n,
    reserved: reserved.costs.get(currency) ?? 0n,
    perHour: perHour.costs.get(currency) ?? 0n,
  }));
  if (gpuHours === undefined) return lines;
  const max = BigInt(gpuHours) * BigInt(HOUR_MS);
  const gpus = { max, spent: spent.gpuMs, reserved: reserved.gpuMs, perHour: perHour.gpuMs };
  return [...lines, { unit: GPU_HOURS, ...gpus }];
}

/** What amounts take of a line. */
export function shareOf({ unit }: Line, amounts: Spending): bigint {
  return unit === GPU_HOURS ? amounts.gpuMs : (amounts.costs.get(unit) ?? 0n);
}

/** The first part that has no room for what an instance needs beside what is spent and reserved. */
export function lineWithoutRoom(lines: readonly Line[], wanted: Spending): Line | undefined {
  return lines.find((line) => {
    const share = shareOf(line, wanted);
    return share > 0n && line.spent + line.reserved + share > line.max;
  });
}

export function isSpent({ max, spent }: Pick<Line, 'max' | 'spent'>): boolean {
  return spent >= max;
}

/** Whether an instance with this claim draws on a part of the budget. */
export function drawsOn(line: Line, claim: Claim): boolean {
  return shareOf(line, new Spending().add(amountOf(claim, HOUR_MS), claim.currency)) > 0n;
}

/** Whole per cent, rounded down; of nothing it is 100 as soon as something draws on it. */
function percentOf({ max, spent, perHour }: Line): number {
  if (spent <= 0n) return max === 0n && perHour > 0n ? 100 : 0;
  return max === 0n ? 100 : Number((spent * 100n) / max);
}

/** The line that is used most. */
export function highestLine(lines: readonly Line[]): Line | undefined {
  return lines.toSorted((a, b) => percentOf(b) - percentOf(a))[0];
}

function highestPercent(lines: readonly Line[]): number {
  return Math.max(0, ...lines.map(percentOf));
}

/** Milliseconds until a part has the next whole per cent, if all goes on as it is; Infinity for never. */
export function nextPercentMs(lines: readonly Line[]): number {
  const times = lines.map((line) => {
    const { max, spent, perHour } = line;
    const due = (max * BigInt(percentOf(line) + 1) + 99n) / 100n;
    if (perHour <= 0n || spent < 0n || isSpent(line)) return Infinity;
    return Math.ceil((Number(due - spent) / Number(perHour)) * HOUR_MS);
  });
  return Math.max(0, Math.min(Infinity, ...times));
}

/** An amount of a line as text, in hours or in the currency. */
export function amountText({ unit }: Pick<Line, 'unit'>, amount: bigint): string {
  return formatMoney(unit === GPU_HOURS ? (amount * UNIT) / BigInt(HOUR_MS) : amount);
}

export function lineText(line: Line): BudgetStatus['lines'][number] {
  return { unit: line.unit, max: amountText(line, line.max), spent: amountText(line, line.spent) };
}

export function periodOf({ name, to }: Month): Pick<BudgetStatus, 'month' | 'renewsAt'> {
  return { month: name, renewsAt: new Date(to).toISOString() };
}

export function statusOfLines(lines: readonly Line[], month: Month, now: number): BudgetStatus {
  return {
    ...periodOf(month),
    at: new Date(now).toISOString(),
    percent: highestPercent(lines),
    lines: lines.map(lineText),
  };
}
