import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { findPrincipal, getPrincipal, type PrincipalScope, setPrincipal } from '../../../access/principal.ts';
import { closeAfterUnreadBody } from '../bodies/json-body.ts';
import { ApiError } from '../errors/api-error.ts';
import { type ErrorFamily, familyOf, takesAnthropicKey } from '../errors/families.ts';
import { LIMITS } from '../schema.ts';
import { pathOf, type Step } from '../step.ts';
import type { Authenticator } from './authenticator.ts';
import type { LastUsed } from './last-used.ts';

/** RFC 6750 section 2.1: the scheme in any case, one space or more, then b64token. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/**
 * The token of a request to a path below the API base. Anthropic's clients send it as X-Api-Key, which counts at the
 * endpoints that they call alone, and only without Authorization.
 */
export function tokenOf(
  { authorization, 'x-api-key': key }: Pick<IncomingHttpHeaders, 'authorization'> & { 'x-api-key'?: unknown },
  path: string,
): string | undefined {
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1];
  if (!takesAnthropicKey(path)) return undefined;
  return typeof key === 'string' && key !== '' ? key : undefined;
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

function sendUnauthorized(response: ServerResponse, family: ErrorFamily): void {
  const { headers, body } = unauthorized(family);
  response.writeHead(401, { ...headers, 'content-length': body.length });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

function notReadYet(): ApiError {
  const message = 'This replica has just started and has not read the API keys yet. Try again in a second.';
  return new ApiError('cluster_unavailable', message, { retryAfterSeconds: 1 });
}

/** Lets only valid keys pass. Runs before anything reads the body, the parameters or the path. */
export function authenticate(authenticator: Authenticator, lastUsed: LastUsed): Step {
  return (request, response, next) => {
    if (findPrincipal(request) !== undefined) return next();
    const path = pathOf(request);
    const token = tokenOf(request.headers, path);
    const principal = authenticator.authenticate(token);
    if (principal === undefined) {
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      // A client whose key is over, and who sends a long script, shall see that and no broken connection.
      closeAfterUnreadBody(request, response, LIMITS.body);
      if (token !== undefined && !authenticator.knowsKeys) throw notReadYet();
      sendUnauthorized(response, familyOf(path));
      return;
    }
    setPrincipal(request, principal);
    lastUsed.touch(principal);
    next();
  };
}

export function requireScope(scope: PrincipalScope): Step {
  return (request, _response, next) => {
    const { scopes } = getPrincipal(request);
    if (scopes.includes(scope)) return next();
    const advice =
      scope === 'fleet:read'
        ? 'No key can have it. Sign in to the dashboard as somebody who may list nodes, pods, GPUPools, GPUInstances and TenantLimits in the whole cluster.'
        : `The key has ${scopes.join(', ')}. Create another key.`;
    throw new ApiError('insufficient_scope', `This needs the scope ${scope}. ${advice}`);
  };
}
