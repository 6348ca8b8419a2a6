import { hasReached } from '../kube/watch/resource-version.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';

interface Assumption {
  instance: GpuInstance;
  /** resourceVersion of the written instance; undefined while the write is under way. */
  resourceVersion: string | undefined;
}

/** Instances whose claim was decided, until the watch cache shows it. At most as many as there are writes under way. */
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

  keys(): string[] {
    return [...this.#known.keys()];
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
