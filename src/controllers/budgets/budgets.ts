import type { ReadStore } from '../../kube/watch/store.ts';
import { compareText } from '../../lib/compare.ts';
import { keyOf, type Namespace } from '../../kube/types.ts';
import {
  type Account,
  drawsOn,
  firstHour,
  isSpent,
  type Line,
  lineText,
  linesOf,
  lineWithoutRoom,
  periodOf,
  shareOf,
} from '../../budgets/accounts.ts';
import { type Holder, KeptAccounts } from '../../budgets/kept-accounts.ts';
import { ownersOf, Spending, TENANT } from '../../budgets/spending.ts';
import { stopOrder } from '../../budgets/stop-order.ts';
import {
  budgetRefusal,
  type BudgetWords,
  deletedKeyBudget,
  keyBudget,
  spentWords,
  tenantBudget,
} from '../../budgets/words.ts';
import type { Clock } from '../../lib/clock.ts';
import { sameJson } from '../../lib/json.ts';
import { type Month, monthOf } from '../../ledger/month.ts';
import { type ApiKey, createdByKey, creatingKey } from '../../resources/api-key.ts';
import type { Payers } from '../../resources/instances/claim.ts';
import type { Claim, GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { type Budget, budgetSchema, isBudget } from '../../resources/tenants/budget.ts';
import {
  type KeyBudget,
  MOST_KEY_BUDGETS,
  TENANT_LIMIT_NAME,
  type TenantLimit,
} from '../../resources/tenants/tenant-limit.ts';
import type { AddKey, Source } from '../../runtime/source.ts';
import { claimOf, payersOf } from '../gpu-instance/decide/transitions.ts';
import type { Waiting } from '../gpu-instance/decide/status/ready.ts';
import type { BudgetRoom, TenantLine } from '../gpu-instance/tenant-line.ts';
import type { WaitingLine } from '../gpu-instance/waiting-line.ts';
import type { LimitOf } from '../tenants/tenant-ceilings.ts';
import { MovedBills } from './moved-bills.ts';
import type { Recorded } from './records.ts';

export interface BudgetsDeps {
  stores: {
    instances: ReadStore<GpuInstance>;
    apiKeys: ReadStore<ApiKey>;
    tenantLimits: Pick<ReadStore<TenantLimit>, 'get'>;
    namespaces: Pick<ReadStore<Namespace>, 'get' | 'onChange'>;
  };
  /** The claim that was granted to an instance, while no cache shows it. */
  assumedClaim: (key: string) => Claim | undefined;
  ceilingsOf: LimitOf;
  /** What usage records say of the month of a moment; undefined while they are being read. */
  recordedAt: (now: number) => Recorded | undefined;
  clock: Pick<Clock, 'now' | 'monotonic'>;
}

/** A budget of a tenant or of one of its keys. */
export interface OwnedBudget {
  /** TENANT, or key/NAME. */
  owner: string;
  budget: Budget;
  words: BudgetWords;
  /** Name of the key that was deleted. */
  deletedKey?: string;
}

/** A budget with what was spent of it. */
export interface CountedBudget extends OwnedBudget {
  month: Month;
  lines: Line[];
  /** Of the newest token record that is counted; undefined where none is. */
  tokensVersion: string | undefined;
}

interface Counted extends CountedBudget {
  account: Account;
}

/** Why a claim has no room. `stop` is the same as long as the same part of the same budget refuses it. */
export interface BudgetRefusal {
  waiting: Waiting;
  stop: string;
}

/** The instances of tenants that wait for room in their budgets. */
export type BudgetLine = Pick<TenantLine, 'wakeAll' | 'serveBudget' | 'hasBudgeted'>;

/** Of a key whose budget cannot be read: nothing may be spent. */
const CLOSED: Budget = { costs: [], gpuHours: 0 };

const READING: BudgetRefusal = {
  waiting: { reason: 'Pending', message: 'The controller is reading what the tenant has spent in this month.' },
  stop: 'reading',
};

/** Keeps tenants and keys within their budgets, for one term as the leader. */
export class Budgets {
  readonly #deps: BudgetsDeps;
  /** By namespace, then by owner, as they were counted last. */
  readonly #counted = new Map<string, ReadonlyMap<string, CountedBudget>>();
  /** By namespace: what its budgets are counted from. */
  readonly #accounts = new Map<string, KeptAccounts>();
  /** Namespaces with an instance that waits until usage records are read. */
  readonly #waiting = new Set<string>();
  /**
   * Budgets that keys had when they were deleted in this term, by namespace and name, until the TenantLimit has them:
   * undefined for a key without one.
   */
  readonly #deleted = new Map<string, Map<string, Budget | undefined>>();
  readonly #moved: MovedBills;
  #wake: AddKey | undefined;
  #line: BudgetLine | undefined;
  #places: Pick<WaitingLine, 'placeFor'> | undefined;

  constructor(deps: BudgetsDeps) {
    this.#deps = deps;
    this.#moved = new MovedBills(deps.clock);
  }

  /**
   * Wakes instances that a spent budget stops, and those in the line that have room. A place that others leave for an
   * instance counts as its own: more of them would end than there is money for.
   */
  source(line: BudgetLine, places: Pick<WaitingLine, 'placeFor'>): Source {
    return {
      synced: Promise.resolve(),
      start: (add) => {
        this.#wake = add;
        this.#line = line;
        this.#places = places;
        const { apiKeys, instances, namespaces } = this.#deps.stores;
        const unfollow = [
          apiKeys.onChange(({ before, after }) => {
            if (before !== undefined && after === undefined) this.#noteDeleted(before);
          }),
          instances.onChange((change) => {
            const { namespace = '' } = (change.after ?? change.before)?.metadata ?? {};
            if (this.#accounts.has(namespace) && !this.#isGoing(namespace)) this.#moved.note(change);
          }),
          namespaces.onChange(({ key, before, after }) => {
            if (before?.metadata.uid !== after?.metadata.uid) this.#forget(key);
          }),
        ];
        return () => {
          for (const end of unfollow) end();
          this.#wake = undefined;
          this.#line = undefined;
          this.#places = undefined;
        };
      },
    };
  }

  /** The budgets of a tenant and of its keys, deleted ones included. */
  of(namespace: string): OwnedBudget[] {
    const ofKeys = this.#deps.stores.apiKeys.by('namespace', namespace).flatMap(ofKey);
    return [...this.#ofTenant(namespace), ...ofKeys, ...this.#ofDeleted(namespace)];
  }

  /**
   * The budgets of keys that the TenantLimit is to remember: of those that are there, and of deleted ones of which an
   * instance is left. The cache of instances may be behind that of keys, so a deleted one stays for the rest of its month.
   * Where there are too many, those with instances come first.
   */
  toRemember(namespace: string): Pick<KeyBudget, 'name' | 'budget'>[] {
    const month = monthOf(this.#deps.clock.now()).name;
    const known = new Map(this.#remembered(namespace).map((one) => [one.name, one]));
    const isRecent = (name: string): boolean => (known.get(name)?.used?.month ?? month) === month;
    const payers = new Set(this.#deps.stores.instances.by('namespace', namespace).flatMap(ownersOfInstance));
    const isPayer = (name: string): boolean => payers.has(createdByKey(name));
    const deleted = this.#ofDeleted(namespace).flatMap(({ deletedKey: name = '', budget }) => ({ name, budget }));
    const there = this.#deps.stores.apiKeys
      .by('namespace', namespace)
      .flatMap((key) => ofKey(key).map(({ budget }) => ({ name: key.metadata.name, budget })));
    const wanted = [...there, ...deleted.filter(({ name }) => isPayer(name) || isRecent(name))]
      .toSorted((a, b) => Number(isPayer(b.name)) - Number(isPayer(a.name)) || compareText(a.name, b.name))
      .slice(0, MOST_KEY_BUDGETS);
    const byName = new Map(wanted.map(({ name, budget }) => [name, budget]));
    const seen = this.#deleted.get(namespace);
    for (const name of seen?.keys() ?? []) if (sameJson(byName.get(name), known.get(name)?.budget)) seen?.delete(name);
    if (seen?.size === 0) this.#deleted.delete(namespace);
    return wanted;
  }

  #remembered(namespace: string): readonly KeyBudget[] {
    const limit = this.#deps.stores.tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME }));
    return limit?.status?.keyBudgets ?? [];
  }

  /** Whether a budget holds for what these pay for in the namespace. */
  isMetered(namespace: string, payers: Payers): boolean {
    return this.#owned(namespace, payers).length > 0;
  }

  /**
   * Why what these pay for may not have the place of a claim, for one claim after another: undefined when every budget has
   * room for its first hour. All is counted once for all claims.
   * @param key of the instance that asks: what is reserved for it takes no room from it
   */
  refusals(namespace: string, payers: Payers, key: string): (claim: Claim) => BudgetRefusal | undefined {
    const owned = this.#owned(namespace, payers);
    if (owned.length === 0) return () => undefined;
    const now = this.#deps.clock.now();
    const counted = this.#count(namespace, owned, now, key);
    if (counted === undefined) {
      this.#waiting.add(namespace);
      return () => READING;
    }
    this.#counted.set(namespace, new Map([...(this.#counted.get(namespace) ?? []), ...counted]));
    return (claim) => refusalOf(counted.values(), claim, now);
  }

  /** Why this instance is to be stopped, as the budgets were counted last; undefined while nothing is. */
  overspent(instance: GpuInstance): string | undefined {
    const claim = instance.status?.claim;
    const counted = this.#counted.get(instance.metadata.namespace ?? '');
    if (claim === undefined || counted === undefined) return undefined;
    const now = this.#deps.clock.now();
    for (const owner of ownersOf(claim)) {
      const { month, lines = [], words } = counted.get(owner) ?? {};
      // A new month, or a clock that was set: what was counted says nothing of it.
      if (month === undefined || words === undefined || now < month.from || now >= month.to) continue;
      const spent = lines.find((line) => isSpent(line) && drawsOn(line, claim));
      if (spent !== undefined) return spentWords(lineText(spent), periodOf(month), words);
    }
    return undefined;
  }

  /**
   * Counts all budgets of a tenant. Wakes the instances that are to be stopped, in their order, and those that wait and
   * have room. Undefined while usage records are being read.
   */
  look(namespace: string): CountedBudget[] | undefined {
    const owned = this.of(namespace);
    const counted = this.#count(namespace, owned, this.#deps.clock.now());
    if (counted === undefined) return undefined;
    if (counted.size === 0) this.#counted.delete(namespace);
    else this.#counted.set(namespace, counted);
    this.#line?.serveBudget(namespace, roomIn(counted, this.#deps.clock.now()));
    if (this.#waiting.delete(namespace)) this.#line?.wakeAll(namespace);
    const holders = [...counted.values()].some(({ lines }) => lines.some(isSpent)) ? this.#holders(namespace) : [];
    for (const key of stopOrder(holders)) this.#wake?.(key);
    return [...counted.values()];
  }

  /** Lets those go that wait for the budgets of a tenant for longer than an instance, as far as there is room by now. */
  serve(namespace: string, before: GpuInstance): void {
    if (this.#line?.hasBudgeted(namespace) !== true) return;
    const now = this.#deps.clock.now();
    const counted = this.#count(namespace, this.of(namespace), now);
    if (counted !== undefined) this.#line.serveBudget(namespace, roomIn(counted, now), before);
  }

  #owned(namespace: string, payers: Payers): OwnedBudget[] {
    const ofPayers = ownersOf(payers).flatMap((owner) => {
      const name = creatingKey(owner);
      if (name === undefined) return [];
      const key = this.#deps.stores.apiKeys.get(keyOf({ namespace, name }));
      return key === undefined ? this.#ofDeleted(namespace, owner) : ofKey(key);
    });
    return [...this.#ofTenant(namespace), ...ofPayers];
  }

  /** The budgets of keys that are gone. A key of the same name takes the place of one that is. */
  #ofDeleted(namespace: string, owner?: string): OwnedBudget[] {
    const { apiKeys } = this.#deps.stores;
    const remembered = this.#remembered(namespace).map(({ name, budget }) => [name, budget] as const);
    const all = new Map<string, Budget | undefined>([...remembered, ...(this.#deleted.get(namespace) ?? [])]);
    return [...all].flatMap(([name, budget]) => {
      if (owner !== undefined && owner !== createdByKey(name)) return [];
      if (!isBudget(budget) || apiKeys.get(keyOf({ namespace, name })) !== undefined) return [];
      return [{ owner: createdByKey(name), budget, words: deletedKeyBudget(name), deletedKey: name }];
    });
  }

  /** What it was when it was deleted counts: it may have been lowered a moment before. */
  #noteDeleted(key: ApiKey): void {
    const { namespace = '', name } = key.metadata;
    // What the key created goes, too.
    if (this.#isGoing(namespace)) return;
    const budget = ofKey(key)[0]?.budget;
    // Most keys have none, and nothing is remembered of them.
    if (budget === undefined && !this.#remembered(namespace).some((one) => one.name === name)) return;
    const deleted = this.#deleted.get(namespace) ?? new Map<string, Budget | undefined>();
    this.#deleted.set(namespace, deleted.set(name, budget));
  }

  #isGoing(namespace: string): boolean {
    const found = this.#deps.stores.namespaces.get(namespace);
    return found === undefined || found.metadata.deletionTimestamp !== undefined;
  }

  /** Who has the name of a namespace after another is another tenant. */
  #forget(namespace: string): void {
    this.#deleted.delete(namespace);
    this.#counted.delete(namespace);
    this.#accounts.delete(namespace);
    this.#moved.forget(namespace);
  }

  #ofTenant(namespace: string): OwnedBudget[] {
    const { budget, policies } = this.#deps.ceilingsOf(namespace);
    return isBudget(budget) ? [{ owner: TENANT, budget, words: tenantBudget(policies) }] : [];
  }

  /** `asking`: key of the instance whose reserved place does not count. */
  #count(
    namespace: string,
    owned: readonly OwnedBudget[],
    now: number,
    asking?: string,
  ): Map<string, Counted> | undefined {
    if (owned.length === 0) {
      this.#accounts.delete(namespace);
      return new Map();
    }
    const recorded = this.#deps.recordedAt(now);
    if (recorded === undefined) return undefined;
    const { spending, isRecorded, revisionOf } = recorded;
    const owners = owned.map(({ owner }) => owner);
    const gone = this.#moved.of(namespace, isRecorded).map((instance) => ({ instance, claim: undefined }));
    const holders = [...this.#holders(namespace, asking), ...gone];
    const kept = this.#accounts.get(namespace) ?? new KeptAccounts();
    this.#accounts.set(namespace, kept);
    const revision = revisionOf(namespace);
    const accounts = kept.of(owners, { namespace, holders, recorded: spending, isRecorded, revision, now });
    return new Map(
      owned.flatMap((one) => {
        const account = accounts.get(one.owner);
        if (account === undefined) return [];
        const lines = linesOf(one.budget, account);
        const tokensVersion = spending.tokensVersionOf(namespace, one.owner);
        return [[one.owner, { ...one, account, month: spending.month, lines, tokensVersion }] as const];
      }),
    );
  }

  #holders(namespace: string, asking?: string): Holder[] {
    const { stores, assumedClaim } = this.#deps;
    return stores.instances.by('namespace', namespace).map((instance) => {
      const key = keyOf(instance);
      const comes = (): Claim | undefined => (key === asking ? undefined : this.#comingClaim(key, instance));
      return { instance, claim: instance.status?.claim ?? assumedClaim(key) ?? comes() };
    });
  }

  /** What an instance will claim that others leave a place for. */
  #comingClaim(key: string, instance: GpuInstance): Claim | undefined {
    const place = this.#places?.placeFor(key);
    if (place === undefined) return undefined;
    return claimOf(instance, { place: { ...place, diskGbMax: 0, diskPersistent: false } }, this.#deps.clock.now());
  }
}

/** Whose budgets an instance draws on: as its claim has it, or as the next one will. */
function ownersOfInstance(instance: GpuInstance): string[] {
  return ownersOf(instance.status?.claim ?? payersOf(instance));
}

function ofKey({ metadata: { name }, spec }: ApiKey): OwnedBudget[] {
  if (spec.limits?.budget === undefined) return [];
  const read = budgetSchema.safeParse(spec.limits.budget);
  const budget = read.success ? read.data : CLOSED;
  return isBudget(budget) ? [{ owner: createdByKey(name), budget, words: keyBudget(name) }] : [];
}

/** The first of these budgets that has no room for a claim. */
function refusalOf(counted: Iterable<Counted>, claim: Claim, now: number): BudgetRefusal | undefined {
  for (const { owner, budget, words, month, account } of counted) {
    const wanted = firstHour(claim, month, now);
    const full = lineWithoutRoom(linesOf(budget, account, wanted), wanted);
    if (full === undefined) continue;
    const message = budgetRefusal(full, shareOf(full, wanted), month, words);
    const stop = [month.name, owner, full.unit, full.max, isSpent(full)].join(' ');
    return { waiting: { reason: 'BudgetExceeded', message }, stop };
  }
  return undefined;
}

/** What room the budgets of a tenant have for those that wait. */
function roomIn(counted: ReadonlyMap<string, Counted>, now: number): BudgetRoom {
  const drawnBy = (claim: Claim): Counted[] => ownersOf(claim).flatMap((owner) => counted.get(owner) ?? []);
  const taken = new Map<string, Spending>();
  return {
    has: (claim) =>
      drawnBy(claim).every(({ owner, budget, month, account }) => {
        const wanted = firstHour(claim, month, now);
        const reserved = new Spending().addAll(account.reserved).addAll(taken.get(owner) ?? new Spending());
        return lineWithoutRoom(linesOf(budget, { ...account, reserved }, wanted), wanted) === undefined;
      }),
    take(claim) {
      for (const { owner, month } of drawnBy(claim))
        taken.set(owner, (taken.get(owner) ?? new Spending()).addAll(firstHour(claim, month, now)));
    },
    stopOf: (claim) => refusalOf(drawnBy(claim), claim, now)?.stop,
  };
}
