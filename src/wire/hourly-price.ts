import type { FoundOffer } from './records.ts';

/** What an offer costs per hour, in its currency. */
export function hourlyPrice(
  { price_per_hour: price }: Pick<FoundOffer, 'price_per_hour'>,
  interruptible: boolean,
): string {
  return interruptible ? price.interruptible : price.on_demand;
}
