import { createPublicKey, hkdfSync } from 'node:crypto';
import { personSigningKey, readPersonToken } from '../access/person-token.ts';
import type { PrincipalScope } from '../access/principal.ts';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import { memoryCounter } from '../runtime/counter.ts';
import { mayAccess } from './reviews.ts';
import { NEEDS, TOKEN_MS, tooManyTokens } from './scopes.ts';
import { openSession, sealSession, type Session } from './session.ts';
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

/** Says again of people who have something under way that they may do it. The token says who they are, also when it is over. */
export class Vouching {
  readonly #deps: VouchingDeps;
  readonly #asked = memoryCounter();

  constructor(deps: VouchingDeps) {
    this.#deps = deps;
  }

  /**
   * Until when the person of the token has the scope; undefined when the sign-in is over or the role was taken away. Of the
   * needs of a scope the first is asked: the others are with the next token.
   */
  readonly ask = async (token: string, scope: PrincipalScope): Promise<number | undefined> => {
    const { client, clock, sessionKey, users } = this.#deps;
    const secret = await sessionKey();
    const now = clock.now();
    const claims = await readPersonToken(token, { key: createPublicKey(personSigningKey(secret)), now: 0 });
    if (!claims?.scopes.includes(scope) || claims.session === undefined) return undefined;
    const session = openSession(claims.session, { key: sealingKey(secret), now });
    if (session === undefined) return undefined;
    const { total, resetMs } = await this.#asked.add(claims.id, 1);
    if (total > VOUCHES_PER_MINUTE) throw tooManyTokens(VOUCHES_PER_MINUTE, Math.ceil(resetMs / 1000));
    const user = await users.userOf(session);
    const namespace = scope === 'fleet:read' ? '' : claims.namespace;
    const isAllowed = user !== undefined && (await mayAccess(client, user, { ...NEEDS[scope][0], namespace }));
    return isAllowed ? Math.min(now + TOKEN_MS, session.expires) : undefined;
  };
}
