/** Requests of all callers that a server works on, and that wait there. */
interface Work {
  running: number;
  waiting: number;
}

/**
 * What a server gets before it has said how much it does at once. With news every 250 ms one of 256 fills in a second, and
 * one that reads long prompts one by one is not held up for long by the first calls of whoever came with a thousand.
 */
const FIRST = 16;
const MOST = 4096;
/** A server that has nothing left to begin loses time. The next call is sent as soon as it begins this one. */
const LEAST_QUEUE = 1;
const QUEUE_PART = 1 / 8;
/** Calls that come together wait for a moment in every engine. */
const TIMES = 2;
const GROWTH = 1 / 8;

/**
 * How many calls this process may have at a server at once: as many as the server works on at once, and a few that wait
 * there. The rest waits here, where tenants take turns.
 *
 * Nobody is told how many that are, and other replicas and other callers send calls, too. So it is measured. While a
 * server has calls waiting beyond those few, each process keeps its part of what runs there: the part that it has of all
 * calls. While none waits, each that uses its window up gets more: at first twice as much, and an eighth once the server
 * has been full.
 */
export class Window {
  size = FIRST;
  #fullTimes = 0;
  #wasFull = false;

  /** @param own requests of this process at the server */
  note({ running, waiting }: Work, own: number): void {
    const queue = Math.max(LEAST_QUEUE, Math.ceil(running * QUEUE_PART));
    this.#fullTimes = waiting > queue ? this.#fullTimes + 1 : 0;
    if (this.#fullTimes >= TIMES) {
      const part = Math.min(1, own / (running + waiting));
      this.size = Math.max(1, Math.min(this.size, Math.floor((running + queue) * part)));
      this.#wasFull = true;
    } else if (waiting === 0 && own >= this.size) {
      this.size = Math.min(MOST, this.#wasFull ? own + Math.ceil(own * GROWTH) : own * 2);
    }
  }
}

/** A stream without a byte for as long waits, while others have theirs. With 1 ms for each token of its prompt. */
const SLOW_MS = 2000;
const MS_PER_TOKEN = 1;

/** A request under way. */
interface Watched {
  readonly isStream: boolean;
  readonly answered: boolean;
  readonly begunAt: number;
  readonly promptTokens: number;
}

/**
 * What a server works on, where it says nothing: of the requests of this process, those that have begun to answer. A
 * stream waits when it has no byte after the time of a prefill. A server that has answered none of them may be loading.
 */
export function workOf(flights: Iterable<Watched>, now: number): Work {
  let [running, waiting, answering] = [0, 0, 0];
  for (const { isStream, answered, begunAt, promptTokens } of flights) {
    const isSlow = isStream && !answered && now - begunAt > SLOW_MS + promptTokens * MS_PER_TOKEN;
    if (isSlow) waiting += 1;
    else running += 1;
    if (answered) answering += 1;
  }
  return answering > 0 ? { running, waiting } : { running: running + waiting, waiting: 0 };
}
