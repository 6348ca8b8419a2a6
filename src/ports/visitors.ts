import type { Caller } from '../access/authenticator.ts';
import { signInEnd } from '../access/person-token.ts';
import type { AskDashboard, PrincipalRef } from '../access/principal.ts';
import type { Clock } from '../lib/clock.ts';
import { Lru } from '../lib/lru.ts';
import { PORT_USE } from './open-streams.ts';

/** Milliseconds for which an answer counts, so that what is taken away ends within a second. */
const ASK_AGAIN_MS = 500;
const MOST_KNOWN = 10_000;

/** What the dashboard last said of a person in a namespace. */
interface Known {
  /** Milliseconds since the epoch; 0 when they may not use ports. */
  until: number;
  /** When it was asked, monotonic milliseconds. */
  askedAt: number;
  asking?: Promise<number | undefined> | undefined;
}

export interface VisitorsDeps {
  clock: Pick<Clock, 'now' | 'monotonic'>;
  /** Undefined where there is no dashboard. */
  vouch: AskDashboard | undefined;
}

/** Who comes by a link or a cookie of a port: people have no token there, so the dashboard is asked for them. */
export class Visitors {
  readonly #deps: VisitorsDeps;
  readonly #known = new Lru<string, Known>(MOST_KNOWN);

  constructor(deps: VisitorsDeps) {
    this.#deps = deps;
  }

  /**
   * The caller, whose access may be over.
   * @param session of a person, beside the cookie
   * Rejects when the dashboard does not answer, and has not done so for as long as its answers hold.
   */
  async callerOf({ keyId, namespace }: PrincipalRef, session: string | undefined): Promise<Caller> {
    if (signInEnd(keyId) === undefined) return { keyId, namespace };
    const { clock, vouch: ask } = this.#deps;
    if (session === undefined || ask === undefined) return { keyId, namespace, vouchedUntil: 0 };
    const known = this.#knownOf(JSON.stringify([keyId, namespace]));
    const vouch = (): Promise<number | undefined> =>
      (known.asking ??= this.#ask(known, () => ask({ session, namespace, scope: PORT_USE.scope })).finally(() => {
        known.asking = undefined;
      }));
    if (clock.monotonic() - known.askedAt >= ASK_AGAIN_MS) {
      await vouch().catch((error: unknown) => {
        if (known.until <= clock.now()) throw error;
      });
    }
    return { keyId, namespace, vouchedUntil: known.until, vouch };
  }

  #knownOf(place: string): Known {
    const known = this.#known.get(place) ?? { until: 0, askedAt: -Infinity };
    this.#known.set(place, known);
    return known;
  }

  async #ask(known: Known, ask: () => Promise<number | undefined>): Promise<number | undefined> {
    const askedAt = this.#deps.clock.monotonic();
    const until = await ask();
    Object.assign(known, { until: until ?? 0, askedAt });
    return until;
  }
}
