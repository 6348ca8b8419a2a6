import type { RequestHandler } from 'express';
import type { Scope } from '../../resources/api-key.ts';
import { ApiError } from '../errors/api-error.ts';
import { familyOf } from '../errors/families.ts';
import { closeAfterUnreadBody } from '../middleware/unread-body.ts';
import type { Authenticator } from './authenticator.ts';
import { tokenOf } from './bearer.ts';
import type { LastUsed } from './last-used.ts';
import { getPrincipal, setPrincipal } from '../../access/principal.ts';
import { sendUnauthorized } from './unauthorized.ts';

/** Lets only good keys pass. Runs before bodies, parameters and paths are looked at. */
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

/** Lets only keys with the scope pass. */
export function requireScope(scope: Scope): RequestHandler {
  return (request, _response, next) => {
    const { scopes } = getPrincipal(request);
    if (scopes.includes(scope)) return next();
    throw new ApiError(
      'insufficient_scope',
      `This needs a key with the scope ${scope}; the key has ${scopes.join(', ')}. Create another key.`,
    );
  };
}
