import type { Inventory } from '../../inventory/inventory.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { endingOf } from '../gpu-instance/decide/endings.ts';
import type { FirstSeen } from './first-seen.ts';

/** The instances that wait for a place of one product. */
export interface Waiting {
  product: string;
  type: 'on_demand' | 'interruptible';
  count: number;
  oldestSeconds: number;
}

export interface WaitingSource {
  instances: ReadStore<GpuInstance>;
  inventory: Pick<Inventory, 'offers'>;
}

/**
 * Since when an instance waits, milliseconds since the epoch. Its status says so of a first start that was never edited
 * and of one that lost its place. Of others nothing was written down when they were switched on.
 */
function waitsSince({ metadata, status }: GpuInstance, seen: number): number {
  const isFirst = (status?.incarnation ?? 0) === 0 && metadata.generation === 1;
  const lostPlace = endingOf(status) !== undefined && endingOf(status)?.rule.next !== 'stop';
  const said = isFirst ? metadata.creationTimestamp : lostPlace ? status?.stages?.stopped : undefined;
  return said === undefined ? seen : new Date(said).getTime();
}

/**
 * The waiting line by product and type. The product is one that is for rent, `any` where the tenant names none, and
 * `other` where it names one that is not for rent: no text of a tenant becomes a label.
 */
export function waitingLine({ instances, inventory }: WaitingSource, firstSeen: FirstSeen, now: number): Waiting[] {
  const waiters = instances.by('waiting', 'true');
  const seen = firstSeen.note(waiters, now);
  const offers = inventory.offers();
  const products = new Set(offers.map(({ product }) => product));
  const byOffer = new Map(offers.map(({ id, product }) => [id, product]));
  const groups = new Map<string, Waiting>();
  for (const instance of waiters) {
    const { offerId, gpu, type: asked } = instance.spec;
    const named = offerId === undefined ? (gpu?.product ?? 'any') : (byOffer.get(offerId) ?? 'other');
    const product = named === 'any' || products.has(named) ? named : 'other';
    const type = asked === 'Interruptible' ? 'interruptible' : 'on_demand';
    const key = `${product}/${type}`;
    const group = groups.get(key) ?? { product, type, count: 0, oldestSeconds: 0 };
    const since = waitsSince(instance, seen.get(instance.metadata.uid ?? '') ?? now);
    const oldestSeconds = Math.max(group.oldestSeconds, (now - since) / 1000);
    groups.set(key, { ...group, count: group.count + 1, oldestSeconds });
  }
  return [...groups.values()];
}
