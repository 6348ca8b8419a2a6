import type { Priority } from '../../resources/api-key.ts';

/** What calls of one priority get of the turns of their tenant, beside those of the others. */
const WEIGHT: Readonly<Record<Priority, number>> = { low: 1, normal: 4, high: 16 };

/** What somebody has had of what all share, in virtual time: the line serves first who has had the least. */
interface Account {
  had: number;
}

/** Calls of one tenant and priority, in the order in which they came. */
interface Lane<T> extends Account {
  readonly weight: number;
  readonly entries: Entry<T>[];
}

interface Tenant<T> extends Account {
  readonly name: string;
  readonly lanes: Map<Priority, Lane<T>>;
  /** How far its lanes are: what the lane had that was served last. */
  at: number;
  count: number;
  /** Calls of which nobody knows yet what they took. */
  open: number;
}

/** One who waits. */
export interface Entry<T> {
  readonly tenant: string;
  readonly priority: Priority;
  readonly item: T;
}

/** What one who was served is counted with, until the real amount is known. */
export interface Charge {
  correct(amount: number): void;
}

/**
 * A line in which tenants take turns by what they take, and not by how often they ask: the tenant goes first that has had
 * the least, whoever came first. A tenant that comes after others begins where the line is, so nobody saves turns. The
 * priority of a call divides the turns of its tenant and nobody else's (virtual token counter: Sheng et al., OSDI 2024).
 */
export class FairLine<T> {
  readonly #tenants = new Map<string, Tenant<T>>();
  /** How far the line is: what the tenant had that was served last. */
  #at = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  join(tenant: string, priority: Priority, item: T): Entry<T> {
    const owner = this.#tenantOf(tenant);
    const lane = laneOf(owner, priority);
    if (owner.count === 0) owner.had = Math.max(owner.had, this.#at);
    if (lane.entries.length === 0) lane.had = Math.max(lane.had, owner.at);
    const entry = { tenant, priority, item };
    lane.entries.push(entry);
    owner.count += 1;
    this.#size += 1;
    return entry;
  }

  /** It waits no more. Does nothing when it has left, or was served. */
  leave(entry: Entry<T>): void {
    const { tenant, priority } = entry;
    const owner = this.#tenants.get(tenant);
    const entries = owner?.lanes.get(priority)?.entries;
    const index = entries?.indexOf(entry) ?? -1;
    if (owner === undefined || index === -1) return;
    entries?.splice(index, 1);
    owner.count -= 1;
    this.#size -= 1;
  }

  /** It gets what it waited for, of which it is going to take about this much. */
  serve(entry: Entry<T>, estimate: number): Charge {
    const owner = this.#tenantOf(entry.tenant);
    const lane = laneOf(owner, entry.priority);
    this.#at = Math.max(this.#at, owner.had);
    owner.open += 1;
    owner.at = Math.max(owner.at, lane.had);
    this.leave(entry);
    const add = (amount: number): void => {
      owner.had += amount;
      lane.had += amount / lane.weight;
    };
    add(estimate);
    this.#forget();
    let counted = estimate;
    let isOpen = true;
    return {
      correct(amount) {
        if (isOpen) owner.open -= 1;
        isOpen = false;
        add(amount - counted);
        counted = amount;
      },
    };
  }

  /** All who wait, in the order in which they are to be served. */
  *inOrder(): Generator<Entry<T>> {
    const waiting = [...this.#tenants.values()].filter(({ count }) => count > 0).toSorted(byHad);
    // Some may leave meanwhile.
    for (const { lanes } of waiting)
      for (const { entries } of [...lanes.values()].toSorted(byHad)) yield* entries.slice();
  }

  /** How many are served before one of the tenant and priority that comes now, as far as the line knows. */
  ahead(tenant: string, priority: Priority): number {
    const own = ownAhead(this.#tenants.get(tenant)?.lanes ?? NO_LANES, priority);
    let ahead = own;
    for (const { name, count } of this.#tenants.values()) if (name !== tenant) ahead += Math.min(count, own + 1);
    return ahead;
  }

  #tenantOf(name: string): Tenant<T> {
    let owner = this.#tenants.get(name);
    if (owner === undefined)
      this.#tenants.set(name, (owner = { name, had: this.#at, at: 0, count: 0, open: 0, lanes: new Map() }));
    return owner;
  }

  /** Who waits for nothing, and has had no more than the line, says nothing once it is known what its calls took. */
  #forget(): void {
    for (const [name, { had, count, open }] of this.#tenants)
      if (count === 0 && open === 0 && had <= this.#at) this.#tenants.delete(name);
  }
}

function laneOf<T>({ lanes, at }: Tenant<T>, priority: Priority): Lane<T> {
  let lane = lanes.get(priority);
  if (lane === undefined) lanes.set(priority, (lane = { had: at, weight: WEIGHT[priority], entries: [] }));
  return lane;
}

const NO_LANES: ReadonlyMap<Priority, Lane<unknown>> = new Map();

/** Of the calls of a tenant itself: all of this priority, and those of another as often as these have turns. */
function ownAhead(lanes: ReadonlyMap<Priority, Lane<unknown>>, priority: Priority): number {
  const same = lanes.get(priority)?.entries.length ?? 0;
  let ahead = same;
  for (const [other, { weight, entries }] of lanes)
    if (other !== priority) ahead += Math.min(entries.length, Math.ceil(((same + 1) * weight) / WEIGHT[priority]));
  return ahead;
}

function byHad(a: Account, b: Account): number {
  return a.had - b.had;
}
