import type { KubeClient } from '../kube/client/client.ts';
import { NotFoundError } from '../kube/errors.ts';
import { statusPatch } from '../kube/status-patch.ts';
import { keyOf } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import { FairShares } from '../lib/shares.ts';
import { sameJson } from '../lib/json.ts';
import { TENANT_LIMIT_NAME, type TenantLimit } from '../resources/tenants/tenant-limit.ts';
import { signedHeaders, signingSecret } from '../resources/webhook-signing.ts';
import { type Webhook, WEBHOOKS } from '../resources/webhook.ts';
import type { ReconcileContext, Result } from '../runtime/controller.ts';
import { NotLeaderError } from '../runtime/write-guard.ts';
import type { EventIndex } from './event-index.ts';
import { findDue, firstCursor, isTooOld, type NotifierEvent, pass, type Positions, type Wants } from './events.ts';
import type { Lags, CountedOutcome } from './metrics.ts';
import { type Progress, progressOf, toStatus } from './status.ts';
import type { Outcome, Targets } from './target.ts';

/** Deliveries at once, over all webhooks. */
export const DELIVERIES = 64;
/** Events of one turn: fewer than a cursor has ids for, so that what comes late is seen before it counts as old. */
const TURN_EVENTS = 64;
/** Milliseconds of one turn. Then other webhooks are next. */
const TURN_MS = 20_000;
/** Milliseconds between two writes of a cursor. A crash repeats what was delivered between. */
const WRITE_MS = 1_000;
/** Milliseconds until a webhook is looked at again whose tenant has its share of the deliveries under way. */
const SHARE_MS = 1_000;
/** Milliseconds until a target that took no event is tried again: at first, and at most. */
const FIRST_WAIT_MS = 5_000;
const MOST_WAIT_MS = 60 * 60_000;
/** Failures after which a target waits the most. */
const MOST_FAILURES = 1 + Math.ceil(Math.log2(MOST_WAIT_MS / FIRST_WAIT_MS));
/** Part of a wait by which targets differ, so that they do not meet again. */
const JITTER = 0.25;

export interface NotifierStores {
  webhooks: ReadStore<Webhook>;
  tenantLimits: ReadStore<TenantLimit>;
}

export interface DelivererDeps {
  /** Writes nothing without the lease. */
  client: Pick<KubeClient, 'patch'>;
  stores: NotifierStores;
  /** Of the histories. */
  index: Pick<EventIndex, 'after'>;
  targets: Pick<Targets, 'deliver'>;
  /** 32 bytes, from which signing secrets are derived. */
  key: Buffer;
  /** Aborts when no further delivery should begin. */
  stopping: AbortSignal;
  /** Whether no other process can have the lease. */
  mayDeliver: () => boolean;
  count: (outcome: CountedOutcome) => void;
  lags: Lags;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
}

/** What this process knows of one webhook, in this term as the leader. */
interface Work {
  uid: string | undefined;
  progress: Progress;
  /** In a row, but for fewer events taken between them. */
  failures: number;
  /** Events that it took since the last failure. */
  taken: number;
  /** Monotonic: not before. */
  nextAt: number;
  /** Milliseconds of the wait that ends then. */
  waited: number;
  /** Monotonic: when the status was written last. */
  writtenAt: number;
  /** Where events stand that its cursor has, as far as it was looked for them. */
  positions: Positions;
}

/**
 * Milliseconds until the next try.
 *
 * @param failures from 1
 * @param random uniform in [0, 1)
 * @param askedMs what the target asked for, if it did
 */
