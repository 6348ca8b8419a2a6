import { Lru } from '../../lib/lru.ts';
import type { Pod } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { AddKey, Source } from '../../runtime/source.ts';

/**
 * Looks into pods that the owner of the pod may make last: they go on beside the workers, so that nobody else waits for
 * them.
 */
export interface PodChecks<T> {
  /**
   * What the last look at this pod found; undefined before the first has ended. Begins another one when the last is long
   * enough ago, and wakes `key` when that finds something else.
   */
  last(key: string, pod: Pod): T | undefined;
  readonly source: Source;
}

interface Known<T> {
  uid: string | undefined;
  found: T | undefined;
  isRunning: boolean;
  /** Of the monotonic clock, milliseconds. */
  nextAt: number;
}

/** Pods of one tenant that are looked at at a time; the others' turn comes when they are asked for again. */
const AT_ONCE = 8;
const MAX_KNOWN = 4_096;

/** `check` never rejects and ends within seconds; `pauseMs` is the time between two looks at one pod. */
export function createPodChecks<T>(options: {
  check: (pod: Pod) => Promise<T>;
  pauseMs: number;
  clock: Clock;
}): PodChecks<T> {
  const { check, pauseMs, clock } = options;
  const known = new Lru<string, Known<T>>(MAX_KNOWN);
  const underWay = new Map<string, number>();
  let wake: AddKey | undefined;

  function count(namespace: string, change: number): void {
    const left = (underWay.get(namespace) ?? 0) + change;
    if (left === 0) underWay.delete(namespace);
    else underWay.set(namespace, left);
  }

  async function begin(key: string, pod: Pod, one: Known<T>): Promise<void> {
    const { namespace = '' } = pod.metadata;
    one.isRunning = true;
    count(namespace, 1);
    const found = await check(pod);
    count(namespace, -1);
    one.isRunning = false;
    one.nextAt = clock.monotonic() + pauseMs;
    const isNews = found !== one.found;
    one.found = found;
    if (isNews) wake?.(key, 'low');
  }

  return {
    last(key, pod) {
      const { uid, namespace = '' } = pod.metadata;
      let one = known.get(key);
      if (one === undefined || one.uid !== uid) {
        one = { uid, found: undefined, isRunning: false, nextAt: 0 };
        known.set(key, one);
      }
      const isDue = !one.isRunning && clock.monotonic() >= one.nextAt;
      if (isDue && (underWay.get(namespace) ?? 0) < AT_ONCE) void begin(key, pod, one);
      return one.found;
    },
    source: {
      synced: Promise.resolve(),
      start(add) {
        wake = add;
        return () => (wake = undefined);
      },
    },
  };
}
