import { randomBytes } from 'node:crypto';
import type { Inventory } from '../../../inventory/inventory.ts';
import type { Offer } from '../../../inventory/offers.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { StreamEvent } from '../../interface/events/event-stream.ts';
import { Ring } from '../../interface/events/ring.ts';
import { byPrice, toOfferRecord } from './record.ts';

const REMEMBERED = 1024;
/** Every change of a pod can change an offer. Changes within this time are compared once. */
const BATCH_MS = 100;

export interface OfferEventsDeps {
  offers: Inventory;
  clock: Clock;
  defaultImage: string;
}

/** Changes of offers. Offers have no version, so ids count in this process: another replica sends everything anew. */
export class OfferEvents {
  readonly #deps: OfferEventsDeps;
  readonly #epoch = randomBytes(6).toString('base64url');
  readonly #ring = new Ring<{ sequence: number; event: StreamEvent }>(REMEMBERED);
  readonly #followers = new Set<(event: StreamEvent) => void>();
  readonly #unsubscribe: () => void;
  /** The inventory has the same list until something changes, and so has this one its texts. */
  #shown: readonly Offer[] | undefined;
  #texts: ReadonlyMap<number, string> = new Map();
  /** The texts at the last comparison. */
  #known: ReadonlyMap<number, string>;
  #sequence = 0;
  #cancel: (() => void) | undefined;

  constructor(deps: OfferEventsDeps) {
    this.#deps = deps;
    this.#known = this.current();
    this.#unsubscribe = deps.offers.onChange(() => {
      // Without followers the next one to come compares.
      if (this.#followers.size > 0) this.#cancel ??= deps.clock.setTimeout(() => this.#compare(), BATCH_MS);
    });
  }

  /** As InstanceEvents.follow, for all offers. */
  follow(lastId: string | undefined, send: (event: StreamEvent) => void): () => void {
    this.#compare();
    const missed = lastId === undefined ? undefined : this.#since(lastId);
    if (missed === undefined) {
      const data = `{"object":"list","data":[${[...this.#known.values()].join(',')}]}`;
      send({ type: lastId === undefined ? 'snapshot' : 'resync', id: `${this.#epoch}.${this.#sequence}`, data });
    }
    for (const event of missed ?? []) send(event);
    this.#followers.add(send);
    return () => this.#followers.delete(send);
  }

  close(): void {
    this.#unsubscribe();
    this.#cancel?.();
  }

  /** All offers as JSON by id, cheapest first. They are written once for each state of the fleet, whoever asks. */
  current(): ReadonlyMap<number, string> {
    const { offers, defaultImage } = this.#deps;
    const now = offers.offers();
    if (now === this.#shown) return this.#texts;
    const sorted = now.toSorted(byPrice);
    this.#texts = new Map(sorted.map((offer) => [offer.id, JSON.stringify(toOfferRecord(offer, defaultImage))]));
    this.#shown = now;
    return this.#texts;
  }

  #compare(): void {
    this.#cancel = undefined;
    const current = this.current();
    if (current === this.#known) return;
    for (const [id, json] of current) if (this.#known.get(id) !== json) this.#publish('offer', json);
    for (const id of this.#known.keys()) {
      if (!current.has(id)) this.#publish('deleted', JSON.stringify({ id, object: 'offer', deleted: true }));
    }
    this.#known = current;
  }

  #publish(type: StreamEvent['type'], data: string): void {
    this.#sequence += 1;
    const event = { type, id: `${this.#epoch}.${this.#sequence}`, data };
    this.#ring.push({ sequence: this.#sequence, event });
    for (const send of this.#followers) send(event);
  }

  /** The events after this one; undefined when some of them are forgotten, or the id is of another process. */
  #since(lastId: string): StreamEvent[] | undefined {
    const [epoch, text] = lastId.split('.');
    const last = Number(text);
    if (epoch !== this.#epoch || !Number.isInteger(last) || last > this.#sequence) return undefined;
    if (last < (this.#ring.forgotten?.sequence ?? 0)) return undefined;
    const entries = this.#ring.entries().filter(({ sequence }) => sequence > last);
    return entries.map(({ event }) => event);
  }
}
