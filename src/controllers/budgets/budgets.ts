import type { ReadStore } from '../../kube/watch/store.ts';
import { keyOf } from '../../kube/types.ts';
import {
  type Account,
  accountsOf,
  drawsOn,
  firstHour,
  type Holder,
  isSpent,
  type Line,
  lineText,
  linesOf,
  lineWithoutRoom,
  periodOf,
  shareOf,
} from '../../budgets/accounts.ts';
import { ownersOf, TENANT } from '../../budgets/spending.ts';
import { stopOrder } from '../../budgets/stop-order.ts';
import { budgetRefusal, type BudgetWords, keyBudget, spentWords, tenantBudget } from '../../budgets/words.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Month } from '../../ledger/month.ts';
import { type ApiKey, createdByKey, creatingKey } from '../../resources/api-key.ts';
import type { Claim, GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { type Budget, budgetSchema, isBudget } from '../../resources/tenants/budget.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import type { Waiting } from '../gpu-instance/decide/status/ready.ts';
import type { LimitOf } from '../tenants/tenant-ceilings.ts';
import type { Recorded } from './records.ts';

export interface BudgetsDeps {
  stores: { instances: ReadStore<GpuInstance>; apiKeys: ReadStore<ApiKey> };
  /** The claim that was granted to an instance, while no cache shows it. */
  assumedClaim: (key: string) => Claim | undefined;
  ceilingsOf: LimitOf;
  /** What usage records say of the month of a moment; undefined while they are being read. */
  recordedAt: (now: number) => Recorded | undefined;
  clock: Pick<Clock, 'now'>;
}

/** A budget of a tenant or of one of its keys. */
export interface OwnedBudget {
  /** TENANT, or key/NAME. */
  owner: string;
  budget: Budget;
  words: BudgetWords;
}

/** A budget with what was spent of it. */
export interface CountedBudget extends OwnedBudget {
  month: Month;
  lines: Line[];
}

/** Of a key whose budget cannot be read: nothing may be spent. */
const CLOSED: Budget = { costs: [], gpuHours: 0 };

const READING: Waiting = {
  reason: 'Pending',
  message: 'The controller is reading what the tenant has spent in this month.',
};

/** Keeps tenants and keys within their budgets, for one term as the leader. */
export class Budgets {
  readonly #deps: BudgetsDeps;
  /** By namespace, then by owner, as they were counted last. */
  readonly #counted = new Map<string, ReadonlyMap<string, CountedBudget>>();
  /** The same as `look` saw them last: what it compares with, to find out whether there is more room. */
  readonly #looked = new Map<string, ReadonlyMap<string, CountedBudget>>();
  /** Namespaces with an instance that waits until usage records are read. */
  readonly #waiting = new Set<string>();
  #wake: AddKey | undefined;
  #wakeWaiting: (namespace: string) => void = () => undefined;

  constructor(deps: BudgetsDeps) {
    this.#deps = deps;
  }

  /** Wakes instances that a spent budget stops. `wakeWaiting` wakes those of a tenant that wait for room. */
  source(wakeWaiting: (namespace: string) => void): Source {
    return {
      synced: Promise.resolve(),
      start: (add) => {
        this.#wake = add;
        this.#wakeWaiting = wakeWaiting;
        return () => {
          this.#wake = undefined;
          this.#wakeWaiting = () => undefined;
        };
      },
    };
  }

  /** The budgets of a tenant and of its keys. */
  of(namespace: string): OwnedBudget[] {
    return [...this.#ofTenant(namespace), ...this.#deps.stores.apiKeys.by('namespace', namespace).flatMap(ofKey)];
  }

  /** Whether a budget holds for what this creator rents in the namespace. */
  isMetered(namespace: string, createdBy: string | undefined): boolean {
    return this.#owned(namespace, createdBy).length > 0;
  }

  /** Why an instance may not have the place of this claim; undefined when every budget has room for its first hour. */
  refusal(namespace: string, claim: Claim): Waiting | undefined {
    const owned = this.#owned(namespace, claim.createdBy);
    if (owned.length === 0) return undefined;
    const now = this.#deps.clock.now();
    const counted = this.#count(namespace, owned, now);
    if (counted === undefined) {
      this.#waiting.add(namespace);
      return READING;
    }
    this.#counted.set(namespace, new Map([...(this.#counted.get(namespace) ?? []), ...counted]));
    for (const { budget, words, month, account } of counted.values()) {
      const wanted = firstHour(claim, month, now);
      const full = lineWithoutRoom(linesOf(budget, account, wanted), wanted);
      if (full === undefined) continue;
      return { reason: 'BudgetExceeded', message: budgetRefusal(full, shareOf(full, wanted), month, words) };
    }
    return undefined;
  }

  /** Why this instance is to be stopped, as the budgets were counted last; undefined while nothing is. */
  overspent(instance: GpuInstance): string | undefined {
    const claim = instance.status?.claim;
    const counted = this.#counted.get(instance.metadata.namespace ?? '');
    if (claim === undefined || counted === undefined) return undefined;
    const now = this.#deps.clock.now();
    for (const owner of ownersOf(claim.createdBy)) {
      const { month, lines = [], words } = counted.get(owner) ?? {};
      // A new month, or a clock that was set: what was counted says nothing of it.
      if (month === undefined || words === undefined || now < month.from || now >= month.to) continue;
      const spent = lines.find((line) => isSpent(line) && drawsOn(line, claim));
      if (spent !== undefined) return spentWords(lineText(spent), periodOf(month), words);
    }
    return undefined;
  }

  /**
   * Counts all budgets of a tenant anew. Wakes the instances that are to be stopped, in their order, and those that wait
   * when there is more room than before. Undefined while usage records are being read.
   */
  look(namespace: string): CountedBudget[] | undefined {
    const owned = this.of(namespace);
    const before = this.#looked.get(namespace);
    const counted = this.#count(namespace, owned, this.#deps.clock.now());
    if (counted === undefined) return undefined;
    for (const kept of [this.#counted, this.#looked]) {
      if (counted.size === 0) kept.delete(namespace);
      else kept.set(namespace, counted);
    }
    if (this.#waiting.delete(namespace) || hasMoreRoom(before, counted)) this.#wakeWaiting(namespace);
    const holders = [...counted.values()].some(({ lines }) => lines.some(isSpent)) ? this.#holders(namespace) : [];
    for (const key of stopOrder(holders)) this.#wake?.(key);
    return [...counted.values()];
  }

  #owned(namespace: string, createdBy: string | undefined): OwnedBudget[] {
    const name = creatingKey(createdBy);
    const key = name === undefined ? undefined : this.#deps.stores.apiKeys.get(keyOf({ namespace, name }));
    return [...this.#ofTenant(namespace), ...(key === undefined ? [] : ofKey(key))];
  }

  #ofTenant(namespace: string): OwnedBudget[] {
    const { budget, policies } = this.#deps.ceilingsOf(namespace);
    return isBudget(budget) ? [{ owner: TENANT, budget, words: tenantBudget(policies) }] : [];
  }

  #count(
    namespace: string,
    owned: readonly OwnedBudget[],
    now: number,
  ): Map<string, CountedBudget & { account: Account }> | undefined {
    if (owned.length === 0) return new Map();
    const recorded = this.#deps.recordedAt(now);
    if (recorded === undefined) return undefined;
    const { spending, isRecorded } = recorded;
    const owners = owned.map(({ owner }) => owner);
    const holders = this.#holders(namespace);
    const accounts = accountsOf(owners, { namespace, holders, recorded: spending, isRecorded, now });
    return new Map(
      owned.flatMap((one) => {
        const account = accounts.get(one.owner);
        if (account === undefined) return [];
        return [[one.owner, { ...one, account, month: spending.month, lines: linesOf(one.budget, account) }] as const];
      }),
    );
  }

  #holders(namespace: string): Holder[] {
    const { stores, assumedClaim } = this.#deps;
    return stores.instances
      .by('namespace', namespace)
      .map((instance) => ({ instance, claim: instance.status?.claim ?? assumedClaim(keyOf(instance)) }));
  }
}

function ofKey({ metadata: { name }, spec }: ApiKey): OwnedBudget[] {
  if (spec.limits?.budget === undefined) return [];
  const read = budgetSchema.safeParse(spec.limits.budget);
  const budget = read.success ? read.data : CLOSED;
  return isBudget(budget) ? [{ owner: createdByKey(name), budget, words: keyBudget(name) }] : [];
}

/** Whether a part of a budget has more left than when it was counted before. */
function hasMoreRoom(
  before: ReadonlyMap<string, CountedBudget> | undefined,
  after: ReadonlyMap<string, CountedBudget>,
): boolean {
  if (before === undefined) return true;
  const left = ({ max, spent, reserved }: Line): bigint => max - spent - reserved;
  return [...before.values()].some(({ owner, lines }) => {
    const now = after.get(owner)?.lines;
    return (
      now === undefined || lines.some((line) => left(now.find(({ unit }) => unit === line.unit) ?? line) > left(line))
    );
  });
}
