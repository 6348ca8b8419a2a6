import type { Clock } from '../../lib/clock.ts';
import type { Holding, SharedHoldings } from '../../runtime/counter.ts';

/** Milliseconds after which others hear again what is held. Valkey forgets it some times later. */
const NOTE_MS = 5_000;

/** What this replica holds of one budget. Undefined for a budget that is gone. */
type Held = () => Pick<Holding, 'held' | 'counted' | 'max'> | undefined;

export interface ReplicaHoldsDeps {
  /** Undefined without Valkey. */
  holdings: SharedHoldings | undefined;
  clock: Pick<Clock, 'setTimeout'>;
}

/**
 * Tells the other replicas what this one holds of budgets, and asks whether all together have room. While nobody can be asked,
 * the bound of each replica is what remains.
 */
export class ReplicaHolds {
  readonly #deps: ReplicaHoldsDeps;
  /** Budgets of which the others know that something is held, by name. */
  readonly #noted = new Map<string, Held>();
  /** Names that are being noted, and whether they have changed since. */
  readonly #noting = new Map<string, boolean>();
  #cancel: (() => void) | undefined;

  constructor(deps: ReplicaHoldsDeps) {
    this.#deps = deps;
  }

  /** Resolves with what others hold, where all together have no room for a call of which this replica holds the cost. */
  async refusal(name: string, held: Held, call: Pick<Holding, 'more' | 'isFirst'>): Promise<bigint | undefined> {
    const { holdings, clock } = this.#deps;
    const now = held();
    if (holdings === undefined || now === undefined) return undefined;
    this.#noted.set(name, held);
    this.#cancel ??= clock.setTimeout(this.#noteAll, NOTE_MS);
    const own = now.held > call.more ? now.held - call.more : 0n;
    try {
      const { fits, others } = await holdings.note(name, { ...now, ...call, held: own });
      return fits ? undefined : others;
    } catch {
      return undefined;
    }
  }

  /** What is held of a budget has changed. One note is under way at a time, and has what changed meanwhile after it. */
  changed(name: string): void {
    if (!this.#noted.has(name)) return;
    const isNoting = this.#noting.has(name);
    this.#noting.set(name, isNoting);
    if (!isNoting) void this.#note(name);
  }

  close(): void {
    this.#cancel?.();
  }

  async #note(name: string): Promise<void> {
    const noted = this.#noted.get(name)?.();
    const note = noted && this.#deps.holdings?.note(name, { ...noted, more: 0n, isFirst: false });
    await note?.catch(() => undefined);
    const isChanged = this.#noting.get(name);
    this.#noting.delete(name);
    if (isChanged) this.changed(name);
    else if (isNothing(noted) && isNothing(this.#noted.get(name)?.())) this.#noted.delete(name);
  }

  readonly #noteAll = (): void => {
    for (const name of this.#noted.keys()) this.changed(name);
    this.#cancel = this.#noted.size === 0 ? undefined : this.#deps.clock.setTimeout(this.#noteAll, NOTE_MS);
  };
}

function isNothing(holding: ReturnType<Held>): boolean {
  return holding === undefined || holding.held === 0n;
}
