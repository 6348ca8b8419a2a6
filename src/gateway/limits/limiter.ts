import type { CeilingsOf } from '../../access/ceilings.ts';
import type { Principal } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import { Shares } from '../../lib/shares.ts';
import { whoCanChange, whoCanChangeKey } from '../../resources/tenants/who-can-change.ts';
import type { MinuteCounter, Sum } from '../../runtime/counter.ts';
import type { Standings } from './standings.ts';

/** Which limit refuses a call, and who can lift it. */
export interface Denied {
  /** `limits.…` of an APIKey, or the name of a ceiling of the tenant. */
  limit: string;
  message: string;
  retryAfterMs: number;
}

/** A limit of the API key or of its tenant is reached. Its message is for the client. */
export class LimitError extends Error {
  override readonly name = 'LimitError';
  readonly limit: string;
  readonly retryAfterMs: number;

  constructor({ limit, message, retryAfterMs }: Denied) {
    super(message);
    this.limit = limit;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Tokens set aside for a call until its real usage is known. */
export interface Reservation {
  /** Replaces the estimate by the real usage. */
  replace(tokens: number): Promise<void>;
}

export interface LimiterDeps {
  /** Calls per minute, by key and by tenant. */
  requests: MinuteCounter;
  /** Tokens per minute, by key and by tenant. */
  tokens: MinuteCounter;
  ceilings: CeilingsOf;
  clock: Clock;
}

/** A limit per minute that holds for a call. */
interface Meter {
  /** Whose sum it is. Ids of keys have no slash. */
  owner: string;
  max: number;
  limit: string;
  message: string;
}

const PER_MINUTE = {
  requests: { ofKey: 'requestsPerMinute', ofTenant: 'callsPerMinute', verb: 'make', unit: 'requests' },
  tokens: { ofKey: 'tokensPerMinute', ofTenant: 'tokensPerMinute', verb: 'use', unit: 'tokens' },
} as const;

const AT_ONCE_RETRY_MS = 1000;

const NO_RESERVATION: Reservation = { replace: () => Promise.resolve() };

/** The limits of API keys and of their tenants: calls and tokens per minute, and calls under way. */
export class Limiter {
  readonly #deps: LimiterDeps;
  /** Calls under way by key id. A key without any has no entry. */
  readonly #byKey = new Shares(Infinity);
  readonly #byTenant = new Shares(Infinity);

  constructor(deps: LimiterDeps) {
    this.#deps = deps;
  }

  /** Whether anything is counted per minute for the caller. */
  isMetered({ namespace, limits }: Principal): boolean {
    const { callsPerMinute, tokensPerMinute } = this.#deps.ceilings(namespace).models;
    return limits !== undefined || callsPerMinute !== undefined || tokensPerMinute !== undefined;
  }

  /** Counts a call as under way. When it is not denied, the caller calls `leave` once. */
  enter({ keyId, namespace, name, limits }: Principal): Denied | undefined {
    const max = limits?.concurrentRequests ?? Infinity;
    if (this.#byKey.take(keyId, 1, max) !== 'taken') {
      return {
        limit: 'limits.concurrentRequests',
        message: `This API key may have ${max} requests under way at once. Wait for one to finish. ${whoCanChangeKey('concurrentRequests', name)}`,
        retryAfterMs: AT_ONCE_RETRY_MS,
      };
    }
    const { models, policies } = this.#deps.ceilings(namespace);
    const { callsAtOnce } = models;
    if (this.#byTenant.take(namespace, 1, callsAtOnce) === 'taken') return undefined;
    this.#byKey.give(keyId, 1);
    return {
      limit: 'models.callsAtOnce',
      message: `The API keys of this tenant may have ${callsAtOnce} model calls under way at once. Wait for one to finish. ${whoCanChange('models.callsAtOnce', policies)}`,
      retryAfterMs: AT_ONCE_RETRY_MS,
    };
  }

  leave({ keyId, namespace }: Principal): void {
    this.#byKey.give(keyId, 1);
    this.#byTenant.give(namespace, 1);
  }

  /** Counts a call in the minute of its key and of its tenant. `standings` learns what is left. */
  async countRequest(principal: Principal, standings?: Standings): Promise<Denied | undefined> {
    for (const [{ max, limit, message }, { total, resetMs }] of await this.#add(principal, 'requests', 1)) {
      standings?.note('requests', { max, total, resetMs });
      if (total > max) return { limit, message, retryAfterMs: resetMs };
    }
    return undefined;
  }

  /**
   * Sets the estimated tokens of a call aside: calls that begin together cannot all pass a limit that one of them uses
   * up. The real usage replaces the estimate. When it comes in a later minute, it counts in full there.
   */
  async reserveTokens(principal: Principal, estimate: number, standings?: Standings): Promise<Denied | Reservation> {
    const { tokens: counter, clock } = this.#deps;
    const addedAt = clock.monotonic();
    const added = await this.#add(principal, 'tokens', estimate);
    const replace = async (tokens: number): Promise<void> => {
      for (const [{ owner }, { resetMs }] of added) {
        const counted = clock.monotonic() < addedAt + resetMs ? estimate : 0;
        if (tokens !== counted) await counter.add(owner, tokens - counted);
      }
    };
    for (const [{ max, limit, message }, { total, resetMs }] of added) {
      const isFree = total - estimate < max;
      // What a refused call asked for is given back.
      standings?.note('tokens', { max, total: isFree ? total : total - estimate, resetMs });
      if (isFree) continue;
      await replace(0);
      return { limit, message, retryAfterMs: resetMs };
    }
    return added.length === 0 ? NO_RESERVATION : { replace };
  }

  /** Adds points to the meters of a caller; to that of the tenant only where the key's own limit lets the call in. */
  async #add(principal: Principal, kind: keyof typeof PER_MINUTE, points: number): Promise<[Meter, Sum][]> {
    const counter = this.#deps[kind];
    const [first, second] = this.#meters(principal, kind);
    if (first === undefined) return [];
    if (second === undefined) return [[first, await counter.add(first.owner, points)]];
    // The first call is let in whatever it takes of the tokens that are left.
    const most = kind === 'requests' ? first.max : first.max + points - 1;
    const [ofKey, ofTenant] = await counter.addBoth({ key: first.owner, most }, second.owner, points);
    return [[first, ofKey], ...(ofTenant === undefined ? [] : [[second, ofTenant] as [Meter, Sum]])];
  }

  /** The key's own limit comes first: calls that it refuses use up nothing of the tenant's. */
  #meters({ keyId, namespace, name, limits }: Principal, kind: keyof typeof PER_MINUTE): Meter[] {
    const { ofKey, ofTenant, verb, unit } = PER_MINUTE[kind];
    const meters: Meter[] = [];
    const keyMax = limits?.[ofKey];
    if (keyMax !== undefined) {
      const message = `This API key may ${verb} ${keyMax} ${unit} per minute. Try again later. ${whoCanChangeKey(ofKey, name)}`;
      meters.push({ owner: keyId, max: keyMax, limit: `limits.${ofKey}`, message });
    }
    const { models, policies } = this.#deps.ceilings(namespace);
    const max = models[ofTenant];
    if (max !== undefined) {
      const limit = `models.${ofTenant}`;
      const message = `The API keys of this tenant together may ${verb} ${max} ${unit} per minute. Try again later. ${whoCanChange(limit, policies)}`;
      meters.push({ owner: `tenant/${namespace}`, max, limit, message });
    }
    return meters;
  }
}
