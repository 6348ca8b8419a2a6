import { type Clock, sleepWith } from '../../src/lib/clock.ts';

export interface FakeClock extends Clock {
  /** Moves time on, running each timer that falls due at its own moment and letting promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Time passes and no timer runs, as in a process that was suspended. */
  stall(ms: number): void;
  /** Wall time alone, as when NTP or an operator sets the machine's clock. */
  jumpWall(ms: number): void;
  /** Timers not yet due. */
  readonly pending: number;
}

/** Lets everything that is ready run: promises, streams and local sockets' callbacks. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => setImmediate(resolve));
  });
}

/** A clock that stands still until told to move. Starts at 2026-01-01T00:00:00Z. */
export function fakeClock(): FakeClock {
  const timers = new Map<number, { due: number; callback: () => void }>();
  let elapsed = 0;
  let wallOffset = Date.UTC(2026, 0, 1);
  let ids = 0;

  function schedule(callback: () => void, ms: number): () => void {
    const id = (ids += 1);
    timers.set(id, { due: elapsed + Math.max(0, ms), callback });
    return () => timers.delete(id);
  }

  function nextDue(limit: number): [number, { due: number; callback: () => void }] | undefined {
    const due = [...timers].filter(([, timer]) => timer.due <= limit);
    return due.toSorted(([a, left], [b, right]) => left.due - right.due || a - b)[0];
  }

  return {
    now: () => wallOffset + elapsed,
    monotonic: () => elapsed,
    setTimeout: schedule,
    sleep: (ms, signal) => sleepWith(schedule, ms, signal),
    async advance(ms) {
      const end = elapsed + ms;
      await settle();
      for (let next = nextDue(end); next; next = nextDue(end)) {
        const [id, timer] = next;
        timers.delete(id);
        elapsed = Math.max(elapsed, timer.due);
        timer.callback();
        await settle();
      }
      elapsed = Math.max(elapsed, end);
    },
    stall(ms) {
      elapsed += ms;
    },
    jumpWall(ms) {
      wallOffset += ms;
    },
    get pending() {
      return timers.size;
    },
  };
}
