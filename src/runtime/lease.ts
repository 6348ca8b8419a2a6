import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import type { KubeClient } from '../kube/client/client.ts';
import { NotFoundError } from '../kube/errors.ts';
import { type Lease, LEASES } from '../kube/types.ts';
import type { Clock } from '../lib/clock.ts';
import type { ClockCheck } from './clock-check.ts';
import type { RunSignals } from './controller.ts';
import { lastTimeOf, type LeaseRecord, microTime, readRecord, sameRecord, withRecord } from './lease-record.ts';

export interface ElectionOptions {
  /** Best a client with connections of its own: renewals must not wait behind other calls. */
  client: KubeClient;
  namespace: string;
  name: string;
  /** Different for every process, also after a restart. */
  identity: string;
  clock: Clock;
  /** Uniform in [0, 1): spreads the attempts of the candidates. */
  random: () => number;
  log: Logger;
  /** Whether nothing of this term can still reach the API server: otherwise the lease is left to its end. */
  mayRelease: () => boolean;
  /** Whether this machine's clock is the API server's. Who has another one does not lead. */
  clockCheck?: Pick<ClockCheck, 'isRight' | 'aheadMs'> | undefined;
  /** `leader_election_master_status`. */
  onStatus?: (leading: boolean) => void;
}

// Half of client-go's defaults: nobody rents anything until the lease of a killed leader is over. A holder writes nothing
// from RENEW_MS on after the request that last renewed its lease, and cuts off the calls that are under way. Another
// candidate takes over no sooner than LEASE_MS after it saw that renewal. The two seconds between cover clocks that run
// at different rates, and the way of the cut to the API server.
const LEASE_MS = 8_000;
const RENEW_MS = 6_000;
const RETRY_MS = 1_000;
/** Part of RETRY_MS by which candidates differ. */
const JITTER = 0.25;
/** When the first attempt meets a dead connection, a second one fits before the deadline, as in controller-runtime. */
const ATTEMPT_MS = RENEW_MS / 2;

type Lead = (signals: RunSignals, floor: number) => Promise<void>;

class LeaseLostError extends Error {
  override name = 'LeaseLostError';
}

/**
 * Leader election by a Lease, after client-go tools/leaderelection. Only the time at which this process saw a change
 * counts, never a time in the record: the clocks of two machines differ. The lease alone does not fence writes.
 */
export class Election {
  readonly #options: ElectionOptions;
  #lease: Lease | undefined;
  #record: LeaseRecord | undefined;
  /** When this process saw the record change, monotonic. */
  #seenAt = 0;
  /** When this process sent the request that last gave it the lease, monotonic. */
  #renewedAt: number | undefined;
  /** No holder before this term wrote anything later, by its own clock. */
  #floor = 0;

  constructor(options: ElectionOptions) {
    this.#options = options;
  }

  /**
   * True while no other process can hold the lease, judged by this machine's own time: also right after the process
   * was suspended or its clock was set, before any timer ran. Ask before each write.
   */
  mayWrite(): boolean {
    return this.#timeLeft() > 0 && this.#isClockRight();
  }

