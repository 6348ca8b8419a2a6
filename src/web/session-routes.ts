import { parseCookie } from 'cookie';
import { type Request, type RequestHandler, type Response, Router } from 'express';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { KubeClient } from '../kube/client/client.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { clientNetwork } from '../lib/client-network.ts';
import type { Clock } from '../lib/clock.ts';
import type { ApiKey } from '../resources/api-key.ts';
import { memoryCounter } from '../runtime/counter.ts';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { parseBody } from '../http/interface/validate.ts';
import type { EndedSessions } from './ended-sessions.ts';
import type { KeyDays } from './key-life.ts';
import type { OidcProvider } from './oidc-provider.ts';
import type { User } from './reviews.ts';
import { newSessionId, openSession, sealSession, type Session, SessionTooLargeError } from './session.ts';
import { CODE_MS, isFromThisMachine, type SignInCodes } from './sign-in-codes.ts';
import { explainRefusal, tokenExpiry } from './sign-in-token.ts';
import type { SignedInUsers } from './signed-in-users.ts';

export interface WebDeps {
  client: KubeClient;
  stores: { apiKeys: ReadStore<ApiKey> };
  clock: Clock;
  log: Logger;
  /** The key that seals sessions, the same on all replicas. Read once, on first use. */
  sessionKey: () => Promise<Buffer>;
  /** The sessions that people have ended, on whichever replica. */
  ended: EndedSessions;
  /** Where people sign in beside the cluster's own tokens; undefined: nowhere. */
  oidc?: OidcProvider | undefined;
  /** Whether the installation has webhooks, so that the page shows them. */
  webhooks: boolean;
  /** How long new API keys live. */
  keyDays: KeyDays;
  /** Links that sign in once; undefined: there are none. */
  codes?: SignInCodes | undefined;
}

/** The dependencies, and what all routes of the dashboard share. */
export interface WebContext extends WebDeps {
  users: SignedInUsers;
  /** Reads a body within the share of its address. */
  readJson: RequestHandler;
}

/**
 * The prefix makes browsers take the cookie from this host alone and only with Secure (RFC 6265bis section 4.1.3.2): a
 * page in an instance, on a host below this one, cannot set one in its place.
 */
const COOKIE = '__Host-berth_session';
const LIFETIME_MS = 60 * 60_000;
/** Per address: each sign-in costs the API server a review, and a limit slows down guessing. */
const SIGN_INS_PER_MINUTE = 30;

/** Of one person, whatever its sign-ins: each call costs the API server some reviews. */
const CALLS_PER_MINUTE = 120;

const signInSchema = z.strictObject({ token: z.string().min(1) });
const codeSchema = z.strictObject({ code: z.string().min(1).max(100) });

const SIGNED_IN = new WeakMap<Request, { user: User; session: Session }>();

/** The user who signed in. There is one behind {@link requireSession}. */
export function userOf(request: Request): User {
  return signInOf(request).user;
}

/** The user and the session of a request behind {@link requireSession}. */
export function signInOf(request: Request): { user: User; session: Session } {
  const found = SIGNED_IN.get(request);
  if (found === undefined) throw new Error('The request has no session.');
  return found;
}

function cookieOf(request: Request): string | undefined {
  return parseCookie(request.headers.cookie ?? '')[COOKIE];
}

