import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import { NotFoundError } from '../../kube/errors.ts';
import { type Lease, LEASES } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RunSignals } from '../controller.ts';
import { type LeaseRecord, microTime, readRecord, sameRecord, withRecord } from './lease-record.ts';

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
  /** `leader_election_master_status`. */
  onStatus?: (leading: boolean) => void;
}

// client-go's defaults. A holder gives up after RENEW_MS, another candidate takes over after LEASE_MS. The difference
// covers two clocks that run at different rates.
const LEASE_MS = 15_000;
const RENEW_MS = 10_000;
const RETRY_MS = 2_000;
const JITTER = 1.2;
/** When the first attempt meets a dead connection, a second one fits before the deadline, as in controller-runtime. */
const ATTEMPT_MS = RENEW_MS / 2;

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

  constructor(options: ElectionOptions) {
    this.#options = options;
  }

  /**
   * True while no other process can hold the lease, judged by this machine's own time: also right after the process
   * was suspended, before any timer ran. Ask before each write.
   */
  mayWrite(): boolean {
    return this.#timeLeft() > 0;
  }

  /**
   * Waits for the lease, then leads. `lead` works until `stop`, after which the lease is given back, and must end soon
   * after `abort`. When it ends by itself, the lease is given back. The answer `lost` means that the process should exit
   * and start again as a candidate.
   */
  async run({ stop, abort }: RunSignals, lead: (signals: RunSignals) => Promise<void>): Promise<'lost' | 'stopped'> {
    const { name, identity, log, onStatus } = this.#options;
    onStatus?.(false);
    if (!(await this.#acquire(stop))) return 'stopped';
    onStatus?.(true);
    log.info({ lease: name, identity }, 'Leading');
    const lost = new AbortController();
    const ended = new AbortController();
    const renewing = this.#renewOrLose(ended.signal, lost);
    try {
      await lead({ stop, abort: AbortSignal.any([abort, lost.signal]) });
    } finally {
      ended.abort();
      if (await renewing) await this.#release();
      onStatus?.(false);
    }
    return lost.signal.aborted || !stop.aborted ? 'lost' : 'stopped';
  }

  /** Milliseconds for which no other process can have the lease; negative when they are over. */
  #timeLeft(): number {
    return (this.#renewedAt ?? -Infinity) + RENEW_MS - this.#options.clock.monotonic();
  }

  async #acquire(stop: AbortSignal): Promise<boolean> {
    const { clock, random } = this.#options;
    while (!stop.aborted) {
      if (await this.#attempt(RENEW_MS, stop)) return true;
      await clock.sleep(RETRY_MS * (1 + random() * JITTER), stop);
    }
    return false;
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
      if (this.#record?.holder !== this.#options.identity) return false;
    }
  }

  async #release(): Promise<void> {
    if (!this.#lease || !this.#record || !this.mayWrite()) return;
    const { clock, log, name } = this.#options;
    const now = microTime(clock.now());
    const free = { ...this.#record, holder: '', durationSeconds: 1, renewTime: now, acquireTime: now };
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
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      this.#lease = { metadata: { namespace, name } };
      this.#record = undefined;
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
      acquireTime: held ? before.acquireTime : now,
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
