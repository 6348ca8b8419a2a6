import type { PlaceRequest } from '../../inventory/grant.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';

interface Waiter {
  key: string;
  request: PlaceRequest;
  /** On-demand before interruptible, then first come, first served. */
  rank: string;
  /** The same for requests that the same places serve. */
  signature: string;
  mayFail: boolean;
}

function rankOf({ metadata, spec }: GpuInstance): string {
  const { creationTimestamp = '', namespace = '', name } = metadata;
  return `${spec.type === 'OnDemand' ? 0 : 1}/${creationTimestamp}/${namespace}/${name}`;
}

function signatureOf(request: PlaceRequest): string {
  return JSON.stringify({ ...request, avoid: [...request.avoid], only: request.only && [...request.only] });
}

/**
 * The instances that wait for a place. Whoever waits longer is served before whoever asks now; one that needs more than
 * is free does not hold up those that need less.
 */
export class WaitingLine {
  readonly #inventory: Pick<Inventory, 'grant'>;
  readonly #waiters = new Map<string, Waiter>();

  constructor(inventory: Pick<Inventory, 'grant'>) {
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

  /** The first in line before `instance` whom something free would serve; undefined when it is this one's turn. */
  before(key: string, instance: GpuInstance): string | undefined {
    if (this.#waiters.size === 0) return undefined;
    const rank = rankOf(instance);
    return this.#served((waiter) => waiter.key !== key && waiter.rank < rank)[0];
  }

  /** Those in line whom something free would serve, in their order. Requests that are alike are tried once. */
  ready(): string[] {
    return this.#served(() => true);
  }

  /** Those who would rather fail than wait: they are told as soon as nothing is about to come free. */
  impatient(): string[] {
    return [...this.#waiters.values()].filter(({ mayFail }) => mayFail).map(({ key }) => key);
  }

  #served(matches: (waiter: Waiter) => boolean): string[] {
    const tried = new Map<string, boolean>();
    const found: Waiter[] = [];
    for (const waiter of this.#waiters.values()) {
      if (!matches(waiter)) continue;
      let fits = tried.get(waiter.signature);
      if (fits === undefined) {
        fits = 'place' in this.#inventory.grant(waiter.request);
        tried.set(waiter.signature, fits);
      }
      if (fits) found.push(waiter);
    }
    return found.toSorted((a, b) => (a.rank < b.rank ? -1 : 1)).map(({ key }) => key);
  }
}
