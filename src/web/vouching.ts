import { hash, hkdfSync } from 'node:crypto';
import type { AskDashboard } from '../access/principal.ts';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { memoryCounter } from '../runtime/counter.ts';
import { mayAccess } from './reviews.ts';
import { NEEDS, TOKEN_MS, tooManyTokens } from './scopes.ts';
import { credentialOf, openSession, sealSession, type Session } from './session.ts';
import type { SignedInUsers } from './signed-in-users.ts';

/** Of one sign-in: a replica of the api role asks 120 times a minute for each scope in use in a namespace. */
const VOUCHES_PER_MINUTE = 3000;

/** Another key than that of cookies: a page reads its tokens, and must not be able to make a cookie of one. */
function sealingKey(sessionKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', sessionKey, '', 'berth sessions in person tokens', 32));
}

/** The session of a token, for the dashboard alone. Throws `SessionTooLargeError`. */
export function sealForToken(session: Session, sessionKey: Buffer): string {
  return sealSession(session, sealingKey(sessionKey));
}

export interface VouchingDeps {
  client: KubeClient;
  clock: Pick<Clock, 'now'>;
  sessionKey: () => Promise<Buffer>;
  users: Pick<SignedInUsers, 'userOf'>;
}

/** Says again of people who have something under way that they may do it. The session of a token says who they are. */
export class Vouching {
  readonly #deps: VouchingDeps;
  readonly #asked = memoryCounter();

  constructor(deps: VouchingDeps) {
    this.#deps = deps;
  }

  /**
   * Until when the person has the scope; undefined when the sign-in is over or the role was taken away. Of the needs of a
   * scope the first is asked: the others were with the token, and are with the next.
   */
  readonly ask: AskDashboard = async ({ session: sealed, namespace, scope }) => {
    const { client, clock, sessionKey, users } = this.#deps;
    const now = clock.now();
    const session = openSession(sealed, { key: sealingKey(await sessionKey()), now });
    if (session === undefined) return undefined;
    const { total, resetMs } = await this.#asked.add(hash('sha256', credentialOf(session)), 1);
    if (total > VOUCHES_PER_MINUTE) throw tooManyTokens(VOUCHES_PER_MINUTE, Math.ceil(resetMs / 1000));
    const user = await users.userOf(session);
    const need = { ...NEEDS[scope][0], namespace: scope === 'fleet:read' ? '' : namespace };
    const isAllowed = user !== undefined && (await mayAccess(client, user, need));
    return isAllowed ? Math.min(now + TOKEN_MS, session.expires) : undefined;
  };
}
