import { findCondition } from '../../../src/kube/conditions.ts';
import { API_KEYS, type ApiKey, createdByKey, creatingKey } from '../../../src/resources/api-key.ts';
import type { Claim } from '../../../src/resources/instances/claim.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { GPU_POOLS, type GpuPool } from '../../../src/resources/gpu-pool.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { instanceState } from '../../../src/resources/instances/instance-state.ts';
import type { BudgetStatus } from '../../../src/resources/tenants/budget.ts';
import { TENANT_LIMIT_NAME, TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES, type TenantPolicy } from '../../../src/resources/tenants/tenant-policy.ts';
import { USAGE_RECORDS, type UsageRecord } from '../../../src/resources/usage-record.ts';
import { type KubeObject, NAMESPACES, NODES } from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';
import type { Watch } from './owners.ts';

/** The owner of the budget of a tenant itself; the others are key/NAME. */
const TENANT = '';
const HOUR_MS = 3_600_000;
/** Kubelets write whole seconds, and the clocks of two leaders differ by five. */
const MARGIN_MS = 7_000;
/** A budget is counted this often. */
const LOOK_MS = 20_000;
/** Amounts are rounded to millionths, and times to milliseconds. */
const CLOSE = 0.01;

/** What may be spent, since when; no `max`: there is no budget. */
interface Purse {
  max: number | undefined;
  from: number;
  /** Whether Berth must have heard of it: a key may be gone before anybody heard what it had. */
  isKnown: boolean;
}

interface Month {
  from: number;
  to: number;
}

function monthAt(ms: number): Month {
  const date = new Date(ms);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  return { from: Date.UTC(year, month), to: Date.UTC(year, month + 1) };
}

/** Milliseconds of a span that lie in another, without the silences of it. */
function msIn(
  from: number,
  to: number,
  within: Month,
  silences: readonly { from: string; to?: string | undefined }[] = [],
): number {
  const both = (a: number, b: number): number =>
    Math.max(0, Math.min(b, within.to, to) - Math.max(a, within.from, from));
  const silent = silences.reduce((sum, one) => sum + both(Date.parse(one.from), Date.parse(one.to ?? '') || to), 0);
  return Math.max(0, both(from, to) - silent);
}

/** Whether a budget refuses a place. Ready says of one that Berth owes a start why it does. */
export function isOverBudget({ status }: GpuInstance): boolean {
  return findCondition(status?.conditions, 'Claimed')?.reason === 'BudgetExceeded';
}

interface Payers {
  createdBy?: string | undefined;
  startedBy?: string | undefined;
}

function isPaidBy({ createdBy, startedBy }: Payers, owner: string): boolean {
  return owner === TENANT || createdBy === owner || startedBy === owner;
}

function maxIn(budget: { costs?: readonly { max: string }[] } | undefined): number | undefined {
  const [cost] = budget?.costs ?? [];
  return cost === undefined ? undefined : Number(cost.max);
}

/** When the meter of a start began; undefined: not yet. */
function meteredFrom({ claim, stages }: NonNullable<GpuInstance['status']>): number | undefined {
  const began = claim?.byPreemption === true ? claim.grantedAt : (stages?.started ?? stages?.ready);
  return began === undefined ? undefined : Date.parse(began);
}

/** Judges budgets: what is counted of each, who gets a place under it, and who ends for it. Knows which keys may call. */
export class Purses {
  readonly #watch: Watch;
  readonly #api: ApiServer;
  /** By namespace, then by owner. */
  readonly #purses = new Map<string, Map<string, Purse>>();
  /** When somebody changed what a tenant has spent, by a correction or a deletion, or its namespace began. */
  readonly #touchedAt = new Map<string, number>();
  /** By hash: since when a key may call, and since when no more. */
  readonly #keys = new Map<string, { namespace: string; from: number; to: number }>();

  constructor(watch: Watch, api: ApiServer) {
    this.#watch = watch;
    this.#api = api;
    api.follow(({ kind: { type }, before, after }) => {
      if (type.kind === API_KEYS.kind) this.#seeKey(before as ApiKey, after as ApiKey);
      if (type.kind === TENANT_POLICIES.kind) this.#seePolicy(before as TenantPolicy, after as TenantPolicy);
      if (type.kind === USAGE_RECORDS.kind) this.#seeRecord((after ?? before) as UsageRecord, after === undefined);
      if (type.kind === NAMESPACES.kind) this.#seeNamespace(before, after);
      if (type.kind === GPU_INSTANCES.kind) this.#seeInstance(before as GpuInstance, after as GpuInstance);
    });
  }

