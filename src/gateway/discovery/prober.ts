import type { Probe, Target } from './types.ts';

export interface ProberDeps {
  probe: (target: Target, signal: AbortSignal) => Promise<Probe>;
  /** Called after a probe changed what is known; must only schedule work. */
  changed: () => void;
  /** Called with the reason of every failed probe. */
  failed: (target: Target, error: unknown, attempt: number) => void;
  /** Milliseconds, monotonic. */
  now: () => number;
  /** In [0, 1): spreads the probes of pods that came up together. */
  random: () => number;
}

interface Entry {
  target: Target;
  probe?: Probe;
  failures: number;
  dueAt: number;
  running: boolean;
}

const PARALLEL = 8;
const MAX_TARGETS = 4096;
const REFRESH_MS = 60_000;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 30_000;

/**
 * Keeps one probe per target, taken when it first becomes available, again after a container restart, and refreshed
 * every minute (adapters and models come and go). A failed probe is repeated with exponential back-off from 0.5 s to
 * 30 s; what an earlier probe found stays valid meanwhile. At most 8 probes run at once and 4096 targets are known.
 */
export class Prober {
  readonly #deps: ProberDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #stop = new AbortController();
  #running = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: ProberDeps) {
    this.#deps = deps;
  }

  /** Probes what is due once a second. */
  start(): void {
    this.#timer ??= setInterval(() => this.tick(), 1000).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stop.abort();
  }

  /** Replaces the set of targets; probes of targets that left are forgotten. Returns how many did not fit. */
  sync(targets: readonly Target[]): number {
    const kept = targets.slice(0, MAX_TARGETS);
    const keys = new Set(kept.map(({ key }) => key));
    for (const key of this.#entries.keys()) if (!keys.has(key)) this.#entries.delete(key);
    for (const target of kept) this.#adopt(target);
    this.tick();
    return targets.length - kept.length;
  }

  get(key: string): Probe | undefined {
    return this.#entries.get(key)?.probe;
  }

  /** Starts the probes that are due, longest due first, as many as may run at once. */
  tick(): void {
    if (this.#stop.signal.aborted || this.#running >= PARALLEL) return;
    const now = this.#deps.now();
    const due = [...this.#entries.values()]
      .filter(({ running, target, dueAt }) => !running && target.available && dueAt <= now)
      .toSorted((a, b) => a.dueAt - b.dueAt);
    for (const entry of due.slice(0, PARALLEL - this.#running)) void this.#run(entry);
  }

  #adopt(target: Target): void {
    const entry = this.#entries.get(target.key);
    const now = this.#deps.now();
    if (entry === undefined) {
      this.#entries.set(target.key, { target, failures: 0, dueAt: now, running: false });
      return;
    }
    const stale = target.incarnation !== entry.target.incarnation || differs(target, entry.target);
    entry.target = target;
    // Due now, and not before those that have waited: a target that changes all the time must not keep them from a turn.
    if (stale) entry.dueAt = Math.min(entry.dueAt, now);
  }

  async #run(entry: Entry): Promise<void> {
    entry.running = true;
    this.#running += 1;
    const { target } = entry;
    try {
      entry.probe = await this.#deps.probe(target, this.#stop.signal);
      entry.failures = 0;
      entry.dueAt = this.#deps.now() + REFRESH_MS * (0.75 + this.#deps.random() / 2);
    } catch (error) {
      entry.failures += 1;
      const wait = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** Math.min(entry.failures - 1, 10));
      entry.dueAt = this.#deps.now() + wait * (0.75 + this.#deps.random() / 2);
      if (!this.#stop.signal.aborted) this.#deps.failed(target, error, entry.failures);
    } finally {
      entry.running = false;
      this.#running -= 1;
    }
    // The target may have changed under way: what was found out is of the old one.
    if (entry.target !== target && (entry.target.incarnation !== target.incarnation || differs(entry.target, target)))
      entry.dueAt = this.#deps.now();
    if (this.#stop.signal.aborted) return;
    this.#deps.changed();
    this.tick();
  }
}

function differs(a: Target, b: Target): boolean {
  return (
    a.origin !== b.origin ||
    a.server.prefix !== b.server.prefix ||
    a.server.engine !== b.server.engine ||
    a.server.dialects?.join() !== b.server.dialects?.join()
  );
}
