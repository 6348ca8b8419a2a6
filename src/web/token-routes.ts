import { hash } from 'node:crypto';
import { Router } from 'express';
import { z } from 'zod';
import { PRINCIPAL_SCOPES } from '../access/principal.ts';
import { personSigningKey, publicPart, signPersonToken } from '../access/person-token.ts';
import { parseBody } from '../http/interface/validate.ts';
import { namespaceSchema } from './key-record.ts';
import { memoryCounter } from '../runtime/counter.ts';
import { scopesOf, TOKEN_MS, tooManyTokens } from './scopes.ts';
import { credentialOf, sessionIdOf } from './session.ts';
import { requireSession, sessionOver, signInOf, type WebContext } from './session-routes.ts';
import { sealForToken, Vouching } from './vouching.ts';

/** Of one sign-in. A page asks for one every 15 s, for each namespace that it shows, and each costs the API server twenty reviews. */
const TOKENS_PER_MINUTE = 120;

const tokenSchema = z.strictObject({ namespace: namespaceSchema });
const vouchSchema = z.strictObject({
  session: z.string(),
  namespace: namespaceSchema,
  scope: z.enum(PRINCIPAL_SCOPES),
});

/**
 * POST /token: what a page calls /api/v1 with. GET /signing-key: what the api role checks such a token with. POST /vouch:
 * whether the sign-in in it still holds, for what goes on for longer than the token.
 */
export function tokenRouter(context: WebContext): Router {
  const { clock, readJson, sessionKey, users } = context;
  const router = Router({ caseSensitive: true });
  const asked = memoryCounter();

  router.get('/signing-key', async (_request, response) => {
    response.json(publicPart(personSigningKey(await sessionKey())));
  });

  router.post('/token', requireSession(context), readJson, async (request, response) => {
    const { namespace } = parseBody(tokenSchema, request.body);
    const { session } = signInOf(request);
    const { total, resetMs } = await asked.add(hash('sha256', credentialOf(session)), 1);
    if (total > TOKENS_PER_MINUTE) throw tooManyTokens(TOKENS_PER_MINUTE, Math.ceil(resetMs / 1000));
    // Asked now: what was true some seconds ago would be true for longer than half a minute with a token on top.
    const user = await users.review(session);
    if (user === undefined) throw sessionOver(session);
    const scopes = await scopesOf(context, user, namespace);
    // A token counts in seconds.
    const expires = Math.floor(Math.min(clock.now() + TOKEN_MS, session.expires) / 1000) * 1000;
    const secret = await sessionKey();
    const { expires: until } = session;
    const sealed = sealForToken(session, secret);
    // Two sign-ins with one credential are two callers: one may end and the other go on.
    const id = hash('sha256', sessionIdOf(session)).slice(0, 32);
    const claims = { id, username: user.username, namespace, scopes, expires, until, session: sealed };
    const token = await signPersonToken(claims, personSigningKey(secret));
    const expires_at = new Date(expires).toISOString();
    response.status(201).json({ object: 'token', namespace, scopes, token, expires_at });
  });

  const vouching = new Vouching(context);
  router.post('/vouch', readJson, async (request, response) => {
    const until = await vouching.ask(parseBody(vouchSchema, request.body));
    response.json({ object: 'vouch', until: until ?? null });
  });
  return router;
}
