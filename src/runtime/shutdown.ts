import type { Logger } from 'pino';
import type { Clock } from '../lib/clock.ts';

export interface ShutdownOptions {
  clock: Clock;
  log: Logger;
  /** Milliseconds from the request to stop until what still runs is cut off. */
  graceMs: number;
}

interface Step {
  name: string;
  stop: () => Promise<void> | void;
}

class ShutdownError extends Error {
  override name = 'ShutdownError';
}

/** Stops parts in the reverse order of their start (atproto's PDS): gracefully, then by force (graphile/worker). */
export class Shutdown {
  readonly #options: ShutdownOptions;
  readonly #stopping = new AbortController();
  readonly #expired = new AbortController();
  readonly #atExpiry = Promise.withResolvers<'expired'>();
  readonly #steps: Step[] = [];
  #running: Promise<boolean> | undefined;

  constructor(options: ShutdownOptions) {
    this.#options = options;
    this.#expired.signal.addEventListener('abort', () => this.#atExpiry.resolve('expired'), { once: true });
  }

  /** Aborts at the request to stop: take nothing new. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Aborts when the grace period is over: end what still runs. */
  get expired(): AbortSignal {
    return this.#expired.signal;
  }

  defer(name: string, stop: Step['stop']): void {
    this.#steps.push({ name, stop });
  }

  /** A second call ends the grace period. Never rejects; true when every step ended well and in time. */
  stop(reason: string): Promise<boolean> {
    if (this.#running) this.#expire();
    this.#running ??= this.#runAll(reason);
    return this.#running;
  }

  #expire(): void {
    this.#expired.abort(new ShutdownError('The time to stop in is over.'));
  }

  async #runAll(reason: string): Promise<boolean> {
    const { clock, log, graceMs } = this.#options;
    log.info({ reason }, 'Stopping');
    const cancel = clock.setTimeout(() => this.#expire(), graceMs);
    this.#stopping.abort(new ShutdownError(reason));
    let clean = true;
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) clean = (await this.#runStep(step)) && clean;
    cancel();
    log.info({ clean }, 'Stopped');
    return clean;
  }

  async #runStep({ name, stop }: Step): Promise<boolean> {
    const { log } = this.#options;
    try {
      const ended = await Promise.race([Promise.resolve(stop()).then(() => 'ended'), this.#atExpiry.promise]);
      if (ended === 'ended') return true;
      log.error({ step: name }, 'A step did not stop in time');
    } catch (error) {
      log.error({ err: error, step: name }, 'A step failed to stop');
    }
    return false;
  }
}

/** SIGTERM and SIGINT stop the process; a second one ends the grace period. Returns the function that stops listening. */
export function stopOnSignals(process: NodeJS.Process, shutdown: Shutdown): () => void {
  const onSignal = (signal: NodeJS.Signals): void => void shutdown.stop(signal);
  const signals = ['SIGTERM', 'SIGINT'] as const;
  for (const signal of signals) process.on(signal, onSignal);
  return () => {
    for (const signal of signals) process.off(signal, onSignal);
  };
}
