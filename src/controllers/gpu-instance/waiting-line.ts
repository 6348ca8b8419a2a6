import { compareText } from '../../lib/compare.ts';
import type { PlaceRequest } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';

interface Waiter {
  key: string;
  request: PlaceRequest;
  /** Sorts on-demand before interruptible, then older before younger. */
  rank: string;
  /** Equal for requests that the same places serve. */
  signature: string;
  mayFail: boolean;
}

function rankOf({ metadata, spec }: GpuInstance): string {
  const { creationTimestamp = '', namespace = '', name } = metadata;
  return `${spec.type === 'OnDemand' ? 0 : 1}/${creationTimestamp}/${namespace}/${name}`;
}

/** Which of two instances is served first. */
export function compareRanks(a: GpuInstance, b: GpuInstance): number {
  return compareText(rankOf(a), rankOf(b));
}

function signatureOf(request: PlaceRequest): string {
  return JSON.stringify({ ...request, avoid: [...request.avoid], only: request.only && [...request.only] });
}

/** Instances that wait for a place, the oldest first. One that needs more than is free does not hold up the others. */
export class WaitingLine {
  readonly #inventory: Pick<Inventory, 'grant' | 'preempt'>;
  readonly #waiters = new Map<string, Waiter>();

  constructor(inventory: Pick<Inventory, 'grant' | 'preempt'>) {
    this.#inventory = inventory;
  }

  add(key: string, instance: GpuInstance, request: PlaceRequest): void {
    const mayFail = instance.spec.onNoCapacity === 'Fail';
    this.#waiters.set(key, { key, request, rank: rankOf(instance), signature: signatureOf(request), mayFail });
  }

  remove(key: string): void {
    this.#waiters.delete(key);
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** The first instance in line before this one that a free place would serve; undefined when it is this one's turn. */
  before(key: string, instance: GpuInstance): string | undefined {
    if (this.#waiters.size === 0) return undefined;
    const rank = rankOf(instance);
    return this.#inOrder(
      (request) => this.#isFree(request),
      (waiter) => waiter.key !== key && waiter.rank < rank,
    )[0];
  }

  /** The instances that a free place would serve, in order. */
  ready(): string[] {
    return this.#inOrder((request) => this.#isFree(request));
  }

  /** The on-demand instances that more preemptions would make room for, in order. */
  preempting(): string[] {
    return this.#inOrder((request) => {
      if (request.type !== 'OnDemand') return false;
      return (this.#inventory.preempt(request)?.victims.length ?? 0) > 0;
    });
  }

  /** The instances with onNoCapacity Fail: they fail as soon as nothing is about to become free. */
  failFast(): string[] {
    return [...this.#waiters.values()].filter(({ mayFail }) => mayFail).map(({ key }) => key);
  }

  #isFree(request: PlaceRequest): boolean {
    return 'place' in this.#inventory.grant(request);
  }

  /** Equal requests are tried once. */
  #inOrder(fits: (request: PlaceRequest) => boolean, matches: (waiter: Waiter) => boolean = () => true): string[] {
    const tried = new Map<string, boolean>();
    const found: Waiter[] = [];
    for (const waiter of this.#waiters.values()) {
      if (!matches(waiter)) continue;
      const known = tried.get(waiter.signature) ?? fits(waiter.request);
      tried.set(waiter.signature, known);
      if (known) found.push(waiter);
    }
    return found.toSorted((a, b) => compareText(a.rank, b.rank)).map(({ key }) => key);
  }
}
