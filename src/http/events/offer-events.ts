import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { byPrice, toOfferRecord } from '../records/offer-record.ts';
import type { StreamEvent } from './event-stream.ts';
import { createRing } from './ring.ts';

const REMEMBERED = 1024;
/** Offers change with every pod; within this time changes become one. */
const SETTLE_MS = 100;

export interface OfferEvents {
  follow(lastId: string | undefined, send: (event: StreamEvent) => void): () => void;
  close(): void;
}

export interface OfferEventsDeps {
  offers: Pick<Inventory, 'offers' | 'onChange'>;
  clock: Clock;
  defaultImage: string;
}

/**
 * Changes of offers as events. Offers are computed and have no version in the cluster, so the ids count within this
 * process; a client that comes from another one gets everything anew.
 */
export function createOfferEvents({ offers, clock, defaultImage }: OfferEventsDeps): OfferEvents {
  const epoch = randomBytes(6).toString('base64url');
  const ring = createRing<{ sequence: number; event: StreamEvent }>(REMEMBERED);
  const followers = new Set<(event: StreamEvent) => void>();
  let known = read();
  let sequence = 0;
  let cancel: (() => void) | undefined;

  function read(): Map<number, string> {
    const sorted = offers.offers().toSorted(byPrice);
    return new Map(sorted.map((offer) => [offer.id, JSON.stringify(toOfferRecord(offer, defaultImage))]));
  }

  function publish(type: StreamEvent['type'], data: string): void {
    sequence += 1;
    const event = { type, id: `${epoch}.${sequence}`, data };
    ring.push({ sequence, event });
    for (const send of followers) send(event);
  }

  function compare(): void {
    cancel = undefined;
    const now = read();
    for (const [id, json] of now) if (known.get(id) !== json) publish('offer', json);
    for (const id of known.keys()) {
      if (!now.has(id)) publish('deleted', JSON.stringify({ id, object: 'offer', deleted: true }));
    }
    known = now;
  }

  const unsubscribe = offers.onChange(() => {
    // What nobody follows is compared when somebody does.
    if (followers.size > 0) cancel ??= clock.setTimeout(compare, SETTLE_MS);
  });

  function missed(lastId: string): StreamEvent[] | undefined {
    const [from, text] = lastId.split('.');
    const last = Number(text);
    if (from !== epoch || !Number.isInteger(last) || last > sequence) return undefined;
    if (last < (ring.forgotten?.sequence ?? 0)) return undefined;
    return ring
      .entries()
      .filter((entry) => entry.sequence > last)
      .map(({ event }) => event);
  }

  return {
    follow(lastId, send) {
      compare();
      const events = lastId === undefined ? undefined : missed(lastId);
      if (events === undefined) {
        const data = `{"object":"list","data":[${[...known.values()].join(',')}]}`;
        send({ type: lastId === undefined ? 'snapshot' : 'resync', id: `${epoch}.${sequence}`, data });
      }
      for (const event of events ?? []) send(event);
      followers.add(send);
      return () => followers.delete(send);
    },
    close() {
      unsubscribe();
      cancel?.();
    },
  };
}
