import type { IncomingMessage } from 'node:http';
import type { ApiKey, Scope } from '../resources/api-key.ts';

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

/** On the request itself: an entry of a WeakMap per request is work for every garbage collection. */
const PRINCIPAL = Symbol('principal');

interface Authenticated extends IncomingMessage {
  [PRINCIPAL]?: Principal;
}

export function setPrincipal(request: Authenticated, principal: Principal): void {
  request[PRINCIPAL] = principal;
}

/** The caller of an authenticated request. Throws when authentication did not run before: a fault of ours. */
export function getPrincipal(request: Authenticated): Principal {
  const principal = request[PRINCIPAL];
  if (principal === undefined) throw new Error('The request was not authenticated.');
  return principal;
}

/** The caller, when the request came so far. */
export function findPrincipal(request: Authenticated): Principal | undefined {
  return request[PRINCIPAL];
}
