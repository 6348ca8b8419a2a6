import type { Logger } from 'pino';
import type { Clock } from '../../lib/clock.ts';

const PAUSE_MS = 60_000;

/** Tells the log that spans do not arrive: once per minute at most, with what was lost since. */
export class ExportProblems {
  readonly #log: Logger;
  readonly #clock: Clock;
  #quietUntil = -Infinity;
  #lost = 0;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** @param lost spans that the collector will not get */
  note(err: Error, lost: number): void {
    this.#lost += lost;
    const now = this.#clock.monotonic();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + PAUSE_MS;
    // The answer of a collector may be long, and the error has it as a property.
    const reason = err.message || err.name;
    this.#log.warn({ reason, spans: this.#lost }, 'Traces were not sent');
    this.#lost = 0;
  }
}
