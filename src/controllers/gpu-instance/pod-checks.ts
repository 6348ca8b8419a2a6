import { Lru } from '../../lib/lru.ts';
import type { Pod } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { AddKey, Source } from '../../runtime/source.ts';

interface Check<T> {
  uid: string | undefined;
  result: T | undefined;
  isRunning: boolean;
  /** When the last check ended, on the monotonic clock, milliseconds. */
  endedAt: number;
}

interface PodChecksOptions<T> {
  /** Never rejects, and ends within seconds. */
  check: (pod: Pod) => Promise<T>;
  /** Milliseconds between two checks of one pod. */
  pauseMs: number;
  clock: Pick<Clock, 'monotonic'>;
}

/** Checks under way per tenant. Another pod of the tenant is checked when a reconcile asks for it again. */
const MAX_RUNNING = 8;
const MAX_KNOWN = 4_096;

/** Checks inside pods, beside the workers: a pod decides how long its check takes, and no other instance may wait. */
export class PodChecks<T> {
  readonly #options: PodChecksOptions<T>;
  readonly #checks = new Lru<string, Check<T>>(MAX_KNOWN);
  /** Number of checks under way by namespace. */
  readonly #running = new Map<string, number>();
  #wake: AddKey | undefined;

  /** Adds the keys whose result has changed. */
  readonly source: Source = {
    synced: Promise.resolve(),
    start: (add) => {
      this.#wake = add;
      return () => (this.#wake = undefined);
    },
  };

  constructor(options: PodChecksOptions<T>) {
    this.#options = options;
  }

  /** Result of the last check of a pod; undefined before the first has ended. */
  known(key: string, pod: Pod): T | undefined {
    const known = this.#checks.get(key);
    return known?.uid === pod.metadata.uid ? known?.result : undefined;
  }

  /** The same. Starts the next check when the pause since the last one is over. */
  last(key: string, pod: Pod, pauseMs = this.#options.pauseMs): T | undefined {
    const { uid, namespace = '' } = pod.metadata;
    let known = this.#checks.get(key);
    if (known === undefined || known.uid !== uid) {
      known = { uid, result: undefined, isRunning: false, endedAt: Number.NEGATIVE_INFINITY };
      this.#checks.set(key, known);
    }
    const isDue = !known.isRunning && this.#options.clock.monotonic() >= known.endedAt + pauseMs;
    if (isDue && (this.#running.get(namespace) ?? 0) < MAX_RUNNING) void this.#run(key, pod, known);
    return known.result;
  }

  async #run(key: string, pod: Pod, known: Check<T>): Promise<void> {
    const { namespace = '' } = pod.metadata;
    const { check, clock } = this.#options;
    known.isRunning = true;
    this.#count(namespace, 1);
    const result = await check(pod);
    this.#count(namespace, -1);
    known.isRunning = false;
    known.endedAt = clock.monotonic();
    const isNew = result !== known.result;
    known.result = result;
    if (isNew) this.#wake?.(key, 'low');
  }

  #count(namespace: string, change: number): void {
    const running = (this.#running.get(namespace) ?? 0) + change;
    if (running === 0) this.#running.delete(namespace);
    else this.#running.set(namespace, running);
  }
}
