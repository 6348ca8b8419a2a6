import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';
import type { Scope } from '../../resources/api-key.ts';
import { ApiError } from '../errors/api-error.ts';
import { type ErrorFamily, familyOf } from '../errors/families.ts';
import { closeAfterUnreadBody } from '../middleware/json-body.ts';
import type { Authenticator } from './authenticator.ts';
import type { LastUsed } from './last-used.ts';
import { getPrincipal, setPrincipal } from '../../access/principal.ts';

/** RFC 6750 section 2.1: the scheme in any case, one space or more, then b64token. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** The token of a request. Anthropic's clients send it as X-Api-Key. With both headers, only Authorization counts. */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1];
  const key = headers['x-api-key'];
  return typeof key === 'string' && key !== '' ? key : undefined;
}

/** The bodies of section 7 of the interface's specification. /messages has the same as /models. */
const MODEL_BODY = Buffer.from('{"error":{"message":"Invalid API key.","type":"invalid_request_error","code":401}}');
const COMPUTE_BODY = Buffer.from('{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}');

/** Answers 401 with the exact headers and body of the specification. Express's `json()` would add a charset. */
function sendUnauthorized(response: ServerResponse, family: ErrorFamily): void {
  const body = family === 'compute' ? COMPUTE_BODY : MODEL_BODY;
  response.writeHead(401, {
    'cache-control': 'no-cache, private',
    'content-type': 'application/json',
    'access-control-allow-origin': '*',
    'content-length': body.length,
  });
  response.end(response.req.method === 'HEAD' ? undefined : body);
}

/** Lets only valid keys pass. Runs before anything reads the body, the parameters or the path. */
export function authenticate(authenticator: Authenticator, lastUsed: LastUsed): RequestHandler {
  return (request, response, next) => {
    const principal = authenticator.authenticate(tokenOf(request.headers));
    if (principal === undefined) {
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      closeAfterUnreadBody(request, response);
      sendUnauthorized(response, familyOf(request.path));
      return;
    }
    setPrincipal(request, principal);
    lastUsed.touch(principal);
    next();
  };
}

export function requireScope(scope: Scope): RequestHandler {
  return (request, _response, next) => {
    const { scopes } = getPrincipal(request);
    if (scopes.includes(scope)) return next();
    throw new ApiError(
      'insufficient_scope',
      `This needs the scope ${scope}. The key has ${scopes.join(', ')}. Create another key.`,
    );
  };
}
