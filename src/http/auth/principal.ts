import type { IncomingMessage } from 'node:http';
import type { ApiKey, Scope } from '../../resources/api-key.ts';

/** Who calls: an API key, and the tenant it speaks for. */
export interface Principal {
  /** metadata.uid of the APIKey: never the token, so it may stand in logs and metrics. */
  keyId: string;
  /** The tenant. */
  namespace: string;
  /** metadata.name of the APIKey. */
  name: string;
  scopes: readonly Scope[];
  limits?: NonNullable<ApiKey['spec']['limits']>;
}

const principals = new WeakMap<IncomingMessage, Principal>();

export function setPrincipal(request: IncomingMessage, principal: Principal): void {
  principals.set(request, principal);
}

/** The caller of an authenticated request. Throws when authentication did not run before: a fault of ours. */
export function getPrincipal(request: IncomingMessage): Principal {
  const principal = principals.get(request);
  if (principal === undefined) throw new Error('The request was not authenticated.');
  return principal;
}

/** The caller, when the request came so far. */
export function findPrincipal(request: IncomingMessage): Principal | undefined {
  return principals.get(request);
}
