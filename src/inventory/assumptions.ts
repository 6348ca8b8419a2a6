import { hasReached } from '../kube/watch/resource-version.ts';
import type { Claim, GpuInstance } from '../resources/instances/gpu-instance.ts';

interface Assumption {
  instance: GpuInstance;
  /** Where the claim is written, and the resourceVersion of that object; undefined while the write is under way. */
  written: { on: 'instance' | 'pod'; resourceVersion: string } | undefined;
}

/** What the watch caches show of one instance. */
export interface Shown {
  /** With the claim that its pod bears, if any. */
  instance: GpuInstance | undefined;
  /** resourceVersion of its first pod; undefined without one. */
  pod: string | undefined;
  /** resourceVersions of the caches. */
  versions: { instance: string; pod: string };
}

/** Instances whose claim was decided, until the watch cache shows it. At most as many as there are writes under way. */
export class Assumptions {
  readonly #known = new Map<string, Assumption>();

  add(key: string, instance: GpuInstance): void {
    this.#known.set(key, { instance, written: undefined });
  }

  confirm(key: string, on: 'instance' | 'pod', resourceVersion: string): void {
    const assumption = this.#known.get(key);
    if (assumption !== undefined) assumption.written = { on, resourceVersion };
  }

  /** The instance with a claim that may or may not have been written; undefined when there is none. */
  pending(key: string): GpuInstance | undefined {
    const assumption = this.#known.get(key);
    return assumption?.written === undefined ? assumption?.instance : undefined;
  }

  /** The claim that was decided, whether its write is under way or done, until the cache shows it. */
  claimOf(key: string): Claim | undefined {
    return this.#known.get(key)?.instance.status?.claim;
  }

  delete(key: string): void {
    this.#known.delete(key);
  }

  keys(): string[] {
    return [...this.#known.keys()];
  }

  /** The assumed instance while the caches are behind, else the one that they show. */
  newest(key: string, shown: Shown): GpuInstance | undefined {
    const assumption = this.#known.get(key);
    if (assumption === undefined) return shown.instance;
    if (assumption.written === undefined || !isShown(assumption.instance, assumption.written, shown)) {
      return assumption.instance;
    }
    this.#known.delete(key);
    return shown.instance;
  }
}

function isShown(
  assumed: GpuInstance,
  { on, resourceVersion }: NonNullable<Assumption['written']>,
  { instance, pod, versions }: Shown,
): boolean {
  const seen = on === 'instance' ? instance?.metadata.resourceVersion : pod;
  if (hasReached(seen ?? versions[on], resourceVersion) || hasReached(versions[on], resourceVersion)) return true;
  if (on === 'instance') return false;
  // The status has the claim, or the instance is gone. A pod is never made before its instance.
  if (instance !== undefined) return instance.status?.claim !== undefined;
  return hasReached(versions.instance, assumed.metadata.resourceVersion ?? '');
}
