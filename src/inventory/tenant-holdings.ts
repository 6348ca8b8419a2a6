import { sameJson } from '../lib/json.ts';
import { refOf } from '../kube/types.ts';
import type { Claim } from '../resources/instances/gpu-instance.ts';

/** GPUs or MIG slices of one product in one pool. */
export interface GpuShare {
  pool: string;
  product: string;
  gpus: number;
}

/**
 * What the claims of each namespace hold, and the places that are reserved for it, kept up to date one by one. A namespace
 * without any costs nothing.
 */
export class TenantHoldings {
  /** By key of the instance. */
  readonly #claims = new Map<string, GpuShare>();
  /** By namespace, then by pool and product. */
  readonly #held = new Map<string, Map<string, GpuShare>>();
  readonly #listeners = new Set<(namespace: string) => void>();

  /** Notes the claim that an instance has now, or the place that is reserved for it. */
  set(key: string, claim: Pick<Claim, 'pool' | 'product' | 'gpuCount'> | undefined): void {
    const before = this.#claims.get(key);
    const after = claim && { pool: claim.pool, product: claim.product, gpus: claim.gpuCount };
    if (before === undefined && after === undefined) return;
    const { namespace = '' } = refOf(key);
    if (after === undefined) this.#claims.delete(key);
    else {
      this.#claims.set(key, after);
      this.#add(namespace, after);
    }
    if (before === undefined) return;
    this.#add(namespace, { ...before, gpus: -before.gpus });
    // Another place instead, as one that is granted instead of one that was reserved, gives back the first.
    if (!sameJson(before, after)) for (const listener of this.#listeners) listener(namespace);
  }

  /** What a namespace holds; `except`: without what the instance of this key holds. */
  of(namespace: string, except?: string): readonly GpuShare[] {
    const shares = [...(this.#held.get(namespace)?.values() ?? [])];
    const own = except === undefined ? undefined : this.#claims.get(except);
    if (own === undefined) return shares;
    const isOwn = ({ pool, product }: GpuShare): boolean => pool === own.pool && product === own.product;
    return shares.map((share) => (isOwn(share) ? { ...share, gpus: share.gpus - own.gpus } : share));
  }

  onRelease(listener: (namespace: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #add(namespace: string, { pool, product, gpus }: GpuShare): void {
    const held = this.#held.get(namespace) ?? new Map<string, GpuShare>();
    const place = JSON.stringify([pool, product]);
    const sum = (held.get(place)?.gpus ?? 0) + gpus;
    if (sum === 0) held.delete(place);
    else held.set(place, { pool, product, gpus: sum });
    if (held.size === 0) this.#held.delete(namespace);
    else this.#held.set(namespace, held);
  }
}
