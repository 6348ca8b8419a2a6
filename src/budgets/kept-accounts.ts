import { type Amount, NO_AMOUNT } from '../ledger/amount.ts';
import { billedUid, endedBills } from '../ledger/bills.ts';
import { billedMs } from '../ledger/interval.ts';
import type { Month } from '../ledger/month.ts';
import type { Claim } from '../resources/instances/claim.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { type Account, HOUR_MS, type Meter, meterOf } from './accounts.ts';
import { amountIn, ownersOf, type RecordedSpending, Spending } from './spending.ts';

/** An instance with its claim, also while no cache shows that. */
export interface Holder {
  instance: GpuInstance;
  claim: Claim | undefined;
}

/** What the accounts of a tenant are computed from. */
export interface AccountInput {
  namespace: string;
  /** Every instance of the tenant. Of one that did not change, the same object. */
  holders: Iterable<Holder>;
  recorded: RecordedSpending;
  /** Whether a usage record has this start of an instance. */
  isRecorded: (uid: string, start: number) => boolean;
  /** Another number after every change of what `isRecorded` says of the tenant. */
  revision: number;
  /** Milliseconds since the epoch, in the month of `recorded`. */
  now: number;
}

/** A claim that is held: what it costs grows with time. */
interface Running {
  claim: Claim;
  meter: Meter;
  perHour: Amount;
  /** How long it is billed for until a moment, in milliseconds. */
  msUntil: (moment: number) => number;
  /** What of it came before the month. */
  before: Amount;
}

/** What an instance adds to the accounts of its tenant. */
interface Part {
  claim: Claim | undefined;
  /** What does not change any more, for whom. */
  ended: { owners: readonly string[]; amount: Amount; currency: string }[];
  running: Running | undefined;
  /** The last count that met it. */
  seen: number;
}

function rest(whole: bigint, used: bigint): bigint {
  return whole > used ? whole - used : 0n;
}

function minus(left: Amount, right: Amount): Amount {
  return { gpuMs: left.gpuMs - right.gpuMs, cost: left.cost - right.cost };
}

function partOf({ instance, claim }: Holder, month: Month, isRecorded: AccountInput['isRecorded']): Omit<Part, 'seen'> {
  const { status = {} } = instance;
  const ended: Part['ended'] = [];
  for (const billed of endedBills(instance)) {
    const { start, currency } = billed.interval;
    if (isRecorded(billed.uid, start)) continue;
    ended.push({ owners: ownersOf(billed.interval), amount: amountIn(month, billed), currency });
  }
  // While no cache shows the claim, the ending is that of the start before.
  const isEnding = status.claim !== undefined && status.ending !== undefined;
  if (claim === undefined || isEnding) return { claim, ended, running: undefined };
  const meter = meterOf(claim);
  const isBilled = status.claim !== undefined && !isRecorded(billedUid(instance), status.incarnation ?? 0);
  const msUntil = (moment: number): number => (isBilled ? billedMs(status, moment) : 0);
  const before = meter(msUntil(month.from));
  return { claim, ended, running: { claim, meter, perHour: meter(HOUR_MS), msUntil, before } };
}

/**
 * The accounts of one tenant: what usage records say, and what instances say of starts that no record has. A start that
 * both have counts once, as in a bill. What has ended is kept as a sum and changed by the instances that changed; what
 * runs is looked at each time, because its bill grows with the clock.
 */
export class KeptAccounts {
  #month: Month | undefined;
  #revision = 0;
  #counts = 0;
  readonly #parts = new Map<GpuInstance, Part>();
  /** What ended starts cost, by owner. */
  readonly #ended = new Map<string, Spending>();

  /** The accounts of some owners. */
  of(owners: Iterable<string>, input: AccountInput): Map<string, Account> {
    const { namespace, recorded, now } = input;
    const running = this.#refresh(input);
    const accounts = new Map<string, Account>();
    for (const owner of owners) {
      const spent = new Spending();
      for (const known of [recorded.of(namespace, owner), this.#ended.get(owner)])
        if (known !== undefined) spent.addAll(known);
      accounts.set(owner, { spent, reserved: new Spending(), perHour: new Spending() });
    }
    for (const one of running) addRunning(accounts, one, recorded.month, now);
    return accounts;
  }

  /** Brings the sums up to date. Returns what runs. */
  #refresh({ holders, recorded: { month }, revision, isRecorded }: AccountInput): Running[] {
    if (this.#month?.from !== month.from || this.#revision !== revision) {
      this.#parts.clear();
      this.#ended.clear();
    }
    this.#month = month;
    this.#revision = revision;
    this.#counts += 1;
    const running: Running[] = [];
    let met = 0;
    for (const holder of holders) {
      met += 1;
      let part = this.#parts.get(holder.instance);
      if (part === undefined || part.claim !== holder.claim) {
        if (part !== undefined) this.#add(part, -1n);
        part = { ...partOf(holder, month, isRecorded), seen: 0 };
        this.#parts.set(holder.instance, part);
        this.#add(part, 1n);
      }
      part.seen = this.#counts;
      if (part.running !== undefined) running.push(part.running);
    }
    if (this.#parts.size > met) this.#dropGone();
    return running;
  }

  #dropGone(): void {
    for (const [instance, part] of this.#parts) {
      if (part.seen === this.#counts) continue;
      this.#parts.delete(instance);
      this.#add(part, -1n);
    }
  }

  #add({ ended }: Part, sign: bigint): void {
    for (const { owners, amount, currency } of ended) {
      const signed = { gpuMs: amount.gpuMs * sign, cost: amount.cost * sign };
      for (const owner of owners) {
        const sum = this.#ended.get(owner) ?? new Spending();
        this.#ended.set(owner, sum.add(signed, currency));
      }
    }
  }
}

function addRunning(accounts: ReadonlyMap<string, Account>, running: Running, month: Month, now: number): void {
  const { claim, meter, perHour, msUntil, before } = running;
  const owners = ownersOf(claim).flatMap((owner) => accounts.get(owner) ?? []);
  if (owners.length === 0) return;
  const ms = msUntil(now);
  const used = minus(meter(ms), before);
  // Most have run for longer than what is set aside.
  const isPast = before.gpuMs === 0n && ms >= HOUR_MS;
  const first = isPast ? NO_AMOUNT : meter(Math.min(HOUR_MS, month.to - now));
  const reserved = { gpuMs: rest(first.gpuMs, used.gpuMs), cost: rest(first.cost, used.cost) };
  for (const account of owners) {
    account.spent.add(used, claim.currency);
    account.reserved.add(reserved, claim.currency);
    account.perHour.add(perHour, claim.currency);
  }
}
