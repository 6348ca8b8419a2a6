import type { Inventory } from '../../../inventory/inventory.ts';
import { hasImage, type Offer } from '../../../inventory/offers.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { Lru } from '../../../lib/lru.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';

/** Starts that count for an estimate: the latest of a pool. Older ones say little about today's registry and nodes. */
const REMEMBERED = 16;
/** Pools and images that are remembered: a few kilobytes for each hundred. */
const MAX_KINDS = 2_000;

interface UnderWay {
  incarnation: number;
  image: string;
  /** Whether the node had the image when this process first saw the start. */
  cached: boolean;
}

/**
 * How long starts took, from the claim to Ready, as this process saw them in its cache. What started before the process
 * did, or while its watch was away, is not counted: whether the node had the image then is not known any more.
 */
export class StartTimes {
  readonly #inventory: Pick<Inventory, 'viewOf'>;
  readonly #underWay = new Map<string, UnderWay>();
  /** Milliseconds of the latest starts, by pool, whether the node had the image, and image; '' is every image. */
  readonly #recent = new Lru<string, readonly number[]>(MAX_KINDS);

  constructor(instances: Pick<ReadStore<GpuInstance>, 'onChange'>, inventory: Pick<Inventory, 'viewOf'>) {
    this.#inventory = inventory;
    instances.onChange(({ key, after }) => this.#note(key, after));
  }

  /**
   * Seconds until an instance with this image would be ready on a free place of the offer: the median of the latest
   * starts of the pool, of this image where there were any. Undefined when none was seen, or no place is free.
   */
  expectedSeconds(offer: Pick<Offer, 'pool' | 'available' | 'imageCached'>, image: string): number | undefined {
    if (offer.available === 0) return undefined;
    const cached = offer.imageCached(image);
    const times =
      this.#recent.get(kindOf({ pool: offer.pool, cached, image })) ??
      this.#recent.get(kindOf({ pool: offer.pool, cached, image: '' }));
    const middle = times?.toSorted((a, b) => a - b)[Math.floor(times.length / 2)];
    return middle === undefined ? undefined : Math.round(middle / 100) / 10;
  }

  #note(key: string, instance: GpuInstance | undefined): void {
    const { claim, stages = {}, incarnation = 0, image = '' } = instance?.status ?? {};
    const known = this.#underWay.get(key);
    if (claim === undefined || stages.stopped !== undefined) {
      this.#underWay.delete(key);
      return;
    }
    if (stages.ready === undefined) {
      if (stages.pulled !== undefined || known?.incarnation === incarnation) return;
      const facts = this.#inventory.viewOf(claim.node)?.facts;
      if (facts === undefined) return;
      this.#underWay.set(key, { incarnation, image, cached: hasImage(facts, image) });
      return;
    }
    if (known === undefined) return;
    this.#underWay.delete(key);
    const ms = Date.parse(stages.ready) - Date.parse(claim.grantedAt);
    if (known.incarnation !== incarnation || !(ms >= 0)) return;
    const { cached } = known;
    for (const of of new Set([image, ''])) this.#add(kindOf({ pool: claim.pool, cached, image: of }), ms);
  }

  #add(kind: string, ms: number): void {
    this.#recent.set(kind, [...(this.#recent.get(kind) ?? []), ms].slice(-REMEMBERED));
  }
}

function kindOf({ pool, cached, image }: { pool: string; cached: boolean; image: string }): string {
  return [pool, String(cached), image].join('\0');
}