function waitMs(failures: number, random: number, askedMs = 0): number {
  const wait = Math.min(MOST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return Math.min(MOST_WAIT_MS, Math.max(askedMs, wait * (1 - random * JITTER)));
}

/** Delivers the events of webhooks, one at a time for each. Make one for each term: it remembers what it delivered. */
export class Deliverer {
  readonly #deps: DelivererDeps;
  readonly #works = new Map<string, Work>();
  readonly #shares = new FairShares(DELIVERIES, 1);

  constructor(deps: DelivererDeps) {
    this.#deps = deps;
  }

  /** Delivers what is due to the webhook of this key. */
  async reconcile(key: string, { signal, log }: ReconcileContext): Promise<Result> {
    const webhook = this.#deps.stores.webhooks.get(key);
    if (webhook === undefined || webhook.metadata.deletionTimestamp !== undefined) {
      this.#works.delete(key);
      this.#deps.lags.forget(key);
      return undefined;
    }
    const work = this.#workOf(key, webhook);
    const wait = work.nextAt - this.#deps.clock.monotonic();
    if (wait > 0) {
      // What could not be written when the target took no event.
      await this.#write(key, work, signal);
      return { requeueAfterMs: wait };
    }
    const failuresBefore = work.failures;
    const result = await this.#takeTurn(key, webhook, { work, signal, log });
    if (work.failures > failuresBefore) {
      const host = URL.parse(webhook.spec.url)?.hostname;
      log.info({ host, outcome: work.progress.outcome, failures: work.failures }, 'A target took no event');
    }
    return result;
  }

  #workOf(key: string, webhook: Webhook): Work {
    const known = this.#works.get(key);
    const { uid } = webhook.metadata;
    if (known !== undefined && known.uid === uid) return known;
    const progress = progressOf(webhook, firstCursor(webhook));
    const work: Work = {
      uid,
      progress,
      failures: 0,
      taken: 0,
      nextAt: -Infinity,
      waited: 0,
      writtenAt: -Infinity,
      positions: new Map(),
    };
    this.#works.set(key, work);
    return work;
  }

  async #takeTurn(
    key: string,
    webhook: Webhook,
    { work, signal, log }: { work: Work } & Pick<ReconcileContext, 'signal' | 'log'>,
  ): Promise<Result> {
    const { clock, index, stores, lags, stopping } = this.#deps;
    const begun = clock.monotonic();
    const { namespace = '' } = webhook.metadata;
    const recorded = {
      entriesAfter: (position: string, wants: Wants) => index.after(namespace, position, wants),
      limit: stores.tenantLimits.get(keyOf({ namespace, name: TENANT_LIMIT_NAME })),
    };
    // One more than a turn has says that the webhook is behind.
    const options = { most: TURN_EVENTS + 1, known: work.positions };
    const { events, positions } = findDue(webhook, work.progress.cursor, recorded, options);
    const known = new Map(positions);
    work.positions = known;
    for (const [count, event] of events.entries()) {
      if (work.failures === 0) lags.note(key, Date.parse(event.at));
      const isOver = stopping.aborted || count >= TURN_EVENTS || clock.monotonic() - begun >= TURN_MS;
      if (isOver) {
        log.info({ oldest: event.at }, 'A webhook is behind');
        await this.#write(key, work, signal);
        return { requeueAfterMs: 0 };
      }
      known.set(event.id, event.position);
      const next = await this.#passOne(key, work, { event, positions: known, signal });
      if (next !== undefined) return next;
    }
    lags.forget(key);
    await this.#write(key, work, signal);
    return undefined;
  }

  /** Delivers or drops one event; returns when to go on, where that is not at once. */
  async #passOne(
    key: string,
    work: Work,
    { event, positions, signal }: { event: NotifierEvent; positions: Positions; signal: AbortSignal },
  ): Promise<Result> {
    const { clock, count, stores, random } = this.#deps;
    const { progress } = work;
    if (isTooOld(event, clock.now())) {
      count('dropped');
      progress.dropped += 1;
      progress.cursor = pass(progress.cursor, event, positions);
      return undefined;
    }
    // As it is now: its secret may have changed in this turn.
    const webhook = stores.webhooks.get(key);
    if (webhook === undefined || webhook.metadata.uid !== work.uid) return { requeueAfterMs: 0 };
    const { namespace = '' } = webhook.metadata;
    if (this.#shares.take(namespace, 1) !== 'taken') {
      await this.#write(key, work, signal);
      return { requeueAfterMs: SHARE_MS };
    }
    const outcome = await this.#deliver(webhook, event, signal).finally(() => this.#shares.give(namespace, 1));
    count(outcome.kind);
    progress.outcome = outcome;
    if (outcome.kind === 'delivered') {
      work.taken += 1;
      if (work.taken > work.failures) work.failures = 0;
      progress.failedSince = undefined;
      progress.lastDeliveredAt = clock.now();
      progress.cursor = pass(progress.cursor, event, positions);
      if (clock.monotonic() - work.writtenAt >= WRITE_MS) await this.#write(key, work, signal);
      return undefined;
    }
    // A target that did well for as long as it was left alone begins anew.
    const isFirst = work.taken > 0 && clock.monotonic() - work.nextAt > work.waited;
    work.failures = isFirst ? 1 : Math.min(work.failures + 1, MOST_FAILURES);
    work.taken = 0;
    progress.failedSince ??= clock.now();
    this.#deps.lags.forget(key);
    const wait = waitMs(work.failures, random(), outcome.kind === 'refused' ? outcome.retryAfterMs : undefined);
    work.nextAt = clock.monotonic() + wait;
    work.waited = wait;
    await this.#write(key, work, signal);
    return { requeueAfterMs: wait };
  }

  async #deliver(webhook: Webhook, { id, type, at, data }: NotifierEvent, signal: AbortSignal): Promise<Outcome> {
    const { clock, key, mayDeliver, targets } = this.#deps;
    if (!mayDeliver()) throw new NotLeaderError();
    const body = JSON.stringify({ type, timestamp: at, data });
    const timestamp = Math.floor(clock.now() / 1000);
    const signed = signedHeaders(signingSecret(key, webhook), { id, timestamp, body });
    const headers = { 'content-type': 'application/json', 'user-agent': 'berth-webhooks', ...signed };
    return targets.deliver({ url: webhook.spec.url, headers, body }, signal);
  }

  /** Writes the status, where it says something new. */
  async #write(key: string, work: Work, signal: AbortSignal): Promise<void> {
    const { client, clock, stores } = this.#deps;
    const webhook = stores.webhooks.get(key);
    if (webhook === undefined || webhook.metadata.uid !== work.uid) return;
    const status = toStatus(webhook, work.progress, clock.now());
    if (sameJson(webhook.status, status)) return;
    const { namespace, name } = webhook.metadata;
    const body = statusPatch(webhook, { failedSince: undefined, lastDeliveredAt: undefined, ...status });
    try {
      await client.patch(WEBHOOKS, { namespace, name }, body, { type: 'json', subresource: 'status', signal });
      work.writtenAt = clock.monotonic();
    } catch (error) {
      if (!(error instanceof NotFoundError)) throw error;
    }
  }
}
