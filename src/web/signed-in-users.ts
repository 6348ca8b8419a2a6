import { hash } from 'node:crypto';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { Lru } from '../lib/lru.ts';
import { reviewToken, type User } from './reviews.ts';

/** The API server itself remembers an answer for 10 s: a token that ends opens nothing after less than a minute. */
const KNOWN_MS = 30_000;
const MOST_KNOWN = 1000;

interface Known {
  user: User;
  /** Monotonic milliseconds. */
  until: number;
}

/** The users of tokens, as the cluster said in the last half minute. */
export class SignedInUsers {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  /** By the SHA-256 of the token. */
  readonly #known = new Lru<string, Known>(MOST_KNOWN);

  constructor({ client, clock }: { client: KubeClient; clock: Clock }) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Asks the cluster now. Undefined when it rejects the token: its account or what it is bound to may be deleted. */
  async review(token: string): Promise<User | undefined> {
    const user = await reviewToken(this.#client, token);
    if (user !== undefined) this.#known.set(hash('sha256', token), { user, until: this.#clock.monotonic() + KNOWN_MS });
    return user;
  }

  /** The user of a token that was accepted before. */
  async userOf(token: string): Promise<User | undefined> {
    const known = this.#known.get(hash('sha256', token));
    return known !== undefined && known.until > this.#clock.monotonic() ? known.user : await this.review(token);
  }
}
