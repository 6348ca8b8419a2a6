import { compareText } from '../../lib/compare.ts';
import { countBefore } from '../../caches/line-order.ts';
import type { Place, PlaceRequest, Reservation, ReservedOn } from '../../inventory/grant.ts';
import { TwoKeyMap } from '../../inventory/two-key-map.ts';

/** The place that an instance waits for. */
export interface ReservedPlace extends Reservation, Pick<Place, 'node' | 'offerClass'> {
  /** The instance in the waiting line, its rank there, and what it asks for. */
  key: string;
  rank: string;
  request: PlaceRequest;
  /** Whether some were told to go for it, whatever the caches show by now. */
  isTold: boolean;
  /** Until when the place is waited for, monotonic milliseconds. */
  until: number;
}

/**
 * The places that others leave for waiting instances, one for each. As with the nominated pods of kube-scheduler, such a
 * place is taken for all who are behind in the line, and not for those ahead.
 */
export class ReservedPlaces {
  readonly #places = new TwoKeyMap<ReservedPlace>();
  /** In order; undefined after a change. */
  #ranks: readonly string[] | undefined;
  #staleAt = Number.POSITIVE_INFINITY;
  #version = 0;

  /** Another number after every change. */
  get version(): number {
    return this.#version;
  }

  /** When the next place is no longer waited for, monotonic milliseconds; Infinity for never. */
  get staleAt(): number {
    return this.#staleAt;
  }

  get(key: string): ReservedPlace | undefined {
    return this.#places.get(key);
  }

  /** The places that are reserved on a node, the first of the line first. */
  on(node: string): ReservedPlace[] {
    return [...this.#places.of(node)].toSorted((a, b) => compareText(a.rank, b.rank));
  }

  /** The places for the instances of a namespace. */
  in(namespace: string): ReservedPlace[] {
    const found: ReservedPlace[] = [];
    // Every claim asks, and there may be as many as there are GPUs.
    for (const [key, place] of this.#places.entries()) if (key.startsWith(`${namespace}/`)) found.push(place);
    return found;
  }

  set(place: ReservedPlace): void {
    this.#places.set(place.key, place.node, place);
    this.#staleAt = Math.min(this.#staleAt, place.until);
    this.#changed();
  }

  delete(key: string): void {
    if (this.#places.get(key) === undefined) return;
    this.#places.set(key, undefined, undefined);
    this.#changed();
  }

  /** Gives up the places that were waited for long enough. Returns the keys of the instances that had them. */
  expire(now: number): string[] {
    if (now < this.#staleAt) return [];
    const all = [...this.#places.entries()];
    const over = all.filter(([, { until }]) => until <= now);
    for (const [key] of over) this.#places.set(key, undefined, undefined);
    this.#staleAt = Math.min(...all.map(([, { until }]) => until).filter((until) => until > now));
    if (over.length > 0) this.#changed();
    return over.map(([key]) => key);
  }

  /** How many places are reserved for instances ahead of a rank. */
  countAhead(rank: string): number {
    this.#ranks ??= [...this.#places.entries()].map(([, place]) => place.rank).toSorted();
    const ranks = this.#ranks;
    return countBefore(ranks.length, (index) => ranks[index], rank);
  }

  hasBehind(rank: string): boolean {
    return this.countAhead(`${rank}~`) < (this.#ranks?.length ?? 0);
  }

  /** The places of all but one instance. */
  besides(key: string): ReservedOn {
    return (node) => [...this.#places.of(node)].filter((place) => place.key !== key);
  }

  /** What is taken for an instance of this rank: the places of those ahead. */
  ahead(rank: string): ReservedOn {
    return (node) => [...this.#places.of(node)].filter((place) => place.rank < rank);
  }

  #changed(): void {
    this.#version += 1;
    this.#ranks = undefined;
  }
}
