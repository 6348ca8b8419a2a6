import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { ConflictError, isUnreachable } from '../kube/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { ControllerMetrics, ReconcileOutcome } from './controller-metrics.ts';
import type { Fence } from './fence.ts';
import { KeyBackoff, retryLimiter } from './ratelimiter.ts';
import type { Source } from './source.ts';
import { WorkQueue } from './workqueue.ts';

/** When to look at the key again although nothing changed; undefined means never. */
export type Result = { requeueAfterMs?: number } | undefined;

export interface ReconcileContext {
  /** Aborts at the time limit, and when the process must stop at once: pass it to every call. */
  signal: AbortSignal;
  /** Carries the controller, the key and a reconcileID. */
  log: Logger;
}

export interface ControllerOptions {
  name: string;
  sources: readonly Source[];
  /** Makes the world match the object that `key` names. Level-triggered: it does not learn what changed. */
  reconcile: (key: string, context: ReconcileContext) => Promise<Result | void>;
  concurrency: number;
  /** Milliseconds for one reconcile. */
  timeoutMs: number;
  fence?: Fence;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

export interface RunSignals {
  /** Take no new key; let running reconciles end. */
  stop: AbortSignal;
  /** End running reconciles too: the lease is lost, or the grace period is over. */
  abort: AbortSignal;
}

// A conflict is routine: the cache was behind. The next event heals it, so a short wait is enough.
const CONFLICT_BACKOFF = { firstMs: 50, maxMs: 2_000 } as const;
/** Milliseconds. While nothing answers, no key is to blame: all go on as soon as the API server is back. */
const UNREACHABLE_MS = 500;

class ReconcileTimeoutError extends Error {
  override name = 'ReconcileTimeoutError';
}

/** A control loop over keys, after controller-runtime's pkg/internal/controller/controller.go. */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #log: Logger;
  readonly #queue: WorkQueue;
  readonly #retries;
  readonly #conflicts = new KeyBackoff(CONFLICT_BACKOFF);

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#log = options.log.child({ controller: options.name });
    this.#queue = new WorkQueue(options.clock, options.metrics?.queue);
    this.#retries = retryLimiter(options.clock);
  }

  /** Works until `stop`; resolves when no reconcile runs any more. Never rejects. Call it once. */
  async run({ stop, abort }: RunSignals): Promise<void> {
    const { sources, concurrency } = this.#options;
    const stopped = Promise.withResolvers<void>();
    const onStop = (): void => {
      this.#queue.shutDown();
      stopped.resolve();
    };
    if (stop.aborted || abort.aborted) onStop();
    stop.addEventListener('abort', onStop, { once: true });
    abort.addEventListener('abort', onStop, { once: true });
    const synced = Promise.all(sources.map((source) => source.synced));
    await Promise.race([synced, stopped.promise]);
    const stops = sources.map((source) => source.start((key, priority) => this.#queue.add(key, priority)));
    this.#log.info({ workers: concurrency }, 'Starting workers');
    await Promise.all(Array.from({ length: concurrency }, () => this.#worker(abort)));
    for (const end of stops) end();
    this.#log.info('All workers finished');
  }

  async #worker(abort: AbortSignal): Promise<void> {
    const queue = this.#queue;
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      const wait = this.#options.fence?.wait(key) ?? 0;
      // The event that the fence waits for adds the key again; the timer is for an event that never comes.
      if (wait > 0) queue.addAfter(key, wait);
      else if (!abort.aborted) await this.#work(key, abort);
      queue.done(key);
    }
  }

  async #work(key: string, abort: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#options;
    const log = this.#log.child({ key, reconcileID: randomUUID() });
    const start = clock.monotonic();
    let outcome: ReconcileOutcome = 'error';
    metrics?.started();
    try {
      outcome = this.#succeeded(key, await this.#attempt(key, abort, log));
    } catch (error) {
      outcome = abort.aborted ? 'requeue' : this.#failed(key, error, log);
    } finally {
      metrics?.finished(outcome, (clock.monotonic() - start) / 1000);
    }
  }

  async #attempt(key: string, abort: AbortSignal, log: Logger): Promise<Result | void> {
    const { clock, reconcile, timeoutMs } = this.#options;
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(abort.reason);
    abort.addEventListener('abort', onAbort, { once: true });
    const onTimeout = (): void =>
      controller.abort(new ReconcileTimeoutError(`The reconcile took longer than ${timeoutMs} ms.`));
    const cancel = clock.setTimeout(onTimeout, timeoutMs);
    try {
      return await reconcile(key, { signal: controller.signal, log });
    } finally {
      cancel();
      abort.removeEventListener('abort', onAbort);
    }
  }

  #succeeded(key: string, result: Result | void): ReconcileOutcome {
    this.#retries.forget(key);
    this.#conflicts.forget(key);
    const wait = result?.requeueAfterMs;
    if (wait === undefined) return 'success';
    this.#queue.addAfter(key, wait);
    return 'requeue_after';
  }

  #failed(key: string, error: unknown, log: Logger): ReconcileOutcome {
    if (error instanceof ConflictError) {
      const waitMs = this.#conflicts.next(key);
      log.debug({ err: error, waitMs }, 'The object changed meanwhile; looking again');
      this.#queue.addAfter(key, waitMs);
      return 'requeue';
    }
    if (isUnreachable(error)) {
      log.warn({ err: error, waitMs: UNREACHABLE_MS }, 'The API server does not answer; trying again');
      this.#queue.addAfter(key, UNREACHABLE_MS);
      return 'error';
    }
    if (error instanceof ReconcileTimeoutError) this.#options.metrics?.timedOut();
    const waitMs = this.#retries.next(key);
    log.error({ err: error, waitMs }, 'Reconcile failed');
    this.#queue.addAfter(key, waitMs);
    return 'error';
  }
}
