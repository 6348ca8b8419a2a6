import type { Logger } from 'pino';
import type { Clock } from '../lib/clock.ts';

export interface ShutdownOptions {
  clock: Clock;
  log: Logger;
  /** Milliseconds from the request to stop until what still runs is cut off. */
  graceMs: number;
}

/** One orderly end for a process: what was started last stops first, each part before the next. */
export interface Shutdown {
  /** Aborts at the request to stop: take nothing new. */
  readonly stopping: AbortSignal;
  /** Aborts when the grace period is over: end what still runs. */
  readonly expired: AbortSignal;
  /** Notes what to do at the end. Steps run in reverse order, one after the other. */
  defer(name: string, stop: () => Promise<void> | void): void;
  /**
   * Stops everything, once however often it is called; a call while it is under way cuts the grace period short. Never
   * rejects.
   * @returns true when every step ended well and in time
   */
  stop(reason: string): Promise<boolean>;
}

class ShutdownError extends Error {
  override name = 'ShutdownError';
}

/** After the ordered destroy of atproto's PDS and graphile/worker's graceful, then forced stop. */
export function createShutdown({ clock, log, graceMs }: ShutdownOptions): Shutdown {
  const stopping = new AbortController();
  const expired = new AbortController();
  const steps: { name: string; stop: () => Promise<void> | void }[] = [];
  const atExpiry = new Promise<'expired'>((resolve) => {
    expired.signal.addEventListener('abort', () => resolve('expired'), { once: true });
  });
  let running: Promise<boolean> | undefined;

  function expire(): void {
    expired.abort(new ShutdownError('The time to stop in is over.'));
  }

  async function runStep({ name, stop }: (typeof steps)[number]): Promise<boolean> {
    try {
      const ended = await Promise.race([Promise.resolve(stop()).then(() => 'ended'), atExpiry]);
      if (ended === 'ended') return true;
      log.error({ step: name }, 'Did not stop in time');
    } catch (error) {
      log.error({ err: error, step: name }, 'Failed to stop');
    }
    return false;
  }

  async function runAll(reason: string): Promise<boolean> {
    log.info({ reason }, 'Stopping');
    const cancel = clock.setTimeout(expire, graceMs);
    stopping.abort(new ShutdownError(reason));
    let clean = true;
    for (let step = steps.pop(); step; step = steps.pop()) clean = (await runStep(step)) && clean;
    cancel();
    log.info({ clean }, 'Stopped');
    return clean;
  }

  return {
    stopping: stopping.signal,
    expired: expired.signal,
    defer(name, stop) {
      steps.push({ name, stop });
    },
    stop(reason) {
      if (running) expire();
      running ??= runAll(reason);
      return running;
    },
  };
}

/** SIGTERM and SIGINT ask for the end, a second one cuts it short. Returns the function that stops listening. */
export function stopOnSignals(process: NodeJS.Process, shutdown: Shutdown): () => void {
  const onSignal = (signal: NodeJS.Signals): void => void shutdown.stop(signal);
  const signals = ['SIGTERM', 'SIGINT'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}
