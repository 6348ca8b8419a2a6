import type { Logger } from 'pino';
import type { KubeClient } from '../../kube/client/client.ts';
import { NotFoundError } from '../../kube/errors.ts';
import { type Lease, LEASES } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import type { RunSignals } from '../controller.ts';
import { type LeaseRecord, microTime, readRecord, sameRecord, withRecord } from './lease-record.ts';

export interface ElectionOptions {
  /** Best one with connections of its own, so that renewals never wait behind other calls. */
  client: KubeClient;
  namespace: string;
  name: string;
  /** Different for every process, also after a restart. */
  identity: string;
  clock: Clock;
  /** Uniform in [0, 1): keeps candidates from asking in step. */
  random: () => number;
  log: Logger;
  /** `leader_election_master_status`. */
  onStatus?: (leading: boolean) => void;
}

export interface Election {
  /**
   * True while no other process can hold the lease, judged by this machine's own time: also right after the process
   * was suspended, before any timer ran. Ask before each write.
   */
  mayWrite(): boolean;
  /**
   * Waits for the lease, then leads: `lead` works until `stop` and must end soon after `abort`, which comes when the
   * lease is lost. The lease is given back when `lead` ended by `stop`.
   * @returns `lost` when the process should exit, so that it starts again as a candidate; `stopped` otherwise
   */
  run(signals: RunSignals, lead: (signals: RunSignals) => Promise<void>): Promise<'lost' | 'stopped'>;
}

// client-go's defaults. A holder gives up after RENEW_MS, others take over after LEASE_MS: the difference is what the
// rates of two clocks may be apart.
const LEASE_MS = 15_000;
const RENEW_MS = 10_000;
const RETRY_MS = 2_000;
const JITTER = 1.2;
/** Two attempts fit before the deadline when the first one meets a dead connection (controller-runtime does the same). */
const ATTEMPT_MS = RENEW_MS / 2;

class LeaseLostError extends Error {
  override name = 'LeaseLostError';
}

/**
 * Leader election by a Lease, after client-go tools/leaderelection. Only the time at which this process saw a change
 * counts, never a time in the record: clocks of machines differ. It is not fencing by itself.
 */
export function createElection(options: ElectionOptions): Election {
  const { client, namespace, name, identity, clock, random, log } = options;
  let lease: Lease | undefined;
  let record: LeaseRecord | undefined;
  let seenAt = 0;
  /** When the request that last gave us the lease was sent. */
  let renewedAt: number | undefined;

  /** Milliseconds for which nobody else can have the lease; negative when that is over. */
  function timeLeft(): number {
    return (renewedAt ?? -Infinity) + RENEW_MS - clock.monotonic();
  }

  function mayWrite(): boolean {
    return timeLeft() > 0;
  }

  function observe(next: Lease, at: number): LeaseRecord {
    const nextRecord = readRecord(next);
    if (!record || !sameRecord(record, nextRecord)) {
      if (record?.holder !== nextRecord.holder)
        log.info({ holder: nextRecord.holder }, 'The leader is another one now');
      seenAt = at;
    }
    lease = next;
    record = nextRecord;
    return nextRecord;
  }

  function ours(before: LeaseRecord | undefined): LeaseRecord {
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

  async function write(base: Lease, next: LeaseRecord, signal: AbortSignal): Promise<void> {
    const start = clock.monotonic();
    const body = withRecord(base, next);
    const isNew = base.metadata.resourceVersion === undefined;
    const answer = await (isNew ? client.create(LEASES, body, { signal }) : client.replace(LEASES, body, { signal }));
    observe(answer, start);
    renewedAt = next.holder === identity ? start : undefined;
  }

  function isHeldByOther(current: LeaseRecord): boolean {
    if (current.holder === '' || current.holder === identity) return false;
    return clock.monotonic() - seenAt < current.durationSeconds * 1000;
  }

  /** One try to take or keep the lease. Throws what the API server or the network throws. */
  async function tryAcquireOrRenew(signal: AbortSignal): Promise<boolean> {
    if (lease && record && mayWrite()) {
      // Nobody else can have it: spare the read, unless the write shows that somebody touched it.
      const kept = await write(lease, ours(record), signal).then(
        () => true,
        () => false,
      );
      if (kept) return true;
      signal.throwIfAborted();
    }
    try {
      const current = observe(await client.get(LEASES, { namespace, name }, { signal }), clock.monotonic());
      if (isHeldByOther(current)) return false;
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
      lease = { metadata: { namespace, name } };
      record = undefined;
    }
    await write(lease ?? { metadata: { namespace, name } }, ours(record), signal);
    return true;
  }

  async function attempt(timeoutMs: number, outer: AbortSignal): Promise<boolean> {
    const controller = new AbortController();
    const abort = (): void => controller.abort(new LeaseLostError('The attempt took too long.'));
    const cancel = clock.setTimeout(abort, timeoutMs);
    outer.addEventListener('abort', abort, { once: true });
    try {
      return await tryAcquireOrRenew(controller.signal);
    } catch (error) {
      if (!outer.aborted) log.warn({ err: error, lease: name }, 'The lease could not be read or written');
      return false;
    } finally {
      cancel();
      outer.removeEventListener('abort', abort);
    }
  }

  async function acquire(stop: AbortSignal): Promise<boolean> {
    while (!stop.aborted) {
      if (await attempt(RENEW_MS, stop)) return true;
      await clock.sleep(RETRY_MS * (1 + random() * JITTER), stop);
    }
    return false;
  }

  /** Renews until `ended` aborts; false when the deadline passed without success. */
  async function keep(ended: AbortSignal): Promise<boolean> {
    for (;;) {
      await clock.sleep(Math.min(RETRY_MS, timeLeft()), ended);
      if (ended.aborted) return true;
      if (timeLeft() <= 0) return false;
      await attempt(Math.min(ATTEMPT_MS, timeLeft()), ended);
      if (record?.holder !== identity) return false;
    }
  }

  async function release(): Promise<void> {
    if (!lease || !record || !mayWrite()) return;
    const now = microTime(clock.now());
    const free = { ...record, holder: '', durationSeconds: 1, renewTime: now, acquireTime: now };
    const controller = new AbortController();
    const cancel = clock.setTimeout(() => controller.abort(new LeaseLostError('Too slow.')), ATTEMPT_MS);
    await write(lease, free, controller.signal)
      .catch((error: unknown) => log.warn({ err: error, lease: name }, 'The lease could not be given back'))
      .finally(cancel);
  }

  return {
    mayWrite,
    async run({ stop, abort }, lead) {
      options.onStatus?.(false);
      if (!(await acquire(stop))) return 'stopped';
      options.onStatus?.(true);
      log.info({ lease: name, identity }, 'Leading');
      const lost = new AbortController();
      const ended = new AbortController();
      const renewing = keep(ended.signal).then((kept) => {
        if (kept) return true;
        renewedAt = undefined;
        options.onStatus?.(false);
        lost.abort(new LeaseLostError(`The lease ${name} was lost.`));
        return false;
      });
      try {
        await lead({ stop, abort: AbortSignal.any([abort, lost.signal]) });
      } finally {
        ended.abort();
        if (await renewing) await release();
        options.onStatus?.(false);
      }
      return lost.signal.aborted ? 'lost' : 'stopped';
    },
  };
}
