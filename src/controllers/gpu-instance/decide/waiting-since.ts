import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import { rentedOf } from '../../../resources/instances/rented.ts';
import { compareMoney } from '../../../resources/money.ts';
import type { Observed } from './observed.ts';

/** A creation has whole seconds. */
const SECOND_MS = 1000;

/**
 * Whether the owner of an instance that waits has named other GPUs, or pays more than what it waited with: else who asks
 * for a price at which nobody lets would come before all who could have been served meanwhile.
 */
function asksAnew({ spec, status = {} }: GpuInstance): boolean {
  if (status.claim !== undefined || status.rented === undefined) return false;
  const rented = rentedOf({ spec, status });
  if (rented === undefined) return true;
  const { price } = rented;
  const isServed = status.reserved !== undefined || status.othersEnded === true;
  if (isServed || price === undefined) return false;
  return compareMoney(spec.maxPricePerHour ?? price.pricePerHour, price.named ?? price.pricePerHour) > 0;
}

/**
 * Since when an instance has its place in line, RFC 3339 with milliseconds; undefined while it is switched off. It is
 * found once and kept: what Berth owes keeps its time. A start that a person asks for, a higher price and other GPUs begin
 * anew.
 */
export function waitingSince({ instance, now }: Pick<Observed, 'instance' | 'now'>): string | undefined {
  const { metadata, status = {} } = instance;
  if (isSwitchedOff(instance)) return undefined;
  if (status.waitingSince !== undefined && !asksAnew(instance)) return status.waitingSince;
  const seen = status.claim === undefined ? now : Date.parse(status.claim.grantedAt);
  // Later edits may have asked for this start.
  const isNew = (metadata.generation ?? 1) === 1;
  const created = isNew && metadata.creationTimestamp !== undefined ? Date.parse(metadata.creationTimestamp) : seen;
  return new Date(Math.min(Math.max(seen, created), created + SECOND_MS - 1)).toISOString();
}
