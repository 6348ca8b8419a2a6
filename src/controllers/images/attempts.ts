import type { Clock } from '../../lib/clock.ts';

/** Milliseconds between the failure of a pull and the next try: the first, and the longest. */
const BACKOFF_MS = { first: 60_000, most: 3_600_000 };
/** A kubelet shows 50 images at most, so a pull that went well counts for an hour without being shown. */
const DONE_MS = 3_600_000;

interface Attempt {
  /** uid of the pod that was counted last. */
  uid: string;
  failures: number;
  /** Milliseconds since the epoch. */
  at: number;
  /** Absent after a pull that went well. */
  message?: string;
}

export interface Failure {
  at: number;
  message: string;
}

/**
 * What became of the pulls of one leader, by pool and by the name of the pod. A new leader knows none of it: it tries
 * again what failed, and asks once for images that the kubelets have and do not show.
 */
export class PullAttempts {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #pools = new Map<string, Map<string, Attempt>>();
  readonly #listeners = new Set<(pool: string) => void>();

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Counts the end of a pod, once. `message`: why it failed; absent when it went well. */
  note(pool: string, name: string, { uid, message }: { uid: string; message?: string }): void {
    let attempts = this.#pools.get(pool);
    if (attempts === undefined) this.#pools.set(pool, (attempts = new Map()));
    const before = attempts.get(name);
    if (before?.uid === uid) return;
    const at = this.#clock.now();
    const failures = message === undefined ? 0 : (before?.failures ?? 0) + 1;
    attempts.set(name, { uid, failures, at, ...(message !== undefined && { message }) });
    for (const listener of this.#listeners) listener(pool);
  }

  /** Whether a pull went well a short while ago. */
  isDone(pool: string, name: string): boolean {
    const attempt = this.#pools.get(pool)?.get(name);
    return attempt?.failures === 0 && attempt.at + DONE_MS > this.#clock.now();
  }

  /** The failure of the last pull, if it failed. */
  failureOf(pool: string, name: string): Failure | undefined {
    const attempt = this.#pools.get(pool)?.get(name);
    return attempt?.message === undefined ? undefined : { at: attempt.at, message: attempt.message };
  }

  /** When the next pull may start, milliseconds since the epoch. */
  dueAt(pool: string, name: string): number {
    const { failures = 0, at = 0 } = this.#pools.get(pool)?.get(name) ?? {};
    return failures === 0 ? 0 : at + Math.min(BACKOFF_MS.first * 2 ** (failures - 1), BACKOFF_MS.most);
  }

  /** When what `isDone` says of a pool changes next, milliseconds since the epoch; Infinity for never. */
  doneUntil(pool: string, name: string): number {
    const attempt = this.#pools.get(pool)?.get(name);
    return attempt?.failures === 0 ? attempt.at + DONE_MS : Number.POSITIVE_INFINITY;
  }

  /** Forgets what is not asked for any more. */
  keep(pool: string, names: ReadonlySet<string>): void {
    const attempts = this.#pools.get(pool);
    for (const name of attempts?.keys() ?? []) if (!names.has(name)) attempts?.delete(name);
    if (attempts?.size === 0) this.#pools.delete(pool);
  }

  /** Calls the listener with the pool after each end that was counted. Returns the function to stop. */
  onChange(listener: (pool: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
