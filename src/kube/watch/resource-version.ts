import { keyOf, type KubeObject } from '../types.ts';
import type { ReadStore } from './store.ts';

const DECIMAL = /^(0|[1-9][0-9]*)$/;

/**
 * Orders two resource versions of one resource type: negative, zero or positive, or undefined when they cannot be
 * compared. Since Kubernetes 1.35 (KEP-5504) they are decimal strings of any length, which compare by length first. As
 * numbers they would lose digits.
 */
export function compareVersions(left: string, right: string): number | undefined {
  if (left === right) return 0;
  if (!DECIMAL.test(left) || !DECIMAL.test(right)) return undefined;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : 1;
}

/** True when `have` is certainly not older than `want`. */
export function hasReached(have: string, want: string): boolean {
  const order = compareVersions(have, want);
  return order !== undefined && order >= 0;
}

/** Returns what says whether a cache has reached this version of an object. */
export function shownIn<T extends KubeObject>(store: ReadStore<T>, object: T): () => boolean {
  const key = keyOf(object);
  const { resourceVersion = '' } = object.metadata;
  return () => {
    const seen = store.get(key)?.metadata.resourceVersion;
    return (
      (seen !== undefined && hasReached(seen, resourceVersion)) || hasReached(store.resourceVersion, resourceVersion)
    );
  };
}
