import type { Clock } from '../../lib/clock.ts';
import { divideEvenly, FairShares, takePlaces } from '../../lib/shares.ts';
import type { Probe, Target } from './types.ts';

export interface ProberDeps {
  probe: (target: Target, signal: AbortSignal) => Promise<Probe>;
  /** Called after every probe. Must only schedule work. */
  changed: () => void;
  /** Called after every failed probe. */
  failed: (target: Target, error: unknown, attempt: number) => void;
  clock: Clock;
  /** In [0, 1). Spreads the probes of pods that started together. */
  random: () => number;
}

interface Entry {
  target: Target;
  probe?: Probe;
  failures: number;
  dueAt: number;
  running: boolean;
}

/** Probes at once. With half of what is free, a namespace alone has 8. */
const PARALLEL = 24;
const FACTOR = 1 / 2;
/** Milliseconds that a probe may take, however many questions it asks. */
const LONGEST_MS = 15_000;
const MAX_TARGETS = 4096;
const REFRESH_MS = 60_000;
const TOO_LONG = `The server did not answer all questions of a probe in ${LONGEST_MS / 1000} s.`;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 30_000;

/**
 * Keeps one probe per target, taken when it becomes available, after a container restart, and every minute, because
 * adapters and models come and go. A failed probe is repeated with exponential back-off from 0.5 s to 30 s, and an
 * earlier result stays valid. Namespaces share the probes that run at once, and the 4096 targets that are followed.
 */
export class Prober {
  readonly #deps: ProberDeps;
  readonly #entries = new Map<string, Entry>();
  readonly #stop = new AbortController();
  readonly #running = new FairShares(PARALLEL, FACTOR);
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: ProberDeps) {
    this.#deps = deps;
  }

  /** Starts due probes once a second. */
  start(): void {
    this.#timer ??= setInterval(() => this.tick(), 1000).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#stop.abort();
  }

  /** Replaces the targets and forgets the probes of those that are gone. Returns how many exceed the limit. */
  sync(targets: readonly Target[]): number {
    const kept = divideEvenly(targets, namespaceOf, MAX_TARGETS);
    const keys = new Set(kept.map(({ key }) => key));
    for (const key of this.#entries.keys()) if (!keys.has(key)) this.#entries.delete(key);
    for (const target of kept) this.#adopt(target);
    this.tick();
    return targets.length - kept.length;
  }

  get(key: string): Probe | undefined {
    return this.#entries.get(key)?.probe;
  }

  /** Starts due probes as many as may run at once: of the namespace with the fewest first, then the longest due. */
  tick(): void {
    if (this.#stop.signal.aborted) return;
    const now = this.#deps.clock.monotonic();
    const due = [...this.#entries.values()]
      .filter(({ running, target, dueAt }) => !running && target.available && dueAt <= now)
      .toSorted((a, b) => a.dueAt - b.dueAt);
    for (const entry of takePlaces(this.#running, due, ({ target }) => namespaceOf(target))) void this.#run(entry);
  }

  #adopt(target: Target): void {
    const entry = this.#entries.get(target.key);
    const now = this.#deps.clock.monotonic();
    if (entry === undefined) {
      this.#entries.set(target.key, { target, failures: 0, dueAt: now, running: false });
      return;
    }
    const stale = needsProbe(entry.target, target);
    entry.target = target;
    // Due now, not earlier: a target that changes all the time must not overtake targets that have waited.
    if (stale) entry.dueAt = Math.min(entry.dueAt, now);
  }

  async #run(entry: Entry): Promise<void> {
    entry.running = true;
    const { target } = entry;
    const limit = new AbortController();
    const cancel = this.#deps.clock.setTimeout(() => limit.abort(new Error(TOO_LONG)), LONGEST_MS);
    try {
      entry.probe = await this.#deps.probe(target, AbortSignal.any([this.#stop.signal, limit.signal]));
      entry.failures = 0;
      entry.dueAt = this.#deps.clock.monotonic() + REFRESH_MS * (0.75 + this.#deps.random() / 2);
    } catch (error) {
      entry.failures += 1;
      const wait = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** Math.min(entry.failures - 1, 10));
      entry.dueAt = this.#deps.clock.monotonic() + wait * (0.75 + this.#deps.random() / 2);
      if (!this.#stop.signal.aborted) this.#deps.failed(target, error, entry.failures);
    } finally {
      cancel();
      entry.running = false;
      this.#running.give(namespaceOf(target), 1);
    }
    // The target may have changed during the probe, whose result is then out of date.
    if (needsProbe(target, entry.target)) entry.dueAt = this.#deps.clock.monotonic();
    if (this.#stop.signal.aborted) return;
    this.#deps.changed();
    this.tick();
  }
}

function namespaceOf({ server }: Target): string {
  return server.namespace;
}

/** Whether a target that changed from `a` to `b` must be probed again. */
function needsProbe(a: Target, b: Target): boolean {
  return (
    a.restarts !== b.restarts ||
    a.origin !== b.origin ||
    !(a.credential === undefined ? b.credential === undefined : a.credential.isSame(b.credential)) ||
    a.server.prefix !== b.server.prefix ||
    a.server.engine !== b.server.engine ||
    a.server.dialects?.join() !== b.server.dialects?.join()
  );
}
