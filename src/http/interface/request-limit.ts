import type { RequestHandler } from 'express';
import type { CeilingsOf } from '../../access/ceilings.ts';
import { getPrincipal, type Principal, type PrincipalRef } from '../../access/principal.ts';
import { whoCanChange } from '../../resources/tenants/who-can-change.ts';
import type { MinuteCounter, Sum } from '../../runtime/counter.ts';
import { ApiError } from './errors/api-error.ts';

/** Calls per minute of a key without a limit of its own: far above what people and polling programs need. */
const DEFAULT_REQUESTS_PER_MINUTE = 60_000;
const WINDOW_SECONDS = 60;

/** One call, counted. */
export interface Counted {
  /** Calls per minute that the key may make, and how many of them are left. */
  quota: number;
  left: number;
  /** Seconds until the key's minute ends. */
  seconds: number;
  /** Why the call is refused, and the seconds to wait. */
  refused?: { message: string; seconds: number };
}

function secondsOf(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

/** Counts compute calls and calls to ports, for the key and for its tenant. */
export class CallLimits {
  readonly #counter: MinuteCounter;
  readonly #ceilings: CeilingsOf;

  /** @param counter replicas share it when it is in Valkey */
  constructor(counter: MinuteCounter, ceilings: CeilingsOf) {
    this.#counter = counter;
    this.#ceilings = ceilings;
  }

  async count({ keyId, namespace, limits }: PrincipalRef & Pick<Principal, 'limits'>): Promise<Counted> {
    const quota = limits?.requestsPerMinute ?? DEFAULT_REQUESTS_PER_MINUTE;
    // What the key's own limit refuses does not count for the tenant: one key cannot use up the share of the others.
    const [{ total, resetMs }, ofTenant] = await this.#counter.addBoth(
      { key: keyId, most: quota },
      `tenant:${namespace}`,
      1,
    );
    const seconds = secondsOf(resetMs);
    const counted = { quota, left: Math.max(0, quota - total), seconds };
    if (ofTenant === undefined) {
      const message = `This key may make ${quota} calls per minute. Wait ${seconds} s.`;
      return { ...counted, refused: { message, seconds } };
    }
    const refused = this.#refusalOfTenant(namespace, ofTenant);
    return refused === undefined ? counted : { ...counted, refused };
  }

  /** Counts characters of long texts, which a tenant stores. Resolves with the sum of its minute, and what is left of it. */
  async countText(tenant: string, characters: number): Promise<{ total: number; seconds: number }> {
    const { total, resetMs } = await this.#counter.add(`text:${tenant}`, characters);
    return { total, seconds: secondsOf(resetMs) };
  }

  #refusalOfTenant(tenant: string, { total, resetMs }: Sum): Counted['refused'] {
    const { http, policies } = this.#ceilings(tenant);
    const most = http.requestsPerMinute;
    if (total <= most) return undefined;
    const seconds = secondsOf(resetMs);
    const lift = whoCanChange('http.requestsPerMinute', policies);
    return { message: `This tenant may make ${most} calls per minute. Wait ${seconds} s. ${lift}`, seconds };
  }
}

/** Counts a compute call. Answers say how many the key has left (draft-ietf-httpapi-ratelimit-headers). */
export function limitRequests(calls: CallLimits): RequestHandler {
  return async (request, response, next) => {
    const { quota, left, seconds, refused } = await calls.count(getPrincipal(request));
    response.setHeader('ratelimit-policy', `"key";q=${quota};w=${WINDOW_SECONDS}`);
    response.setHeader('ratelimit', `"key";r=${left};t=${seconds}`);
    if (refused === undefined) return next();
    throw new ApiError('rate_limit_exceeded', refused.message, { retryAfterSeconds: refused.seconds });
  };
}
