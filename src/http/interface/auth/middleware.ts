import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Authenticator } from '../../../access/authenticator.ts';
import { findPrincipal, getPrincipal, type PrincipalScope, setPrincipal } from '../../../access/principal.ts';
import type { Tenants } from '../../../access/tenants.ts';
import { closeAfterUnreadBody } from '../bodies/json-body.ts';
import { ApiError } from '../errors/api-error.ts';
import { type ErrorFamily, familyOf, takesOtherKeys } from '../errors/families.ts';
import { LIMITS } from '../schema.ts';
import { pathOf, type Step } from '../step.ts';
import type { LastUsed } from './last-used.ts';

/** RFC 6750 section 2.1: the scheme in any case, one space or more, then b64token. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** Where clients send their key: all of them, Anthropic's, and those of Azure. */
const KEY_HEADERS = ['authorization', 'x-api-key', 'api-key'] as const;

/**
 * The token of a request to a path below the API base. Some clients of models send it as X-Api-Key or Api-Key, which
 * counts at the endpoints of models alone, and only without Authorization.
 */
export function tokenOf(
  {
    authorization,
    ...others
  }: Pick<IncomingHttpHeaders, 'authorization'> & { 'x-api-key'?: unknown; 'api-key'?: unknown },
  path: string,
): string | undefined {
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1];
  if (!takesOtherKeys(path)) return undefined;
  const [key, ...more] = [others['x-api-key'], others['api-key']].filter((one) => one !== undefined);
  return typeof key === 'string' && key !== '' && more.every((one) => one === key) ? key : undefined;
}

/** The token of a request; none where it has two credentials: a proxy in front may have looked at the other one. */
export function tokenOfRequest(request: IncomingMessage): string | undefined {
  const isTwice = KEY_HEADERS.some((name) => (request.headersDistinct[name]?.length ?? 0) > 1);
  return isTwice ? undefined : tokenOf(request.headers, pathOf(request));
}

/** The bodies of section 7 of the interface's specification. /messages has the same as /models. */
const MODEL_BODY = Buffer.from('{"error":{"message":"Invalid API key.","type":"invalid_request_error","code":401}}');
const COMPUTE_BODY = Buffer.from('{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}');

const HEADERS = {
  'cache-control': 'no-cache, private',
  'content-type': 'application/json',
  'access-control-allow-origin': '*',
} as const;

/** The 401 of the specification: its exact headers and body. Express's `json()` would add a charset. */
export function unauthorized(family: ErrorFamily): { headers: typeof HEADERS; body: Buffer } {
  return { headers: HEADERS, body: family === 'compute' ? COMPUTE_BODY : MODEL_BODY };
}

function sendUnauthorized(request: IncomingMessage, response: ServerResponse): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  // A client whose key is over, and who sends a long script, shall see that and no broken connection.
  closeAfterUnreadBody(request, response, LIMITS.body);
  const { headers, body } = unauthorized(familyOf(pathOf(request)));
  response.writeHead(401, { ...headers, 'content-length': body.length });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

function notReadYet(): ApiError {
  const message = 'This replica has just started and has not read the keys and tenants yet. Try again in a second.';
  return new ApiError('cluster_unavailable', message, { retryAfterSeconds: 1 });
}

/**
 * Lets only valid keys pass. Runs before anything reads the body, the parameters or the path.
 * @param strangers lets requests without a valid key have their answer
 */
export function authenticate({
  authenticator,
  lastUsed,
  strangers,
}: {
  authenticator: Authenticator;
  lastUsed: LastUsed;
  strangers: Step;
}): Step {
  return (request, response, next) => {
    if (findPrincipal(request) !== undefined) return next();
    const token = tokenOfRequest(request);
    const principal = authenticator.authenticate(token);
    if (principal === undefined) {
      if (token !== undefined && !authenticator.knowsKeys) throw notReadYet();
      return strangers(request, response, () => sendUnauthorized(request, response));
    }
    setPrincipal(request, principal);
    lastUsed.touch(principal);
    next();
  };
}

/**
 * Lets only callers of tenants pass, keys and people. A namespace that goes takes its keys along, so they are invalid; one
 * that is no tenant may become one.
 */
export function requireTenant(tenants: Pick<Tenants, 'isKnown' | 'isGone' | 'refusal'>): Step {
  return (request, response, next) => {
    const { namespace } = getPrincipal(request);
    const why = tenants.refusal(namespace);
    if (why === undefined) return next();
    if (!tenants.isKnown) throw notReadYet();
    if (tenants.isGone(namespace)) {
      sendUnauthorized(request, response);
      return;
    }
    throw new ApiError('not_a_tenant', `Berth serves nothing here: ${why}`);
  };
}

export function requireScope(scope: PrincipalScope): Step {
  return (request, _response, next) => {
    const { scopes } = getPrincipal(request);
    if (scopes.includes(scope)) return next();
    const advice =
      scope === 'fleet:read'
        ? 'No key can have it. Sign in to the dashboard as a person who may list nodes, pods, GPUPools, GPUInstances and TenantLimits in the whole cluster.'
        : `The key has ${scopes.join(', ')}. Create another key.`;
    throw new ApiError('insufficient_scope', `This needs the scope ${scope}. ${advice}`);
  };
}
