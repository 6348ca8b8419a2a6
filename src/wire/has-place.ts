import type { OfferRecord } from './records.ts';

/** Whether a request gets a place of the offer now: interruptible instances end for one that is on demand. */
export function hasPlace(
  offer: Pick<OfferRecord, 'available' | 'available_by_preemption'>,
  interruptible = false,
): boolean {
  return offer.available > 0 || (!interruptible && offer.available_by_preemption > 0);
}
