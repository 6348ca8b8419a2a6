import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { ConflictError } from '../kube/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { ControllerMetrics, ReconcileOutcome } from './controller-metrics.ts';
import type { Fence } from './fence.ts';
import { perKeyBackoff, retryLimiter } from './queue/ratelimiter.ts';
import type { Source } from './source.ts';
import { createWorkQueue } from './queue/workqueue.ts';

/** An error that waiting does not heal: counted and logged, not retried until something changes. */
export class TerminalError extends Error {
  override name = 'TerminalError';
}

/** When to look at the key again although nothing changed; nothing means never. */
export type Result = { requeueAfterMs?: number } | undefined;

export interface ReconcileContext {
  /** Aborts at the time limit and when the process must stop at once: pass it to every call. */
  signal: AbortSignal;
  /** Carries the controller, the key and a reconcileID. */
  log: Logger;
}

export interface ControllerOptions {
  name: string;
  sources: readonly Source[];
  /** Makes the world match what `key` names. Level-triggered: it is not told what changed. */
  reconcile: (key: string, context: ReconcileContext) => Promise<Result | void>;
  /** Keys worked on at a time. */
  concurrency: number;
  /** Milliseconds for one reconcile. */
  timeoutMs: number;
  fence?: Fence;
  clock: Clock;
  log: Logger;
  metrics?: ControllerMetrics;
}

export interface RunSignals {
  /** Take no new key, let running reconciles end. */
  stop: AbortSignal;
  /** End running reconciles too: the lease is lost, or the grace period is over. */
  abort: AbortSignal;
}

export interface Controller {
  readonly name: string;
  /** Looks at `key` soon, from outside the sources. */
  enqueue(key: string): void;
  /** Works until `stop`; resolves when no reconcile is running any more. Never rejects. Call it once. */
  run(signals: RunSignals): Promise<void>;
}

// A conflict is routine: the cache was behind. It heals as soon as the next event is here, so a short wait.
const CONFLICT_BACKOFF = { firstMs: 50, maxMs: 2_000 } as const;

class ReconcileTimeoutError extends Error {
  override name = 'ReconcileTimeoutError';
}

/** A control loop over keys, after controller-runtime's pkg/internal/controller/controller.go. */
export function createController(options: ControllerOptions): Controller {
  const { name, clock, metrics, fence } = options;
  const log = options.log.child({ controller: name });
  const queue = createWorkQueue(clock, metrics?.queue);
  const retries = retryLimiter(clock);
  const conflicts = perKeyBackoff(CONFLICT_BACKOFF);

  function forget(key: string): void {
    retries.forget(key);
    conflicts.forget(key);
  }

  function succeeded(key: string, result: Result | void): ReconcileOutcome {
    forget(key);
    const wait = result?.requeueAfterMs;
    if (wait === undefined) return 'success';
    queue.addAfter(key, wait);
    return 'requeue_after';
  }

  function failed(key: string, error: unknown, keyLog: Logger): ReconcileOutcome {
    if (error instanceof ConflictError) {
      const waitMs = conflicts.next(key);
      keyLog.debug({ err: error, waitMs }, 'The object changed meanwhile; looking again');
      queue.addAfter(key, waitMs);
      return 'requeue';
    }
    if (error instanceof TerminalError) {
      metrics?.terminalError();
      forget(key);
      keyLog.error({ err: error }, 'Reconcile failed for good');
      return 'error';
    }
    if (error instanceof ReconcileTimeoutError) metrics?.timedOut();
    const waitMs = retries.next(key);
    keyLog.error({ err: error, waitMs }, 'Reconcile failed');
    queue.addAfter(key, waitMs);
    return 'error';
  }

  async function attempt(key: string, abort: AbortSignal, keyLog: Logger): Promise<Result | void> {
    const controller = new AbortController();
    const onAbort = (): void => controller.abort(abort.reason);
    abort.addEventListener('abort', onAbort, { once: true });
    const timeout = new ReconcileTimeoutError(`The reconcile took longer than ${options.timeoutMs} ms.`);
    const cancel = clock.setTimeout(() => controller.abort(timeout), options.timeoutMs);
    try {
      return await options.reconcile(key, { signal: controller.signal, log: keyLog });
    } finally {
      cancel();
      abort.removeEventListener('abort', onAbort);
    }
  }

  async function work(key: string, abort: AbortSignal): Promise<void> {
    const keyLog = log.child({ key, reconcileID: randomUUID() });
    const start = clock.monotonic();
    let outcome: ReconcileOutcome = 'error';
    metrics?.started();
    try {
      outcome = succeeded(key, await attempt(key, abort, keyLog));
    } catch (error) {
      if (abort.aborted) outcome = 'requeue';
      else outcome = failed(key, error, keyLog);
    } finally {
      metrics?.finished(outcome, (clock.monotonic() - start) / 1000);
    }
  }

  async function worker(abort: AbortSignal): Promise<void> {
    for (let key = await queue.take(); key !== undefined; key = await queue.take()) {
      const wait = fence?.wait(key) ?? 0;
      // The event that the fence waits for adds the key; the time is for the case that it never comes.
      if (wait > 0) queue.addAfter(key, wait);
      else if (!abort.aborted) await work(key, abort);
      queue.done(key);
    }
  }

  return {
    name,
    enqueue: (key) => queue.add(key),
    async run({ stop, abort }) {
      const stopped = Promise.withResolvers<void>();
      const onStop = (): void => {
        queue.shutDown();
        stopped.resolve();
      };
      if (stop.aborted || abort.aborted) onStop();
      stop.addEventListener('abort', onStop, { once: true });
      abort.addEventListener('abort', onStop, { once: true });
      const synced = Promise.all(options.sources.map((source) => source.synced));
      await Promise.race([synced, stopped.promise]);
      const stops = options.sources.map((source) => source.start(queue.add));
      log.info({ workers: options.concurrency }, 'Starting workers');
      await Promise.all(Array.from({ length: options.concurrency }, () => worker(abort)));
      for (const end of stops) end();
      log.info('All workers finished');
    },
  };
}
