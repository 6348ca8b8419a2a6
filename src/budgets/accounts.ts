import type { Claim } from '../resources/instances/claim.ts';
import { costAt, formatMoney, parseMoney } from '../resources/money.ts';
import { type Budget, type BudgetStatus, GPU_HOURS, MOST_LINES } from '../resources/tenants/budget.ts';
import { compareText } from '../lib/compare.ts';
import type { Amount } from '../ledger/amount.ts';
import { gpuMsOf } from '../ledger/interval.ts';
import type { Month } from '../ledger/month.ts';
import { Spending } from './spending.ts';

export const HOUR_MS = 3_600_000;
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

/** What so many milliseconds of a claim come to. */
export type Meter = (ms: number) => Amount;

export function meterOf(claim: Claim): Meter {
  const price = parseMoney(claim.pricePerHour);
  return (ms) => ({ gpuMs: BigInt(gpuMsOf(claim, ms)), cost: costAt(price, ms) });
}

function amountOf(claim: Claim, ms: number): Amount {
  return meterOf(claim)(ms);
}

/** What a start needs room for before it gets its place: its first hour, or what is left of the month. */
export function firstHour(claim: Claim, { to }: Month, now: number): Spending {
  return new Spending().add(amountOf(claim, Math.max(0, Math.min(HOUR_MS, to - now))), claim.currency);
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

/** As many lines as a status has room for. Of the parts that allow nothing, those with the least spent are left out. */
function shownOf(lines: readonly Line[]): readonly Line[] {
  const others = lines.filter(({ max }) => max === 0n).toSorted((a, b) => (a.spent < b.spent ? -1 : 1));
  const left = new Set(others.slice(0, Math.max(0, lines.length - MOST_LINES)));
  return lines.filter((line) => !left.has(line));
}

export function statusOfLines(lines: readonly Line[], month: Month, now: number): BudgetStatus {
  return {
    ...periodOf(month),
    at: new Date(now).toISOString(),
    percent: highestPercent(lines),
    lines: shownOf(lines).map((line) => ({
      ...lineText(line),
      ...(line.reserved > 0n && { reserved: amountText(line, line.reserved) }),
    })),
  };
}
