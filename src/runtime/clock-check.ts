import { type Clock, wallTimeOf } from '../lib/clock.ts';

/** Milliseconds that the clock of a leader may be away from the API server's. */
const MOST_MS = 5_000;
/** For so long an answer counts that agreed, in milliseconds. API servers behind one address have clocks of their own. */
const MEMORY_MS = 15_000;
/** The header has whole seconds, rounded down. */
const SECOND_MS = 1_000;

/** When an answer came, and what its Date header says. */
export interface DatedAnswer {
  /** Milliseconds since the epoch. */
  date: number;
  /** Monotonic, milliseconds. */
  sentAt: number;
  receivedAt: number;
}

interface Agreed {
  /** From monotonic to wall time. It changes when somebody sets the clock. */
  offset: number;
  /** Monotonic. */
  at: number;
}

/** Compares this machine's clock with the API server's: bills, and endings by time, follow the clock of the leader. */
export class ClockCheck {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  #agreed: Agreed | undefined;
  #isTold = false;
  #aheadMs = 0;
  /** From monotonic time to the API server's, at its last answer. */
  #serverOffset: number | undefined;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** How far this clock was before the API server's at the last answer, at least, in milliseconds. */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /**
   * This clock's time while the API server agrees, else the server's as its last answer tells it, milliseconds since the
   * epoch. Before the first answer it is this clock's.
   */
  now(): number {
    const offset = this.isRight() ? undefined : this.#serverOffset;
    return (offset ?? this.#offset()) + this.#clock.monotonic();
  }

  saw({ date, sentAt, receivedAt }: DatedAnswer): void {
    if (!Number.isFinite(date)) return;
    this.#isTold = true;
    const offset = this.#offset();
    const ahead = Math.max(0, sentAt + offset - (date + SECOND_MS));
    const behind = Math.max(0, date - (receivedAt + offset));
    this.#aheadMs = ahead > 0 ? ahead : -behind;
    this.#serverOffset = offset - this.#aheadMs;
    if (Math.max(ahead, behind) <= MOST_MS) this.#agreed = { offset, at: receivedAt };
  }

  /** False when the two differ, also right after somebody set this clock. True where a proxy takes the header away. */
  isRight(): boolean {
    if (!this.#isTold) return true;
    if (this.#agreed === undefined) return false;
    const { offset, at } = this.#agreed;
    return Math.abs(this.#offset() - offset) <= MOST_MS && this.#clock.monotonic() - at <= MEMORY_MS;
  }

  #offset(): number {
    return wallTimeOf(this.#clock, 0);
  }
}
