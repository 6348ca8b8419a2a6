import { compareText } from '../lib/compare.ts';
import type { Interval } from '../resources/instances/interval.ts';
import { type Amount, amountBetween, plus } from './amount.ts';
import { plusTokens, type TokenBill, type TokenCounts } from './tokens.ts';

const DAY_MS = 86_400_000;

export const GROUPINGS = ['day', 'instance', 'key', 'starter', 'model'] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** The group of what clients of the Kubernetes API created, and that of corrections. */
const KUBERNETES = 'kubernetes';
const ADJUSTMENT = 'adjustment';
/** How the groups of models begin, which no name of an instance does. And the group of all that is no model. */
const MODEL = 'model/';
const INSTANCES = 'instances';

/** A bill, and whose it is. */
export interface Billed {
  /** metadata.name of the instance. */
  instance: string;
  uid: string;
  interval: Interval;
  /** The start still runs: `interval` ends now. */
  open: boolean;
  /** It is no start but a correction. A credit is taken off. */
  adjustment?: 'Credit' | 'Charge';
}

export interface Line extends Amount {
  group: string;
  currency: string;
  /** Undefined where there was more than one, empty where there was none. */
  product: string | undefined;
  open: boolean;
  /** Undefined without calls to models. */
  tokens?: TokenCounts;
}

export interface ReportOptions {
  /** Milliseconds since the epoch, each the beginning of a day in UTC; `to` does not count any more. */
  from: number;
  to: number;
  group: Grouping;
  /** Lines that the report may get. */
  most: number;
}

/** Sums of bills over some days, by group and currency. It keeps the sums alone. */
export class UsageReport {
  readonly #options: ReportOptions;
  readonly #lines = new Map<string, Line>();

  constructor(options: ReportOptions) {
    this.#options = options;
  }

  /** Throws RangeError when there would be more lines than the report may have. */
  add(billed: Billed): void {
    const { from, to, group } = this.#options;
    if (group !== 'day') return this.#addPart(billed, from, to);
    const first = Math.max(from, startOfDay(Date.parse(billed.interval.from)));
    const end = Math.min(to, Date.parse(billed.interval.to) + 1);
    for (let day = first; day < end; day += DAY_MS) this.#addPart(billed, day, day + DAY_MS);
  }

  /** Throws RangeError as `add` does. */
  addTokens({ day, by, model, currency, cost, ...tokens }: TokenBill): void {
    const at = Date.parse(day);
    const { from, to } = this.#options;
    if (!(at >= from && at < to)) return;
    const name = `${MODEL}${model}`;
    const group = { day, instance: name, key: by, starter: by, model: name }[this.#options.group];
    this.#count({ group, currency, product: '', open: false, gpuMs: 0n, cost, tokens }, '');
  }

  /** By group, then by currency. */
  lines(): Line[] {
    return [...this.#lines.values()].toSorted(
      (a, b) => compareText(a.group, b.group) || compareText(a.currency, b.currency),
    );
  }

  #addPart({ interval, open, instance, uid, adjustment }: Billed, from: number, to: number): void {
    const amount = amountBetween(interval, from, to);
    if (amount.gpuMs === 0n && amount.cost === 0n) return;
    const { gpuMs, cost } = adjustment === 'Credit' ? { gpuMs: -amount.gpuMs, cost: -amount.cost } : amount;
    const { product, currency, createdBy = adjustment === undefined ? KUBERNETES : ADJUSTMENT } = interval;
    const starter = interval.startedBy ?? createdBy;
    const model = instance.startsWith(MODEL) ? instance : INSTANCES;
    const group = { day: dayText(from), instance, key: createdBy, starter, model }[this.#options.group];
    const isOpen = open && Date.parse(interval.to) <= to;
    this.#count({ group, currency, product, open: isOpen, gpuMs, cost }, uid);
  }

  #count(more: Line, uid: string): void {
    const { group, currency } = more;
    const key = JSON.stringify([group, currency, ...(this.#options.group === 'instance' ? [uid] : [])]);
    const line = this.#lines.get(key);
    this.#lines.set(key, line === undefined ? more : { ...line, ...sumOf(line, more), product: productOf(line, more) });
    if (this.#lines.size > this.#options.most) throw new RangeError(`More than ${this.#options.most} lines`);
  }
}

type Sum = Omit<Line, 'group' | 'product' | 'currency'>;

function sumOf(left: Sum, right: Sum): Sum {
  const tokens = left.tokens && right.tokens ? plusTokens(left.tokens, right.tokens) : (left.tokens ?? right.tokens);
  return { ...plus(left, right), open: left.open || right.open, ...(tokens && { tokens }) };
}

/** The one product of two lines. Models have none. */
function productOf(left: Line, right: Line): string | undefined {
  if (left.product === '') return right.product;
  if (right.product === '') return left.product;
  return left.product === right.product ? left.product : undefined;
}

/** The sums of lines, one for each currency. */
export function totalsOf(lines: readonly Line[]): Omit<Line, 'group' | 'product'>[] {
  const totals = new Map<string, Omit<Line, 'group' | 'product'>>();
  for (const { currency, open, gpuMs, cost, tokens } of lines) {
    const line = { currency, open, gpuMs, cost, ...(tokens && { tokens }) };
    const before = totals.get(currency);
    totals.set(currency, before === undefined ? line : { ...before, ...sumOf(before, line) });
  }
  return [...totals.values()].toSorted((a, b) => compareText(a.currency, b.currency));
}

/** The beginning of the day in UTC. */
export function startOfDay(ms: number): number {
  return Math.floor(ms / DAY_MS) * DAY_MS;
}

/** The day in UTC, such as 2026-11-23. */
export function dayText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
