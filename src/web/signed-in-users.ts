import { hash } from 'node:crypto';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { Lru } from '../lib/lru.ts';
import type { EndedSessions } from './ended-sessions.ts';
import type { OidcProvider } from './oidc-provider.ts';
import { reviewToken, type User } from './reviews.ts';
import { credentialOf, type Session } from './session.ts';

/** The API server itself remembers an answer for 10 s: a token that ends opens nothing after half a minute. */
const KNOWN_MS = 15_000;
const MOST_KNOWN = 1000;

interface Known {
  user: User;
  /** Monotonic milliseconds. */
  until: number;
}

export interface SignedInUsersDeps {
  client: KubeClient;
  clock: Clock;
  /** Undefined: nobody signs in at a provider. */
  oidc?: Pick<OidcProvider, 'check'> | undefined;
  ended: Pick<EndedSessions, 'has'>;
}

/** The users of sessions, as the cluster or the OpenID provider said in the last seconds. */
export class SignedInUsers {
  readonly #deps: SignedInUsersDeps;
  /** By the SHA-256 of what the session stands on. */
  readonly #known = new Lru<string, Known>(MOST_KNOWN);

  constructor(deps: SignedInUsersDeps) {
    this.#deps = deps;
  }

  /** Asks now. Undefined when the session is over: its account or what the token is bound to may be deleted. */
  async review(session: Session): Promise<User | undefined> {
    const { client, clock, oidc } = this.#deps;
    const user = await ('token' in session ? reviewToken(client, session.token) : oidc?.check(session));
    const id = hash('sha256', credentialOf(session));
    if (user !== undefined) this.#known.set(id, { user, until: clock.monotonic() + KNOWN_MS });
    return user;
  }

  /** The user of a session that was accepted before. Undefined when it is over, also by signing out. */
  async userOf(session: Session): Promise<User | undefined> {
    if (await this.#deps.ended.has(session)) return undefined;
    const known = this.#known.get(hash('sha256', credentialOf(session)));
    return known !== undefined && known.until > this.#deps.clock.monotonic() ? known.user : await this.review(session);
  }
}
