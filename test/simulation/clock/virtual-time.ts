interface Timer {
  due: number;
  /** Timers of one moment run in the order in which they were set. */
  order: number;
  /** Undefined once the timer is cancelled. */
  run: (() => void) | undefined;
  /** Whether promises may wait for it: then they settle before time goes on. */
  settles: boolean;
}

function isBefore(a: Timer, b: Timer): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order);
}

const DAY_MS = 86_400_000;
const NEW_YEAR = Date.UTC(2026, 0, 1);
/** Timers of one moment. With more, somebody spins. */
const MOST_AT_ONCE = 1_000_000;

/** Lets everything run that is ready. Nothing in the world waits for the network or the disk, so one turn is enough. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The time of a simulated world: it stands still until the next timer is due, and is there at once. */
export class VirtualTime {
  readonly #heap: Timer[] = [];
  #elapsed = 0;
  #skipped = 0;
  #orders = 0;
  #cancelled = 0;
  #atOnce = 0;
  #said = { second: Number.NaN, text: '' };
  readonly #start: number;

  /** The wall clocks begin so many days after new year. */
  constructor(firstDay = 0) {
    this.#start = NEW_YEAR + firstDay * DAY_MS;
  }

  /** Milliseconds since the world began, without what was skipped. */
  get elapsed(): number {
    return this.#elapsed;
  }

  /** The same with what was skipped. */
  get passed(): number {
    return this.#skipped + this.#elapsed;
  }

  /** Wall time of a clock that is right, milliseconds since the epoch. */
  get wall(): number {
    return this.#start + this.#skipped + this.#elapsed;
  }

  /** As Kubernetes writes times: whole seconds. */
  get seconds(): string {
    const second = Math.floor(this.wall / 1000);
    if (second !== this.#said.second)
      this.#said = { second, text: `${new Date(this.wall).toISOString().slice(0, 19)}Z` };
    return this.#said.text;
  }

  /** Calls `run` once after `ms`. Promises that it settles go on before time does. The answer cancels it. */
  after(ms: number, run: () => void): () => void {
    return this.#set(ms, run, true);
  }

  /** The same, for what no promise waits for: cheaper. */
  afterPlain(ms: number, run: () => void): () => void {
    return this.#set(ms, run, false);
  }

  /** Runs everything that is due within `ms`. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms;
    await settle();
    for (;;) {
      const [next] = this.#heap;
      if (next === undefined || next.due > end) break;
      this.#pop();
      if (next.run === undefined) {
        this.#cancelled -= 1;
        continue;
      }
      this.#atOnce = next.due > this.#elapsed ? 0 : this.#atOnce + 1;
      if (this.#atOnce > MOST_AT_ONCE) throw new Error(`Time stands still at ${this.#elapsed} ms.`);
      this.#elapsed = Math.max(this.#elapsed, next.due);
      const { run } = next;
      next.run = undefined;
      run();
      if (next.settles) await settle();
    }
    this.#elapsed = end;
  }

  /** Sets every wall clock of the world on, the API server's too. No timer becomes due by it. */
  skip(ms: number): void {
    this.#skipped += ms;
  }

  #set(ms: number, run: () => void, settles: boolean): () => void {
    const timer: Timer = { due: this.#elapsed + Math.max(0, ms), order: (this.#orders += 1), run, settles };
    this.#push(timer);
    return () => {
      if (timer.run === undefined) return;
      timer.run = undefined;
      this.#cancelled += 1;
      if (this.#cancelled > 1_000 && this.#cancelled * 2 > this.#heap.length) this.#sweep();
    };
  }

  /** Most timers are limits of calls that ended long before: they must not fill the heap. */
  #sweep(): void {
    const left = this.#heap.filter(({ run }) => run !== undefined).toSorted((a, b) => (isBefore(a, b) ? -1 : 1));
    this.#heap.splice(0, this.#heap.length, ...left);
    this.#cancelled = 0;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || !isBefore(timer, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      const [one, other] = [heap[left], heap[right]];
      if (one === undefined) break;
      const [child, index] = other !== undefined && isBefore(other, one) ? [other, right] : [one, left];
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = index;
    }
    heap[at] = last;
  }
}
