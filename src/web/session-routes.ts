import { parseCookie } from 'cookie';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { KubeClient } from '../kube/client/client.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import type { ApiKey } from '../resources/api-key.ts';
import { memoryCounter } from '../runtime/counter.ts';
import { ApiError } from '../http/errors/api-error.ts';
import { jsonBody } from '../http/middleware/json-body.ts';
import { parseBody } from '../http/middleware/validate.ts';
import { reviewToken, tokenExpiry } from './reviews.ts';
import { openSession, sealSession, type Session, SessionTooLargeError, type User } from './session.ts';

export interface WebDeps {
  client: KubeClient;
  stores: { apiKeys: ReadStore<ApiKey> };
  clock: Clock;
  log: Logger;
  /** The key that seals sessions, the same on all replicas. Read once, on first use. */
  sessionKey: () => Promise<Buffer>;
}

const COOKIE = 'berth_session';
const LIFETIME_MS = 60 * 60_000;
/** Per address: each sign-in costs the API server a review, and a limit slows down guessing. */
const SIGN_INS_PER_MINUTE = 30;

const signInSchema = z.strictObject({ token: z.string().min(1).max(16_384) });

const users = new WeakMap<Request, User>();

/** The user who signed in. There is one behind {@link requireSession}. */
export function userOf(request: Request): User {
  const user = users.get(request);
  if (user === undefined) throw new Error('The request has no session.');
  return user;
}

function cookieOf(request: Request): string | undefined {
  return parseCookie(request.headers.cookie ?? '')[COOKIE];
}

function setCookie(request: Request, response: Response, value: string, maxAgeMs: number): void {
  response.cookie(COOKIE, value, {
    httpOnly: true,
    sameSite: 'strict',
    path: '/dashboard',
    // Over plain http, as on a laptop, a browser would drop a Secure cookie.
    secure: request.secure,
    maxAge: maxAgeMs,
  });
}

/**
 * Lets only the dashboard page make changes. Another site cannot add this header without a preflight, which nothing here
 * answers, and browsers say which site a request comes from.
 */
export const refuseForeignSites: RequestHandler = (request, _response, next) => {
  if (request.method === 'GET' || request.method === 'HEAD') return next();
  const site = request.headers['sec-fetch-site'];
  const foreign = site !== undefined && site !== 'same-origin';
  if (!foreign && request.headers['x-berth-dashboard'] === '1') return next();
  throw new ApiError(
    'not_allowed',
    'Only the dashboard page may call this: send X-Berth-Dashboard: 1 from its origin.',
  );
};

export function requireSession({ sessionKey, clock }: WebDeps): RequestHandler {
  return async (request, _response, next) => {
    const cookie = cookieOf(request);
    const session =
      cookie === undefined ? undefined : openSession(cookie, { key: await sessionKey(), now: clock.now() });
    if (session === undefined) throw new ApiError('not_signed_in', 'Sign in with a Kubernetes token.');
    users.set(request, session.user);
    next();
  };
}

function seal(session: Session, key: Buffer): string {
  try {
    return sealSession(session, key);
  } catch (error) {
    if (!(error instanceof SessionTooLargeError)) throw error;
    throw new ApiError('not_allowed', `${error.message} Use the token of a service account.`);
  }
}

/** POST, GET and DELETE /session. */
export function sessionRouter(deps: WebDeps): Router {
  const router = Router({ caseSensitive: true });
  const attempts = memoryCounter();

  router.post('/', jsonBody, async (request, response) => {
    const { total, resetMs } = await attempts.add(request.ip ?? '', 1);
    if (total > SIGN_INS_PER_MINUTE) {
      const seconds = Math.ceil(resetMs / 1000);
      throw new ApiError('rate_limit_exceeded', `There were too many sign-ins from this address. Wait ${seconds} s.`, {
        retryAfterSeconds: seconds,
      });
    }
    const token = parseBody(signInSchema, request.body).token.trim();
    const user = await reviewToken(deps.client, token);
    if (user === undefined) {
      throw new ApiError(
        'not_signed_in',
        'The cluster rejects this token. Create another one: kubectl create token NAME.',
      );
    }
    const now = deps.clock.now();
    const expires = Math.min(now + LIFETIME_MS, tokenExpiry(token) ?? Number.POSITIVE_INFINITY);
    const sealed = seal({ user, expires }, await deps.sessionKey());
    setCookie(request, response, sealed, expires - now);
    deps.log.info({ user: user.username }, 'Signed in to the dashboard');
    response.status(201).json({ object: 'session', username: user.username });
  });

  router.get('/', requireSession(deps), (request, response) => {
    response.json({ object: 'session', username: userOf(request).username });
  });

  router.delete('/', (request, response) => {
    setCookie(request, response, '', 0);
    response.json({ object: 'session', deleted: true });
  });
  return router;
}
