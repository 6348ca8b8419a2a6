import { timingSafeEqual } from 'node:crypto';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import { type ApiKey, hashToken, type Scope, SCOPES } from '../resources/api-key.ts';
import { signInEnd } from './person-token.ts';
import { mayUseModel, type Principal, type PrincipalRef } from './principal.ts';
import type { Tenants } from './tenants.ts';

const NO_HASH = '0'.repeat(64);
/** What a person hears whose sign-in or role is gone. */
export const SIGN_IN_OVER = 'The sign-in is over, or its role was taken away. Sign in again.';

function isUsable(key: ApiKey, now: number): boolean {
  const { revoked, expiresAt } = key.spec;
  if (revoked || key.metadata.deletionTimestamp !== undefined) return false;
  return expiresAt === undefined || Date.parse(expiresAt) > now;
}

function isOlder({ metadata: a }: ApiKey, { metadata: b }: ApiKey): boolean {
  const [one = '', other = ''] = [a.creationTimestamp, b.creationTimestamp];
  return one === other ? (a.uid ?? '') < (b.uid ?? '') : one < other;
}

/** The oldest key wins: a tenant that copies the hash of another tenant's key must not get that tenant's calls. */
function oldest(keys: readonly ApiKey[]): ApiKey | undefined {
  const [first, ...others] = keys;
  return first && others.reduce((known, key) => (isOlder(key, known) ? key : known), first);
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
    ...(key.spec.priority && { priority: key.spec.priority }),
  };
}

export interface AuthenticatorDeps {
  apiKeys: ReadStore<ApiKey>;
  tenants: Pick<Tenants, 'isKnown' | 'refusal'>;
  clock: Clock;
}

/** A caller that was authenticated before. Of some only the id and the tenant are known. */
export type Caller = PrincipalRef & Pick<Partial<Principal>, 'vouchedUntil' | 'scopes' | 'vouch'>;

/** What a caller uses. */
export interface Use {
  scope: Scope;
  /** The model that it calls. */
  model?: string | undefined;
  /** It cannot go on with the next token of a person, as streams do: what the dashboard says takes the place of one. */
  isOneCall?: true;
}

/**
 * Finds keys by the SHA-256 of their token. The index holds hashes, which say nothing about a token. The work is the
 * same for a token that is missing, unknown, expired, revoked or valid.
 */
export class Authenticator {
  readonly #deps: AuthenticatorDeps;
  readonly #principals = new WeakMap<ApiKey, Principal>();

  constructor(deps: AuthenticatorDeps) {
    this.#deps = deps;
  }

  /** False until the first lists of keys and namespaces have arrived: until then every token is unknown. */
  get knowsKeys(): boolean {
    return this.#deps.apiKeys.hasSynced && this.#deps.tenants.isKnown;
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

  /** The caller of a call that waited as it is now; undefined when it may call no model any more. */
  current(principal: Principal): Principal | undefined {
    if (this.refusal(principal, { scope: 'models' }) !== undefined) return undefined;
    const [key] = this.#deps.apiKeys.by('uid', principal.keyId);
    return key === undefined ? principal : toPrincipal(key);
  }

  /** Why a caller may not use something now, in words for the caller; undefined when it may. */
  refusal(caller: Caller, use: Use): string | undefined {
    const end = caller.vouchedUntil ?? signInEnd(caller.keyId);
    const refused = end === undefined ? this.#refusalOfKey(caller, use) : this.#refusalOfPerson(caller, end, use);
    if (refused !== undefined) return refused;
    const why = this.#deps.tenants.refusal(caller.namespace);
    return why && `Access to namespace ${caller.namespace} has ended: ${why}`;
  }

  /** Of a person the token counts, or, where only the id is known, the end of the sign-in. */
  #refusalOfPerson({ scopes }: Caller, end: number, { scope }: Use): string | undefined {
    return end > this.#deps.clock.now() && (scopes?.includes(scope) ?? true) ? undefined : SIGN_IN_OVER;
  }

  #refusalOfKey({ keyId }: Caller, { scope, model }: Use): string | undefined {
    const [key] = this.#deps.apiKeys.by('uid', keyId);
    if (key === undefined || !isUsable(key, this.#deps.clock.now()))
      return 'The API key is over: it was revoked or deleted, or has expired. Use another key.';
    if (!scopesOf(key).includes(scope)) return `The API key has lost the scope ${scope}. Use another key.`;
    if (model === undefined || mayUseModel(key.spec, model)) return undefined;
    return `The API key may no longer call the model '${model.slice(0, 200)}'. Use another key or another model.`;
  }
}
