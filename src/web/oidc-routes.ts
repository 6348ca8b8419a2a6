import { hkdfSync } from 'node:crypto';
import { parseCookie } from 'cookie';
import { type Request, type Response, Router } from 'express';
import { z } from 'zod';
import { queryOf } from '../http/interface/step.ts';
import { limitSignIns, setSession, type WebContext } from './session-routes.ts';
import { seal, SessionTooLargeError, unseal } from './session.ts';
import type { Flow } from './oidc-provider.ts';
import { ClaimError } from './oidc-user.ts';

/** Of one sign-in, until the browser comes back. Lax: it comes from another site. */
const COOKIE = '__Host-berth_sign_in';
const FLOW_MS = 10 * 60_000;

const flowSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Milliseconds since the epoch. */
  expires: z.number(),
});

/** A key of its own: the text of one cookie works in the place of no other. */
function keyOf(sessionKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', sessionKey, '', 'berth oidc sign-in', 32));
}

function setFlow(response: Response, value: string, maxAge: number): void {
  response.cookie(COOKIE, value, { httpOnly: true, sameSite: 'lax', path: '/', secure: true, maxAge });
}

function flowOf(request: Request, key: Buffer, now: number): Flow | undefined {
  const text = parseCookie(request.headers.cookie ?? '')[COOKIE];
  const flow = flowSchema.safeParse(text === undefined ? undefined : unseal(text, keyOf(key)));
  return flow.success && flow.data.expires > now ? flow.data : undefined;
}

/** Why a sign-in failed, as the page knows it. What the provider said is for the log alone. */
function problemOf(error: unknown): 'claims' | 'too-large' | 'refused' | 'unavailable' {
  if (error instanceof ClaimError) return 'claims';
  if (error instanceof SessionTooLargeError) return 'too-large';
  return (error as { status?: number }).status === 503 ? 'unavailable' : 'refused';
}

/**
 * Sign-in at the OpenID provider. GET /begin leads the browser there, GET /callback back, and GET /end to where the
 * provider signs the person out: each answers with a redirect, because a person looks at it.
 */
export function oidcRouter(context: WebContext): Router {
  const { clock, log, oidc, sessionKey } = context;
  const router = Router({ caseSensitive: true });
  if (oidc === undefined) return router;
  const backToPage = (response: Response, problem?: string): void =>
    response.redirect(303, problem === undefined ? '/dashboard' : `/dashboard#sign-in=${problem}`);

  router.use((_request, response, next) => {
    response.set('cache-control', 'no-store');
    next();
  });

  router.get('/begin', limitSignIns(), async (_request, response) => {
    try {
      const { url, flow } = await oidc.begin();
      setFlow(response, seal({ ...flow, expires: clock.now() + FLOW_MS }, keyOf(await sessionKey())), FLOW_MS);
      response.redirect(303, url.href);
    } catch (error) {
      log.warn({ err: error }, 'The identity provider does not answer');
      backToPage(response, 'unavailable');
    }
  });

  router.get('/callback', limitSignIns(), async (request, response) => {
    const key = await sessionKey();
    const flow = flowOf(request, key, clock.now());
    // Whatever comes of it: a flow is good for one answer.
    setFlow(response, '', 0);
    if (flow === undefined) return backToPage(response, 'expired');
    try {
      const query = queryOf(request.originalUrl);
      const session = await oidc.finish(query, flow);
      setSession(response, { session, key, now: clock.now() });
      log.info({ user: session.user.username }, 'Signed in to the dashboard');
      backToPage(response);
    } catch (error) {
      log.warn({ err: error }, 'A sign-in at the identity provider failed');
      backToPage(response, problemOf(error));
    }
  });

  router.get('/end', limitSignIns(), async (_request, response) => {
    try {
      response.redirect(303, (await oidc.endUrl())?.href ?? '/dashboard');
    } catch (error) {
      log.warn({ err: error }, 'The identity provider does not answer');
      backToPage(response, 'unavailable');
    }
  });
  return router;
}