function setCookie(response: Response, value: string, maxAgeMs: number): void {
  // Over plain HTTP browsers keep it for localhost alone.
  response.cookie(COOKIE, value, { httpOnly: true, sameSite: 'strict', path: '/', secure: true, maxAge: maxAgeMs });
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

/** The session of the browser, whether its account is still there or not. */
async function sessionIn(
  request: Request,
  { sessionKey, clock }: Pick<WebContext, 'sessionKey' | 'clock'>,
): Promise<Session | undefined> {
  const cookie = cookieOf(request);
  return cookie === undefined ? undefined : openSession(cookie, { key: await sessionKey(), now: clock.now() });
}

/** The provider that still knows who signs out here, if people can sign out there. Without an answer nobody is held up. */
async function stillSignedInAt(session: Session | undefined, { oidc, log }: WebContext): Promise<string | null> {
  if (oidc === undefined || session === undefined || !('access' in session)) return null;
  try {
    return (await oidc.endUrl()) !== undefined ? oidc.name : null;
  } catch (error) {
    log.warn({ err: error }, 'The identity provider does not answer');
    return null;
  }
}

export function requireSession(context: WebContext): RequestHandler {
  const { ended, users } = context;
  return async (request, _response, next) => {
    const session = await sessionIn(request, context);
    if (session === undefined) throw new ApiError('not_signed_in', 'Sign in.');
    const user = await users.userOf(session);
    if (user === undefined) throw (await ended.has(session)) ? signedOut() : sessionOver(session);
    SIGNED_IN.set(request, { user, session });
    next();
  };
}

function signedOut(): ApiError {
  return new ApiError('not_signed_in', 'This session was signed out. Sign in again.');
}

/** The 401 of a session whose account is gone, or whose token. */
export function sessionOver(session: Session): ApiError {
  const why =
    'token' in session ? explainRefusal(session.token) : 'The identity provider ended this sign-in. Sign in again.';
  return new ApiError('not_signed_in', why);
}

/** Gives the browser its session. Throws `SessionTooLargeError`. */
export function setSession(
  response: Response,
  { session, key, now }: { session: Session; key: Buffer; now: number },
): void {
  setCookie(response, sealSession(session, key), session.expires - now);
}

/** Runs before the body is read. */
export function limitSignIns(): RequestHandler {
  const attempts = memoryCounter();
  return async (request, _response, next) => {
    const { total, resetMs } = await attempts.add(clientNetwork(request.ip), 1);
    if (total <= SIGN_INS_PER_MINUTE) return next();
    const seconds = Math.ceil(resetMs / 1000);
    throw new ApiError('rate_limit_exceeded', `There were too many sign-ins from this address. Wait ${seconds} s.`, {
      retryAfterSeconds: seconds,
    });
  };
}

/** Behind {@link requireSession}. */
export function limitPerson(): RequestHandler {
  const calls = memoryCounter();
  return async (request, _response, next) => {
    const { total, resetMs } = await calls.add(userOf(request).username, 1);
    if (total <= CALLS_PER_MINUTE) return next();
    const seconds = Math.ceil(resetMs / 1000);
    const message = `You called the dashboard more than ${CALLS_PER_MINUTE} times in a minute. Close other tabs of it, or wait ${seconds} s.`;
    throw new ApiError('rate_limit_exceeded', message, { retryAfterSeconds: seconds });
  };
}

/** The session of a token that the cluster takes. Throws the 401 of any other. */
async function beginSession(token: string, { clock, users }: WebContext): Promise<{ user: User; session: Session }> {
  const expires = Math.min(clock.now() + LIFETIME_MS, tokenExpiry(token) ?? Number.POSITIVE_INFINITY);
  const user = await users.review({ token, expires });
  if (user === undefined) throw sessionOver({ token, expires });
  return { user, session: { id: newSessionId(user.username), token, expires } };
}

const refuseOtherMachines: RequestHandler = (request, _response, next) => {
  if (isFromThisMachine(request)) return next();
  throw new ApiError(
    'not_allowed',
    'A link that signs in works only on the machine that Berth runs on. Open it there, at http://localhost.',
  );
};

/** POST, GET and DELETE /session, and GET /session/ways: how people sign in. POST /session/codes and /session/by-code: links. */
export function sessionRouter(context: WebContext): Router {
  const { clock, codes, ended, log, oidc, readJson, sessionKey, webhooks, keyDays } = context;
  const router = Router({ caseSensitive: true });
  const answerOf = ({ username }: User) => ({ object: 'session', username, webhooks, key_days: keyDays });

  async function signIn(token: string, response: Response): Promise<void> {
    const { user, session } = await beginSession(token, context);
    const now = clock.now();
    try {
      setSession(response, { session, key: await sessionKey(), now });
    } catch (error) {
      if (!(error instanceof SessionTooLargeError)) throw error;
      throw new ApiError('not_allowed', `${error.message} Create one with "kubectl create token".`);
    }
    log.info({ user: user.username }, 'Signed in to the dashboard');
    response.status(201).json(answerOf(user));
  }

  router.post('/', limitSignIns(), readJson, async (request, response) => {
    await signIn(parseBody(signInSchema, request.body).token.trim(), response);
  });

  if (codes !== undefined) {
    router.post('/codes', refuseOtherMachines, limitSignIns(), readJson, async (request, response) => {
      const { token } = parseBody(signInSchema, request.body);
      const { user } = await beginSession(token, context);
      log.info({ user: user.username }, 'Made a link that signs in to the dashboard');
      response.status(201).json({ object: 'sign_in_code', code: codes.add(token), seconds: CODE_MS / 1000 });
    });

    router.post('/by-code', refuseOtherMachines, limitSignIns(), readJson, async (request, response) => {
      const token = codes.take(parseBody(codeSchema, request.body).code);
      if (token !== undefined) return signIn(token, response);
      throw new ApiError(
        'not_signed_in',
        'This link was used, or is older than a minute. Make a new one: npm run sign-in',
      );
    });
  }

  router.get('/ways', (_request, response) => {
    response.json({ object: 'sign_in_ways', oidc: oidc === undefined ? null : { name: oidc.name } });
  });

  router.get('/', requireSession(context), (request, response) => {
    response.json(answerOf(userOf(request)));
  });

  router.delete('/', async (request, response) => {
    setCookie(response, '', 0);
    const session = await sessionIn(request, context);
    if (session !== undefined) await ended.end(session);
    const still = await stillSignedInAt(session, context);
    response.json({ object: 'session', deleted: true, still_signed_in_at: still });
  });
  return router;
}
