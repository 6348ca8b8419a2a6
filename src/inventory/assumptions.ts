import { hasReached } from '../kube/watch/resource-version.ts';
import type { GpuInstance } from '../resources/gpu-instance.ts';

interface Assumption {
  instance: GpuInstance;
  /** Version of the write; absent while it is under way. */
  resourceVersion: string | undefined;
}

/** Claims that were decided and that the watch cache does not show yet. Bounded by the writes under way. */
export class Assumptions {
  readonly #known = new Map<string, Assumption>();

  add(key: string, instance: GpuInstance): void {
    this.#known.set(key, { instance, resourceVersion: undefined });
  }

  confirm(key: string, resourceVersion: string): void {
    const assumption = this.#known.get(key);
    if (assumption !== undefined) assumption.resourceVersion = resourceVersion;
  }

  isPending(key: string): boolean {
    const assumption = this.#known.get(key);
    return assumption !== undefined && assumption.resourceVersion === undefined;
  }

  delete(key: string): void {
    this.#known.delete(key);
  }

  /** The assumed instance while the cache is behind, else the stored one. */
  newest(key: string, stored: GpuInstance | undefined, storeVersion: string): GpuInstance | undefined {
    const assumption = this.#known.get(key);
    if (assumption === undefined) return stored;
    const { resourceVersion } = assumption;
    if (resourceVersion === undefined) return assumption.instance;
    const seen = stored?.metadata.resourceVersion ?? storeVersion;
    if (!hasReached(seen, resourceVersion) && !hasReached(storeVersion, resourceVersion)) return assumption.instance;
    this.#known.delete(key);
    return stored;
  }
}