  #isClockRight(): boolean {
    return this.#options.clockCheck?.isRight() ?? true;
  }

  /**
   * Waits for the lease, then leads, again and again until `stop`. `lead` works for one term: until `stop`, after which
   * the lease is given back if it may be, or until `abort`, soon after which it must end. When the lease is lost, this process waits
   * for it again: it does not restart, because the kubelet makes a container wait longer after each restart. The answer
   * `ended` means that `lead` ended by itself: the lease is given back, and the process should exit and start anew.
   * `lead` also gets the time since the epoch, in milliseconds, behind which its records must not fall: no holder before
   * it wrote anything later, by a clock of its own.
   */
  async run(signals: RunSignals, lead: Lead): Promise<'ended' | 'stopped'> {
    const { stop } = signals;
    this.#options.onStatus?.(false);
    while (await this.#acquire(stop)) {
      const isLost = await this.#leadOnce(signals, lead);
      if (!isLost) return stop.aborted ? 'stopped' : 'ended';
    }
    return 'stopped';
  }

  /** One term; true when the lease was lost in it. */
  async #leadOnce({ stop, abort }: RunSignals, lead: Lead): Promise<boolean> {
    const { name, identity, log, onStatus } = this.#options;
    onStatus?.(true);
    log.info({ lease: name, identity }, 'Leading');
    const lost = new AbortController();
    const ended = new AbortController();
    const renewing = this.#renewOrLose(ended.signal, lost);
    try {
      await lead({ stop, abort: AbortSignal.any([abort, lost.signal]) }, this.#floor);
    } finally {
      ended.abort();
      if ((await renewing) && this.#options.mayRelease()) await this.#release();
      onStatus?.(false);
    }
    if (lost.signal.aborted) log.warn({ lease: name, identity }, 'The lease was lost; standing by');
    return lost.signal.aborted;
  }

  /** Milliseconds for which no other process can have the lease; negative when they are over. */
  #timeLeft(): number {
    return (this.#renewedAt ?? -Infinity) + RENEW_MS - this.#options.clock.monotonic();
  }

  async #acquire(stop: AbortSignal): Promise<boolean> {
    while (!stop.aborted) {
      if (await this.#attempt(ATTEMPT_MS, stop)) return true;
      await this.#options.clock.sleep(this.#untilNextTry(), stop);
    }
    return false;
  }

  /** Milliseconds: a released lease is seen within a second, and one whose term is over is taken at once. */
  #untilNextTry(): number {
    const wait = RETRY_MS * (1 - this.#options.random() * JITTER);
    const { holder = '', durationSeconds = 0 } = this.#record ?? {};
    const left = this.#seenAt + durationSeconds * 1000 - this.#options.clock.monotonic();
    return holder !== '' && left > 0 ? Math.min(wait, left) : wait;
  }

  /** Renews until `ended` aborts; aborts `lost` and returns false when the lease is lost before. */
  async #renewOrLose(ended: AbortSignal, lost: AbortController): Promise<boolean> {
    const { name, onStatus } = this.#options;
    if (await this.#renew(ended)) return true;
    this.#renewedAt = undefined;
    onStatus?.(false);
    lost.abort(new LeaseLostError(`The lease ${name} was lost.`));
    return false;
  }

  /** Renews until `ended` aborts; false when another process has the lease or the deadline passed. */
  async #renew(ended: AbortSignal): Promise<boolean> {
    for (;;) {
      await this.#options.clock.sleep(Math.min(RETRY_MS, this.#timeLeft()), ended);
      if (ended.aborted) return true;
      if (this.#timeLeft() <= 0) return false;
      await this.#attempt(Math.min(ATTEMPT_MS, this.#timeLeft()), ended);
      if (this.#record?.holder !== this.#options.identity || !this.#isClockRight()) return false;
    }
  }

  async #release(): Promise<void> {
    if (!this.#lease || !this.#record || !this.mayWrite()) return;
    const { clock, log, name } = this.#options;
    const now = microTime(clock.now());
    const free = { ...this.#record, holder: '', durationSeconds: 1, renewTime: now };
    const controller = new AbortController();
    const cancel = clock.setTimeout(() => controller.abort(new LeaseLostError('Too slow.')), ATTEMPT_MS);
    await this.#write(this.#lease, free, controller.signal)
      .catch((error: unknown) => log.warn({ err: error, lease: name }, 'The lease could not be given back'))
      .finally(cancel);
  }

  async #attempt(timeoutMs: number, outer: AbortSignal): Promise<boolean> {
    const { clock, log, name } = this.#options;
    const controller = new AbortController();
    const abort = (): void => controller.abort(new LeaseLostError('The attempt took too long.'));
    const cancel = clock.setTimeout(abort, timeoutMs);
    outer.addEventListener('abort', abort, { once: true });
    try {
      return await this.#acquireOrRenew(controller.signal);
    } catch (error) {
      if (!outer.aborted) log.warn({ err: error, lease: name }, 'The lease could not be read or written');
      return false;
    } finally {
      cancel();
      outer.removeEventListener('abort', abort);
    }
  }

  async #acquireOrRenew(signal: AbortSignal): Promise<boolean> {
    if (await this.#renewUnread(signal)) return true;
    const { client, clock, namespace, name } = this.#options;
    try {
      const current = this.#observe(await client.get(LEASES, { namespace, name }, { signal }), clock.monotonic());
      if (this.#isHeldByOther(current)) return false;
      this.#floor = lastTimeOf(current);
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      this.#lease = { metadata: { namespace, name } };
      this.#record = undefined;
    }
    // The answer said what time it is.
    if (!this.#isClockRight()) {
      const seconds = Math.round((this.#options.clockCheck?.aheadMs ?? 0) / 1000);
      this.#options.log.error({ lease: name, seconds }, 'The clock is not that of the API server; not leading');
      return false;
    }
    await this.#write(this.#lease ?? { metadata: { namespace, name } }, this.#ownRecord(), signal);
    return true;
  }

  /** While no other process can have the lease, a renewal spares the read, unless the write shows that the lease changed. */
  async #renewUnread(signal: AbortSignal): Promise<boolean> {
    if (!this.#lease || !this.#record || !this.mayWrite()) return false;
    try {
      await this.#write(this.#lease, this.#ownRecord(), signal);
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  #ownRecord(): LeaseRecord {
    const { clock, identity } = this.#options;
    const before = this.#record;
    const now = microTime(clock.now());
    const held = before?.holder === identity;
    return {
      holder: identity,
      durationSeconds: LEASE_MS / 1000,
      renewTime: now,
      acquireTime: held ? before.acquireTime : microTime(Math.max(clock.now(), this.#floor)),
      transitions: before === undefined ? 0 : before.transitions + (held ? 0 : 1),
    };
  }

  async #write(base: Lease, next: LeaseRecord, signal: AbortSignal): Promise<void> {
    const { client, clock, identity } = this.#options;
    const start = clock.monotonic();
    const body = withRecord(base, next);
    const isNew = base.metadata.resourceVersion === undefined;
    const answer = await (isNew ? client.create(LEASES, body, { signal }) : client.replace(LEASES, body, { signal }));
    this.#observe(answer, start);
    this.#renewedAt = next.holder === identity ? start : undefined;
  }

  #observe(lease: Lease, at: number): LeaseRecord {
    const before = this.#record;
    const record = readRecord(lease);
    if (!before || !sameRecord(before, record)) {
      if (before?.holder !== record.holder) this.#options.log.info({ holder: record.holder }, 'The leader changed');
      this.#seenAt = at;
    }
    this.#lease = lease;
    this.#record = record;
    return record;
  }

  #isHeldByOther(current: LeaseRecord): boolean {
    const { clock, identity } = this.#options;
    if (current.holder === '' || current.holder === identity) return false;
    return clock.monotonic() - this.#seenAt < current.durationSeconds * 1000;
  }
}

/** client-go's gauge of the leader under controller-runtime's name (pkg/metrics/leaderelection.go). */
export function createLeaderMetric(registry: Registry): (name: string) => (leading: boolean) => void {
  const status = new Gauge({
    name: 'leader_election_master_status',
    help: 'Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master.',
    labelNames: ['name'],
    registers: [registry],
  });
  return (name) => (leading) => status.set({ name }, leading ? 1 : 0);
}
