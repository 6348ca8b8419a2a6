import type { Inventory } from '../../../inventory/inventory.ts';
import { hasImage, type Offer } from '../../../inventory/offers.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import { Lru } from '../../../lib/lru.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';

/** Starts that count for an estimate: the latest of a pool. Older ones say little about today's registry and nodes. */
const REMEMBERED = 16;
/** Those of them that may be of one tenant where others have some: who starts without a pause does not make the estimate. */
const OF_ONE = 4;
/** Pools and images that are remembered: a few kilobytes for each hundred. */
const MAX_KINDS = 2_000;

interface UnderWay {
  incarnation: number;
  image: string;
  /** Whether the node had the image when this process first saw the start. */
  cached: boolean;
}

interface Took {
  tenant: string;
  ms: number;
}

/**
 * How long starts took, from the claim to Ready, as this process saw them in its cache. What started before the process
 * did, or while its watch was away, is not counted: whether the node had the image then is not known any more.
 */
export class StartTimes {
  readonly #inventory: Pick<Inventory, 'viewOf'>;
  readonly #underWay = new Map<string, UnderWay>();
  /** The latest starts of each kind. */
  readonly #recent = new Lru<string, readonly Took[]>(MAX_KINDS);

  constructor(instances: Pick<ReadStore<GpuInstance>, 'onChange'>, inventory: Pick<Inventory, 'viewOf'>) {
    this.#inventory = inventory;
    instances.onChange(({ key, after }) => this.#note(key, after));
  }

  /**
   * Seconds until an instance of the tenant with this image would be ready on a free place of the offer: the median of the
   * latest starts of the pool, of the tenant's own with this image where there were any. Which images others start shows
   * nowhere. Undefined when none was seen, or no place is free.
   */
  expectedSeconds(
    { pool, available, imageCached }: Pick<Offer, 'pool' | 'available' | 'imageCached'>,
    { image, tenant }: { image: string; tenant: string },
  ): number | undefined {
    if (available === 0) return undefined;
    const cached = imageCached(image);
    const took =
      this.#recent.get(kindOf({ pool, cached, image, tenant })) ??
      this.#recent.get(kindOf({ pool, cached, image: '', tenant: '' }));
    const times = took?.map(({ ms }) => ms).toSorted((a, b) => a - b) ?? [];
    const middle = times[Math.floor(times.length / 2)];
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
    const { pool } = claim;
    const took = { tenant: instance?.metadata.namespace ?? '', ms };
    this.#add(kindOf({ pool, cached, image: '', tenant: '' }), took);
    if (image !== '') this.#add(kindOf({ pool, cached, image, tenant: took.tenant }), took);
  }

  #add(kind: string, took: Took): void {
    const known = [...(this.#recent.get(kind) ?? []), took];
    const own = known.filter(({ tenant }) => tenant === took.tenant);
    const tooMany = new Set(own.length < known.length ? own.slice(0, -OF_ONE) : []);
    this.#recent.set(kind, known.filter((one) => !tooMany.has(one)).slice(-REMEMBERED));
  }
}

/** By pool, whether the node had the image, and image and tenant, which are empty for all. */
function kindOf(kind: { pool: string; cached: boolean; image: string; tenant: string }): string {
  const { pool, cached, image, tenant } = kind;
  return [pool, String(cached), image, tenant].join('\0');
}
