import { type Amount, amountBetween } from '../ledger/amount.ts';
import { billsOfRecord } from '../ledger/bills.ts';
import type { Month } from '../ledger/month.ts';
import type { Billed } from '../ledger/report.ts';
import { tokenBillsOf } from '../ledger/tokens.ts';
import type { TokenRecord } from '../resources/token-record.ts';
import type { UsageRecord } from '../resources/usage-record.ts';

/** The owner of all that a tenant spends. Every other owner is a creator, such as key/ci. */
export const TENANT = '';

/** A sum over several currencies: GPU milliseconds, and millionths of each currency. */
export class Spending {
  gpuMs = 0n;
  readonly costs = new Map<string, bigint>();

  add({ gpuMs, cost }: Amount, currency: string): this {
    this.gpuMs += gpuMs;
    if (cost !== 0n) this.costs.set(currency, (this.costs.get(currency) ?? 0n) + cost);
    return this;
  }

  addAll({ gpuMs, costs }: Spending): this {
    this.gpuMs += gpuMs;
    for (const [currency, cost] of costs) this.add({ gpuMs: 0n, cost }, currency);
    return this;
  }
}

/** What of a bill falls into a month. A credit is taken off. */
export function amountIn({ from, to }: Month, { interval, adjustment }: Billed): Amount {
  const amount = amountBetween(interval, from, to);
  return adjustment === 'Credit' ? { gpuMs: -amount.gpuMs, cost: -amount.cost } : amount;
}

/** Whose budgets a bill counts for: the tenant's, and that of who created the instance. */
export function ownersOf(createdBy: string | undefined): string[] {
  return createdBy === undefined ? [TENANT] : [TENANT, createdBy];
}

/** What the usage records and token records of one month say, by tenant and by owner. It keeps sums alone. */
export class RecordedSpending {
  readonly month: Month;
  readonly #sums = new Map<string, Map<string, Spending>>();

  constructor(month: Month) {
    this.month = month;
  }

  /** Counts a record; with `sign` -1 it takes back what it counted. */
  count({ metadata, spec }: UsageRecord, sign: 1 | -1): void {
    const { namespace = '' } = metadata;
    for (const billed of billsOfRecord({ metadata, spec })) {
      const { gpuMs, cost } = amountIn(this.month, billed);
      if (gpuMs === 0n && cost === 0n) continue;
      const { createdBy, currency } = billed.interval;
      const amount = { gpuMs: gpuMs * BigInt(sign), cost: cost * BigInt(sign) };
      for (const owner of ownersOf(createdBy)) this.#sumOf(namespace, owner).add(amount, currency);
    }
  }

  /** Counts what calls to models cost, as `count` does. */
  countTokens(record: TokenRecord, sign: 1 | -1): void {
    const { namespace = '' } = record.metadata;
    for (const { day, by, currency, cost } of tokenBillsOf(record)) {
      if (cost === 0n || !day.startsWith(this.month.name)) continue;
      for (const owner of ownersOf(by)) {
        this.#sumOf(namespace, owner).add({ gpuMs: 0n, cost: cost * BigInt(sign) }, currency);
      }
    }
  }

  of(namespace: string, owner: string): Spending | undefined {
    return this.#sums.get(namespace)?.get(owner);
  }

  #sumOf(namespace: string, owner: string): Spending {
    const owners = this.#sums.get(namespace) ?? new Map<string, Spending>();
    this.#sums.set(namespace, owners);
    const sum = owners.get(owner) ?? new Spending();
    owners.set(owner, sum);
    return sum;
  }
}
