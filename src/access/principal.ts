import type { IncomingMessage } from 'node:http';
import { type ApiKey, createdByKey, type Priority, SCOPES } from '../resources/api-key.ts';
import { covers } from '../resources/tenants/ceilings.ts';

/**
 * What a principal may do. `fleet:read` shows all tenants: no key has it, because the administrators of a namespace
 * write the scopes of its keys.
 */
export const PRINCIPAL_SCOPES = [...SCOPES, 'fleet:read'] as const;
export type PrincipalScope = (typeof PRINCIPAL_SCOPES)[number];

/** The caller of a request: an API key, or a person who signed in to the dashboard, and the tenant. */
export interface Principal {
  /** metadata.uid of the APIKey, or the id of a sign-in. It may stand in logs and metrics; the token may not. */
  keyId: string;
  /** The tenant. */
  namespace: string;
  /** metadata.name of the APIKey, or the name of the person. */
  name: string;
  scopes: readonly PrincipalScope[];
  limits?: NonNullable<ApiKey['spec']['limits']>;
  /** Names of models, or starts of names with a * at the end. Absent: every model of the tenant. */
  models?: readonly string[];
  /** Of its model calls among those of the tenant. Absent: normal. */
  priority?: Priority;
  /** Of a person: when the dashboard must vouch for them again, in ms since the epoch. */
  vouchedUntil?: number;
  /**
   * Asks the dashboard until when the person has a scope, as the cluster says now; undefined when they have lost it. Rejects
   * when the dashboard does not answer.
   */
  vouch?: (scope: PrincipalScope) => Promise<number | undefined>;
  /** Of a person: the sign-in, which only the dashboard can read. */
  session?: string;
}

/** What the dashboard is asked about a person again. */
export interface VouchQuestion {
  /** As the token of the person has it. */
  session: string;
  namespace: string;
  scope: PrincipalScope;
}

/** Asks the dashboard, as {@link Principal.vouch} does. */
export type AskDashboard = (asked: VouchQuestion) => Promise<number | undefined>;

/** Which principal it is, and not what it may do. */
export type PrincipalRef = Pick<Principal, 'keyId' | 'namespace'>;

/** The principal is a property of the request: a WeakMap with an entry per request slows every garbage collection. */
const PRINCIPAL = Symbol('principal');

interface Authenticated extends IncomingMessage {
  [PRINCIPAL]?: Principal;
}

export function setPrincipal(request: Authenticated, principal: Principal): void {
  request[PRINCIPAL] = principal;
}

/** The caller of an authenticated request. Throws when authentication did not run before: a bug of Berth. */
export function getPrincipal(request: Authenticated): Principal {
  const principal = request[PRINCIPAL];
  if (principal === undefined) throw new Error('The request was not authenticated.');
  return principal;
}

/** The caller, if authentication has accepted the request. */
export function findPrincipal(request: Authenticated): Principal | undefined {
  return request[PRINCIPAL];
}

/** A principal as `createdBy` of instances and `by` of token records have it: key/NAME or person/NAME. */
export function asCreatedBy({ name, vouchedUntil }: Pick<Principal, 'name' | 'vouchedUntil'>): string {
  return vouchedUntil === undefined ? createdByKey(name) : `person/${name}`;
}

/** Whether the key's own list allows the model. The tenant's models are another question. */
export function mayUseModel({ models }: { models?: readonly string[] | undefined }, name: string): boolean {
  return models === undefined || models.some((pattern) => covers(pattern, name));
}
