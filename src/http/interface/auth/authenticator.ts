import { timingSafeEqual } from 'node:crypto';
import { signInEnd } from '../../../access/person-token.ts';
import type { Principal } from '../../../access/principal.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { Clock } from '../../../lib/clock.ts';
import { type ApiKey, hashToken, type Scope, SCOPES } from '../../../resources/api-key.ts';

const NO_HASH = '0'.repeat(64);

function isUsable(key: ApiKey, now: number): boolean {
  const { revoked, expiresAt } = key.spec;
  if (revoked || key.metadata.deletionTimestamp !== undefined) return false;
  return expiresAt === undefined || Date.parse(expiresAt) > now;
}

function ageOf({ metadata }: ApiKey): string {
  return `${String(metadata.creationTimestamp)} ${metadata.uid}`;
}

/** The oldest key wins: a tenant that copies the hash of another tenant's key must not get that tenant's calls. */
function oldest(keys: readonly ApiKey[]): ApiKey | undefined {
  if (keys.length < 2) return keys[0];
  return keys.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))[0];
}

/** Without what is no scope of keys, whatever the object says. */
function scopesOf({ spec }: ApiKey): readonly Scope[] {
  return spec.scopes?.filter((scope) => SCOPES.includes(scope)) ?? SCOPES;
}

function toPrincipal(key: ApiKey): Principal {
  return {
    keyId: key.metadata.uid ?? '',
    namespace: key.metadata.namespace ?? '',
    name: key.metadata.name,
    scopes: scopesOf(key),
    ...(key.spec.limits && { limits: key.spec.limits }),
    ...(key.spec.models && { models: key.spec.models }),
  };
}

/**
 * Finds keys by the SHA-256 of their token. The index holds hashes, which say nothing about a token. The work is the
 * same for a token that is missing, unknown, expired, revoked or valid.
 */
export class Authenticator {
  readonly #deps: { apiKeys: ReadStore<ApiKey>; clock: Clock };
  readonly #principals = new WeakMap<ApiKey, Principal>();

  constructor(deps: { apiKeys: ReadStore<ApiKey>; clock: Clock }) {
    this.#deps = deps;
  }

  /** False until the first list of keys has arrived: until then every token is unknown. */
  get knowsKeys(): boolean {
    return this.#deps.apiKeys.hasSynced;
  }

  /** The caller that the token stands for; undefined when there is none, for whatever reason. */
  authenticate(token: string | undefined): Principal | undefined {
    const hash = hashToken(token ?? '');
    const key = oldest(this.#deps.apiKeys.by('hash', hash));
    const equal = timingSafeEqual(Buffer.from(hash), Buffer.from(key?.spec.hash ?? NO_HASH));
    if (key === undefined || !equal || !isUsable(key, this.#deps.clock.now())) return undefined;
    let principal = this.#principals.get(key);
    if (principal === undefined) this.#principals.set(key, (principal = toPrincipal(key)));
    return principal;
  }

  /**
   * Whether an authenticated caller is still valid and has the scope now. Of a person the token counts, or, where only
   * the id is known, the end of the sign-in.
   */
  isValid({ keyId, vouchedUntil, scopes }: Pick<Principal, 'keyId'> & Partial<Principal>, scope: Scope): boolean {
    const end = vouchedUntil ?? signInEnd(keyId);
    if (end !== undefined) return end > this.#deps.clock.now() && (scopes?.includes(scope) ?? true);
    const [key] = this.#deps.apiKeys.by('uid', keyId);
    return key !== undefined && isUsable(key, this.#deps.clock.now()) && scopesOf(key).includes(scope);
  }
}
