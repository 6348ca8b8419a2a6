import { createPublicKey, type KeyObject, type webcrypto } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isPersonToken, personPrincipal, readPersonToken } from '../../../access/person-token.ts';
import { type AskDashboard, type Principal, setPrincipal } from '../../../access/principal.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { Step } from '../step.ts';
import { tokenOfRequest } from './middleware.ts';

/** Milliseconds. A dashboard that lost its key has another one; forged tokens make this process ask no more often. */
const ASK_AGAIN_MS = 5_000;

export interface PeopleDeps {
  /** Asks the dashboard for the public part of its key. */
  readKey: () => Promise<webcrypto.JsonWebKey>;
  vouch: AskDashboard;
  clock: Clock;
}

/** People for whom the dashboard vouches with a signature. This process can check one and cannot make one. */
export class People {
  /** Asks the dashboard about a person again. */
  readonly vouch: AskDashboard;
  readonly #deps: PeopleDeps;
  #key: KeyObject | undefined;
  /** Monotonic milliseconds. */
  #askedAt = -Infinity;
  #asking: Promise<void> | undefined;

  constructor(deps: PeopleDeps) {
    this.#deps = deps;
    this.vouch = deps.vouch;
  }

  /** The caller; undefined when the token is forged or over. Rejects when the dashboard cannot be asked for its key. */
  async find(token: string): Promise<Principal | undefined> {
    if (this.#key === undefined) await this.#ask();
    const found = await this.#read(token);
    if (found !== undefined || this.#deps.clock.monotonic() - this.#askedAt < ASK_AGAIN_MS) return found;
    // Without an answer the known key counts: then this token is a wrong one.
    await this.#ask().catch(() => undefined);
    return await this.#read(token);
  }

  async #read(token: string): Promise<Principal | undefined> {
    const key = this.#key;
    const claims = key && (await readPersonToken(token, { key, now: this.#deps.clock.now() }));
    if (claims === undefined) return undefined;
    const { namespace, session } = claims;
    return { ...personPrincipal(claims), session, vouch: (scope) => this.vouch({ session, namespace, scope }) };
  }

  #ask(): Promise<void> {
    this.#asking ??= this.#renew().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #renew(): Promise<void> {
    this.#askedAt = this.#deps.clock.monotonic();
    this.#key = createPublicKey({ key: await this.#deps.readKey(), format: 'jwk' });
  }
}

async function identify(people: People, token: string, request: IncomingMessage, next: () => void): Promise<void> {
  const principal = await people.find(token);
  if (principal !== undefined) setPrincipal(request, principal);
  next();
}

/** Finds the caller of a request with a person's token. All others are left to the check of API keys, 401 included. */
export function acceptPeople(people: People | undefined): Step {
  return (request, _response, next) => {
    const token = people && tokenOfRequest(request);
    if (people === undefined || token === undefined || !isPersonToken(token)) return next();
    return identify(people, token, request, next);
  };
}
