import { type Amount, amountBetween } from '../ledger/amount.ts';
import { hasReached } from '../kube/watch/resource-version.ts';
import { billsOfRecord } from '../ledger/bills.ts';
import type { Month } from '../ledger/month.ts';
import type { Billed } from '../ledger/report.ts';
import { tokenBillsOf } from '../ledger/tokens.ts';
import type { Payers } from '../resources/instances/claim.ts';
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
    const sum = (this.costs.get(currency) ?? 0n) + cost;
    // A currency of which nothing is left must look as if nothing had been.
    if (sum === 0n) this.costs.delete(currency);
    else this.costs.set(currency, sum);
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

/** Whose budgets a bill counts for. */
export function ownersOf({ createdBy, startedBy }: Payers): string[] {
  return [...new Set([TENANT, createdBy ?? TENANT, startedBy ?? TENANT])];
}

/** What the usage records and token records of one month say, by tenant and by owner. It keeps sums alone. */
export class RecordedSpending {
  readonly month: Month;
  readonly #sums = new Map<string, Map<string, Spending>>();
  /** The newest version of a token record with a bill, by tenant and owner. */
  readonly #tokensVersions = new Map<string, Map<string, string>>();

  constructor(month: Month) {
    this.month = month;
  }

  /** Counts a record; with `sign` -1 it takes back what it counted. */
  count({ metadata, spec }: UsageRecord, sign: 1 | -1): void {
    const { namespace = '' } = metadata;
    for (const billed of billsOfRecord({ metadata, spec })) {
      const { gpuMs, cost } = amountIn(this.month, billed);
      if (gpuMs === 0n && cost === 0n) continue;
      const { currency } = billed.interval;
      const amount = { gpuMs: gpuMs * BigInt(sign), cost: cost * BigInt(sign) };
      for (const owner of ownersOf(billed.interval)) this.#sumOf(namespace, owner).add(amount, currency);
    }
  }

  /** Counts what calls to models cost, as `count` does. */
  countTokens(record: TokenRecord, sign: 1 | -1): void {
    const { namespace = '' } = record.metadata;
    for (const { day, by, currency, cost } of tokenBillsOf(record)) {
      if (cost === 0n || !day.startsWith(this.month.name)) continue;
      for (const owner of ownersOf({ createdBy: by })) {
        this.#sumOf(namespace, owner).add({ gpuMs: 0n, cost: cost * BigInt(sign) }, currency);
        this.#noteVersion(namespace, owner, record.metadata.resourceVersion ?? '');
      }
    }
  }

  /** The newest version of a token record with a bill of the owner; undefined where there is none. */
  tokensVersionOf(namespace: string, owner: string): string | undefined {
    return this.#tokensVersions.get(namespace)?.get(owner);
  }

  #noteVersion(namespace: string, owner: string, version: string): void {
    const owners = this.#tokensVersions.get(namespace) ?? new Map<string, string>();
    this.#tokensVersions.set(namespace, owners);
    const known = owners.get(owner);
    if (known === undefined || hasReached(version, known)) owners.set(owner, version);
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
