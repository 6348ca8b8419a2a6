import type { Clock } from './clock.ts';

/** Bytes that a tenant passes in a round of the event loop while it is alone: some milliseconds of work. */
const ALONE_BYTES = 1024 * 1024;
/** The most and the least while others pass bytes too: a few pieces, so that rounds stay short however many there are. */
const MOST_BYTES = 128 * 1024;
const LEAST_BYTES = 16 * 1024;
/** Milliseconds after its last bytes for which a tenant counts. */
const ACTIVE_MS = 100;

/** What a piece costs beside its bytes: a packet, a frame or a message is as much work as that many of them. */
export const PIECE_BYTES = 8 * 1024;

/** A tenant among those whose bytes a process passes on. */
export interface Turn {
  /** Counts bytes of the tenant, and calls back when it is its turn to have them counted: at once, if so. */
  pass(bytes: number, goOn: () => void): void;
  /** Counts bytes that were passed on already. */
  count(bytes: number): void;
}

/** Of bytes that nobody else waits for. */
export const NO_TURN: Turn = { pass: (_bytes, goOn) => goOn(), count: () => undefined };

interface Line {
  /** Bytes of this round, and of rounds before that had more than their part. */
  passed: number;
  /** Monotonic milliseconds. */
  usedAt: number;
  /** One for each stream and direction. */
  waiting: { bytes: number; goOn: () => void }[];
}

/**
 * Lets tenants pass bytes in turns: in a round of the event loop each has the same number, however many streams it has. So
 * a tenant that floods makes rounds longer by its own part only. The next round follows at once, so a tenant that is
 * alone loses nothing.
 */
export class ByteTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #lines = new Map<string, Line>();
  #isRoundEnding = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  of(tenant: string): Turn {
    return {
      pass: (bytes, goOn) => {
        const line = this.#lineOf(tenant);
        if (line.waiting.length === 0 && line.passed < this.#part()) {
          line.passed += bytes;
          goOn();
        } else {
          line.waiting.push({ bytes, goOn });
        }
      },
      count: (bytes) => {
        this.#lineOf(tenant).passed += bytes;
      },
    };
  }

  #part(): number {
    const tenants = this.#lines.size;
    return tenants <= 1 ? ALONE_BYTES : Math.min(MOST_BYTES, Math.max(LEAST_BYTES, ALONE_BYTES / tenants));
  }

  #lineOf(tenant: string): Line {
    const line = this.#lines.get(tenant) ?? { passed: 0, usedAt: 0, waiting: [] };
    line.usedAt = this.#clock.monotonic();
    this.#lines.set(tenant, line);
    this.#endRound();
    return line;
  }

  #endRound(): void {
    if (this.#isRoundEnding) return;
    this.#isRoundEnding = true;
    setImmediate(() => {
      this.#isRoundEnding = false;
      const part = this.#part();
      const over = this.#clock.monotonic() - ACTIVE_MS;
      for (const [tenant, line] of this.#lines) {
        line.passed = Math.max(0, line.passed - part);
        if (line.passed === 0 && line.waiting.length === 0 && line.usedAt < over) this.#lines.delete(tenant);
      }
      for (const line of this.#lines.values()) {
        while (line.passed < part) {
          const next = line.waiting.shift();
          if (next === undefined) break;
          line.passed += next.bytes;
          next.goOn();
        }
      }
      if ([...this.#lines.values()].some(({ passed }) => passed > 0)) this.#endRound();
    });
  }
}

/** Has a source of bytes wait for the turn of its tenant after each piece. */
export class PacedSource {
  readonly #turn: Turn;
  readonly #steer: (isWaiting: boolean) => void;
  #isWaiting = false;

  /** @param steer is told when the source should pause, and when it may go on */
  constructor(turn: Turn, steer: (isWaiting: boolean) => void) {
    this.#turn = turn;
    this.#steer = steer;
  }

  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** A piece came. More may come before the source has paused. */
  took(bytes: number): void {
    if (this.#isWaiting) return this.#turn.count(bytes + PIECE_BYTES);
    this.#isWaiting = true;
    let isPaused = false;
    this.#turn.pass(bytes + PIECE_BYTES, () => {
      this.#isWaiting = false;
      if (isPaused) this.#steer(false);
    });
    isPaused = this.#isWaiting;
    if (isPaused) this.#steer(true);
  }
}
