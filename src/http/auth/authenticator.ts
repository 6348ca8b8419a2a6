import { timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { hashToken, SCOPES, type ApiKey, type Scope } from '../../resources/api-key.ts';
import type { Principal } from '../../access/principal.ts';

export interface Authenticator {
  /** The caller that the token stands for, or undefined for every reason why there is none. */
  authenticate(token: string | undefined): Principal | undefined;
  /** Whether a principal found before may still do what needs the scope: its key is good and has the scope now. */
  isValid(principal: Pick<Principal, 'keyId'>, scope: Scope): boolean;
}

const NO_HASH = '0'.repeat(64);

function isUsable(key: ApiKey, now: number): boolean {
  const { revoked, expiresAt } = key.spec;
  if (revoked || key.metadata.deletionTimestamp !== undefined) return false;
  return expiresAt === undefined || Date.parse(expiresAt) > now;
}

function ageOf({ metadata }: ApiKey): string {
  return `${String(metadata.creationTimestamp)} ${metadata.uid}`;
}

/** The first one made wins: whoever copies the hash of another tenant's key must not draw its calls to himself. */
function oldest(keys: readonly ApiKey[]): ApiKey | undefined {
  if (keys.length < 2) return keys[0];
  return keys.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))[0];
}

function scopesOf({ spec }: ApiKey): readonly Scope[] {
  return spec.scopes ?? SCOPES;
}

function toPrincipal(key: ApiKey): Principal {
  return {
    keyId: key.metadata.uid ?? '',
    namespace: key.metadata.namespace ?? '',
    name: key.metadata.name,
    scopes: scopesOf(key),
    ...(key.spec.limits && { limits: key.spec.limits }),
  };
}

/**
 * Finds keys by the SHA-256 of their token. The index is over hashes, which tell nothing about a token, and the same
 * work is done whether the token is missing, unknown, expired, revoked or good.
 */
export function createAuthenticator(deps: { apiKeys: ReadStore<ApiKey>; clock: Clock }): Authenticator {
  const known = new WeakMap<ApiKey, Principal>();
  return {
    authenticate(token) {
      const hash = hashToken(token ?? '');
      const key = oldest(deps.apiKeys.by('hash', hash));
      const equal = timingSafeEqual(Buffer.from(hash), Buffer.from(key?.spec.hash ?? NO_HASH));
      if (key === undefined || !equal || !isUsable(key, deps.clock.now())) return undefined;
      let principal = known.get(key);
      if (principal === undefined) known.set(key, (principal = toPrincipal(key)));
      return principal;
    },
    isValid(principal, scope) {
      const [key] = deps.apiKeys.by('uid', principal.keyId);
      return key !== undefined && isUsable(key, deps.clock.now()) && scopesOf(key).includes(scope);
    },
  };
}
