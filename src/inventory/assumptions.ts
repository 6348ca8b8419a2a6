import { hasReached } from '../kube/watch/resource-version.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';

interface Assumption {
  instance: GpuInstance;
  /** Whether a cache shows what was written; undefined while the write is under way. */
  isShown: (() => boolean) | undefined;
}

/** Instances whose claim was decided, until the watch cache shows it. At most as many as there are writes under way. */
export class Assumptions {
  readonly #known = new Map<string, Assumption>();

  add(key: string, instance: GpuInstance): void {
    this.#known.set(key, { instance, isShown: undefined });
  }

  confirm(key: string, isShown: () => boolean): void {
    const assumption = this.#known.get(key);
    if (assumption !== undefined) assumption.isShown = isShown;
  }

  /** The instance with a claim that may or may not have been written; undefined when there is none. */
  pending(key: string): GpuInstance | undefined {
    const assumption = this.#known.get(key);
    return assumption?.isShown === undefined ? assumption?.instance : undefined;
  }

  /** The instance with a claim that no cache shows: it was written or may have been. */
  unseen(key: string): GpuInstance | undefined {
    const assumption = this.#known.get(key);
    return assumption?.isShown?.() === true ? undefined : assumption?.instance;
  }

  /** The instances of a namespace whose claim was decided and is not shown yet. */
  in(namespace: string): GpuInstance[] {
    const all = [...this.#known.values()].map(({ instance }) => instance);
    return all.filter(({ metadata }) => metadata.namespace === namespace);
  }

  delete(key: string): void {
    this.#known.delete(key);
  }

  keys(): string[] {
    return [...this.#known.keys()];
  }

  /** The assumed instance while the cache is behind, else the one that it shows. `version`: that of the cache. */
  newest(key: string, shown: GpuInstance | undefined, version: string): GpuInstance | undefined {
    const assumption = this.#known.get(key);
    if (assumption === undefined) return shown;
    const { instance, isShown } = assumption;
    if (isShown === undefined) return instance;
    const isGone = shown === undefined && hasReached(version, instance.metadata.resourceVersion ?? '');
    if (!isGone && shown?.status?.claim === undefined && !isShown()) return instance;
    this.#known.delete(key);
    return shown;
  }
}