  get #now(): number {
    return this.#watch.time.wall;
  }

  /** Whether a key may call, as everybody must know by now; undefined while some may not. */
  mayCall(hash: string): boolean | undefined {
    const { from, to } = this.#keys.get(hash) ?? { from: Infinity, to: 0 };
    if (to <= this.#now) return this.#watch.decidedBy(to) > this.#now ? undefined : false;
    return this.#watch.decidedBy(from) > this.#now ? undefined : true;
  }

  #seeKey(before: ApiKey | undefined, after: ApiKey | undefined): void {
    const { metadata, spec } = (after ?? before) as ApiKey;
    const { namespace = '', name } = metadata;
    const owner = createdByKey(name);
    const now = this.#now;
    const isOver = after === undefined || spec.revoked;
    const known = this.#keys.get(spec.hash) ?? { namespace, from: now, to: Infinity };
    this.#keys.set(spec.hash, isOver ? { ...known, to: Math.min(known.to, now) } : known);
    const purse = this.#purses.get(namespace)?.get(owner);
    if (after === undefined) {
      // The last budget outlives the key, if somebody had heard of it.
      if (purse !== undefined && this.#watch.decidedBy(purse.from) > now) purse.isKnown = false;
      if (purse !== undefined) purse.from = now;
      return;
    }
    const max = maxIn(after.spec.limits?.budget);
    if (before === undefined || maxIn(before.spec.limits?.budget) !== max)
      this.#set(namespace, owner, { max, from: now, isKnown: true });
  }

  #seePolicy(before: TenantPolicy | undefined, after: TenantPolicy | undefined): void {
    const { spec } = (after ?? before) as TenantPolicy;
    if (spec.budget.costs.length === 0) return;
    const namespace = spec.namespaceLabels['kubernetes.io/metadata.name'] ?? '';
    const max = after && maxIn(after.spec.budget);
    if (before === undefined || maxIn(before.spec.budget) !== max)
      this.#set(namespace, TENANT, { max, from: this.#now, isKnown: true });
  }

  #set(namespace: string, owner: string, purse: Purse): void {
    const known = this.#purses.get(namespace) ?? new Map<string, Purse>();
    this.#purses.set(namespace, known.set(owner, purse));
  }

  #seeRecord({ metadata, spec }: UsageRecord, isGone: boolean): void {
    if (isGone || spec.adjustment !== undefined) this.#touchedAt.set(metadata.namespace ?? '', this.#now);
  }

  /** With a namespace go its keys and what they had left; what an operator gave the tenant stays. */
  #seeNamespace(before: KubeObject | undefined, after: KubeObject | undefined): void {
    const { name, deletionTimestamp } = (after ?? before)?.metadata ?? { name: '' };
    this.#touchedAt.set(name, this.#now);
    if (after !== undefined && deletionTimestamp === undefined) return;
    for (const key of this.#keys.values()) if (key.namespace === name) key.to = Math.min(key.to, this.#now);
    const purses = this.#purses.get(name);
    for (const owner of purses?.keys() ?? []) if (owner !== TENANT) purses?.delete(owner);
  }

  #seeInstance(before: GpuInstance | undefined, after: GpuInstance | undefined): void {
    if (after?.status === undefined || after.metadata.deletionTimestamp !== undefined) return;
    const { claim, ending } = after.status;
    if (claim !== undefined && before?.status?.claim === undefined) this.#mustAfford(after, claim);
    if (ending?.reason === 'BudgetSpent' && before?.status?.ending?.reason !== 'BudgetSpent') this.#mustBeSpent(after);
  }

  /** Owners of the budgets that these draw on, with what they may spend; undefined where not all of it is known. */
  #drawnOn(
    namespace: string,
    { createdBy, startedBy }: Payers,
  ): { owner: string; max: number; from: number }[] | undefined {
    const owners = new Set([TENANT, createdBy ?? TENANT, startedBy ?? TENANT]);
    const found = [...owners].flatMap((owner) => {
      const purse = this.#purses.get(namespace)?.get(owner);
      return purse === undefined ? [] : [{ owner, ...purse }];
    });
    if (found.some(({ isKnown }) => !isKnown)) return undefined;
    return found.flatMap(({ owner, max, from }) => (max === undefined ? [] : [{ owner, max, from }]));
  }

  /** Whether everybody knew by a moment what a tenant may spend, and has spent. */
  #wasKnown(namespace: string, from: number, at: number): boolean {
    return this.#watch.decidedBy(Math.max(from, this.#touchedAt.get(namespace) ?? 0)) + MARGIN_MS < at;
  }

  /** Nobody gets a place whose first hour has no room beside what is spent, and what others have of their first hours. */
  #mustAfford({ metadata: { name, namespace = '' } }: GpuInstance, claim: Claim): void {
    // The write of a grant may be on its way for long.
    const at = Math.min(this.#now, Date.parse(claim.grantedAt));
    if (Number(claim.pricePerHour) === 0) return;
    for (const { owner, max, from } of this.#drawnOn(namespace, claim) ?? []) {
      const { promised } = this.#spent(namespace, owner);
      if (promised <= max + CLOSE || !this.#wasKnown(namespace, from, at)) continue;
      this.#watch.blame(
        10,
        `${name} gets a place for ${claim.pricePerHour} an hour, and ${namespace} ${owner} has promised ${promised.toFixed(4)} of ${max}`,
      );
    }
  }

  /** Nobody ends for a budget that has something left. */
  #mustBeSpent({ metadata: { name, namespace = '' }, status }: GpuInstance): void {
    const drawn = this.#drawnOn(namespace, status?.claim ?? {});
    if (drawn === undefined) return;
    const froms = [...(this.#purses.get(namespace)?.values() ?? [])].map(({ from }) => from);
    if (!this.#wasKnown(namespace, Math.max(0, ...froms), this.#now)) return;
    const isSpent = drawn.some(({ owner, max }) => this.#spent(namespace, owner).spent + max / 100 + CLOSE >= max);
    if (!isSpent) this.#watch.blame(9, `${name} ends for a budget that is not spent: ${status?.ending?.message}`);
  }

  /** What an owner has spent in this month, and what is promised with it: at least the first hour of each start. */
  #spent(namespace: string, owner: string): { spent: number; promised: number; perHour: number } {
    const now = this.#now;
    const month = monthAt(now);
    let [spent, ahead, perHour] = [0, 0, 0];
    const recorded = new Set<string>();
    const add = (one: Payers & Pick<Interval, 'from' | 'to' | 'cost' | 'silences'>): void => {
      if (!isPaidBy(one, owner)) return;
      const [from, to] = [Date.parse(one.from), Date.parse(one.to)];
      const whole = msIn(from, to, { from, to }, one.silences);
      spent += whole > 0 ? (Number(one.cost) * msIn(from, to, month, one.silences)) / whole : Number(one.cost);
    };
    for (const { spec } of this.#api.list<UsageRecord>(USAGE_RECORDS, namespace)) {
      const { adjustment, instanceUid, intervals = [], cost, endedAt } = spec;
      if (adjustment !== undefined) {
        const isNow = msIn(Date.parse(endedAt), Date.parse(endedAt) + 1, month) > 0;
        if (isNow && owner === TENANT) spent += adjustment.type === 'Credit' ? -Number(cost) : Number(cost);
        continue;
      }
      for (const interval of intervals) {
        recorded.add(`${instanceUid} ${interval.start}`);
        add(interval);
      }
    }
    for (const { metadata, status = {} } of this.#api.list<GpuInstance>(GPU_INSTANCES, namespace)) {
      for (const interval of status.intervals ?? [])
        if (!recorded.has(`${metadata.uid} ${interval.start}`)) add(interval);
      const { claim, ending, silences } = status;
      if (claim === undefined || !isPaidBy(claim, owner)) continue;
      const price = Number(claim.pricePerHour);
      const from = meteredFrom(status) ?? Infinity;
      const end = ending === undefined ? now : Date.parse(ending.finishedAt ?? ending.at);
      const used = (msIn(from, end, month, silences) / HOUR_MS) * price;
      spent += used;
      if (ending !== undefined) continue;
      ahead += Math.max(0, (Math.min(HOUR_MS, month.to - now) / HOUR_MS) * price - used);
      perHour += price;
    }
    return { spent, promised: spent + ahead, perHour };
  }

  /** When nothing was broken or asked for some time: what is counted is what is billed, and what is spent is not used. */
  judgeAtRest(): void {
    for (const [namespace, purses] of this.#purses) {
      const space = this.#api.find(NAMESPACES, { name: namespace });
      if (space === undefined || space.metadata.deletionTimestamp !== undefined) continue;
      for (const [owner, { max, from, isKnown }] of purses) {
        const settled = isKnown && this.#wasKnown(namespace, from, this.#now - LOOK_MS);
        if (max !== undefined && settled) this.#mustCount(namespace, owner, max);
      }
      for (const instance of this.#api.list<GpuInstance>(GPU_INSTANCES, namespace)) this.#mustDraw(namespace, instance);
    }
  }

  /** What a status says of a budget is what the bills say. */
  #mustCount(namespace: string, owner: string, max: number): void {
    const counted = this.#countedOf(namespace, owner);
    const { spent, perHour } = this.#spent(namespace, owner);
    const line = counted?.lines.find(({ unit }) => unit === 'USD');
    // What is remembered of a key that is gone may have been left out with its last instance.
    if (counted === undefined && spent === 0) return;
    const said = Number(line?.spent ?? Number.NaN);
    const near = max / 100 + (perHour * LOOK_MS) / HOUR_MS + CLOSE;
    // It is written with each whole per cent, and below nothing there is none.
    if (Number(line?.max) !== max || !(Math.abs(Math.max(0, said) - Math.max(0, spent)) <= near))
      this.#watch.blame(
        3,
        `the budget of ${namespace} ${owner} counts ${line?.spent} of ${line?.max}, and bills have ${spent.toFixed(4)} of ${max}`,
      );
  }

  #countedOf(namespace: string, owner: string): BudgetStatus | undefined {
    const { status } = this.#api.find(TENANT_LIMITS, { namespace, name: TENANT_LIMIT_NAME }) ?? {};
    const name = creatingKey(owner);
    if (name === undefined) return status?.budget;
    const key = this.#api.find(API_KEYS, { namespace, name });
    return key === undefined ? status?.keyBudgets?.find((one) => one.name === name)?.used : key.status?.budget;
  }

  /** Nothing runs on a budget that is spent, and nobody waits for one that has room. */
  #mustDraw(namespace: string, instance: GpuInstance): void {
    const { metadata, status = {}, spec } = instance;
    const { claim, ending } = status;
    if (metadata.deletionTimestamp !== undefined) return;
    const isSilent = (): boolean =>
      this.#api.find(NODES, { name: claim?.node ?? '' })?.status?.conditions?.find(({ type }) => type === 'Ready')
        ?.status !== 'True';
    if (claim !== undefined) {
      if (ending !== undefined || Number(claim.pricePerHour) === 0 || isSilent()) return;
      for (const { owner, max, from } of this.#drawnOn(namespace, claim) ?? []) {
        const { spent, perHour } = this.#spent(namespace, owner);
        const isLong = this.#wasKnown(namespace, from, this.#now - LOOK_MS);
        if (isLong && spent > max + CLOSE + (perHour * LOOK_MS) / HOUR_MS)
          this.#watch.blame(
            10,
            `${metadata.name} runs, and ${namespace} ${owner} has spent ${spent.toFixed(4)} of ${max}`,
          );
      }
      return;
    }
    const { message } = instanceState(instance);
    if (!isOverBudget(instance) || spec.powerState === 'Stopped' || this.#priceOf(spec) === undefined) return;
    if (this.hasRoomFor(instance))
      this.#watch.blame(5, `${metadata.name} waits for a budget that has room: ${message}`);
  }

  /** Whether each budget that a start would draw on has had room for its first hour for long. */
  hasRoomFor({ metadata, spec }: GpuInstance): boolean {
    const { namespace = '', annotations = {} } = metadata;
    const drawn = this.#drawnOn(namespace, { createdBy: annotations['berth.dev/created-by'] });
    if (drawn?.length === 0) return true;
    const price = this.#priceOf(spec);
    if (drawn === undefined || price === undefined) return false;
    const hour = price * (Math.min(HOUR_MS, monthAt(this.#now).to - this.#now) / HOUR_MS);
    return drawn.every(
      ({ owner, max, from }) =>
        this.#wasKnown(namespace, from, this.#now - LOOK_MS) &&
        this.#spent(namespace, owner).promised + hour + CLOSE <= max,
    );
  }

  #priceOf({ gpu, type }: GpuInstance['spec']): number | undefined {
    if (gpu?.product === undefined) return undefined;
    // Pools have one product each.
    const prices = this.#api
      .list<GpuPool>(GPU_POOLS)
      .flatMap(({ metadata, spec }) =>
        metadata.name.includes(gpu.product === 'NVIDIA-H100' ? '-0' : '-1') ? spec.prices : [],
      );
    const all = prices.map((one) => Number(type === 'Interruptible' ? one.interruptible : one.onDemand));
    return all.length === 0 ? undefined : Math.max(...all) * gpu.count;
  }
}
