import type { webcrypto } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { AskDashboard } from '../access/principal.ts';
import { dashboardBodies } from '../http/interface/bodies/body-shares.ts';
import { hasBody } from '../http/interface/bodies/json-body.ts';
import { readBody } from '../http/interface/bodies/read-body.ts';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { clientNetwork } from '../lib/client-network.ts';
import type { Clock } from '../lib/clock.ts';
import { HangGuard } from '../lib/hang-guard.ts';
import { Pool } from '../lib/lean-http.ts';
import { hopByHop } from '../lib/relay-headers.ts';
import { FairShares } from '../lib/shares.ts';

/** Calls of one replica that are passed on at the same time. A client alone has 16. */
const CALLS_AT_ONCE = 64;
/** A client may have as many as a third of what is free. */
const FACTOR = 1 / 3;
/** Milliseconds that a call may take from its start to the end of its answer, and the connection alone. */
const CALL_MS = 30_000;
const CONNECT_MS = 3_000;
/** Milliseconds. Below the time after which the dashboard closes an idle connection. */
const KEEP_ALIVE_MS = 4_000;
const RETRY_SECONDS = 2;

/** What the dashboard reads of a request. API keys and everything else stay here. */
const TO_DASHBOARD =
  /^(?:accept|accept-encoding|content-type|cookie|host|if-none-match|origin|sec-fetch-.*|x-berth-.*)$/;

const vouchSchema = z.object({ until: z.number().nullable() });

/** When a replica is not told where the dashboard is. */
export const NO_DASHBOARD: RequestHandler = () => {
  throw new ApiError('not_found', 'This address has no dashboard. Make API keys with `berth keys create` or kubectl.');
};

/** Passes requests for /dashboard on to the role that may make API keys, which the api role may not. */
export class DashboardProxy {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #calls = new FairShares(CALLS_AT_ONCE, FACTOR);
  readonly #bodiesOf = dashboardBodies();
  readonly #guard: HangGuard;

  /** @param url scheme and host of the dashboard's Service */
  constructor(url: URL, clock: Clock) {
    this.#clock = clock;
    this.#guard = new HangGuard(clock);
    this.#pool = new Pool(url.origin, {
      connections: CALLS_AT_ONCE,
      connect: { timeout: CONNECT_MS },
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: CALL_MS,
      bodyTimeout: CALL_MS,
    });
  }

  readonly handle: RequestHandler = async (request, response) => {
    // A request line may name a whole URL; the app has matched its path.
    if (!request.originalUrl.startsWith('/')) throw new ApiError('bad_request', 'Send only the path: /dashboard.');
    // A body that stalls holds its bytes and no place.
    const body = hasBody(request)
      ? await readBody(request, this.#bodiesOf(request), this.#clock, (bytes) => bytes)
      : null;
    const client = clientNetwork(request.ip);
    if (this.#calls.take(client, 1) !== 'taken') {
      throw new ApiError('rate_limit_exceeded', 'Too many calls of the dashboard are under way. Try again.', {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    try {
      await this.#pass(request, response, body);
    } finally {
      this.#calls.give(client, 1);
    }
  };

  /** The public part of the key that the dashboard signs people's tokens with. Rejects with a 503 when it does not answer. */
  async signingKey(): Promise<webcrypto.JsonWebKey> {
    try {
      return await this.#guard.ask(() => this.#readSigningKey());
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Until when a person has the scope; undefined when they have lost it. Rejects when the dashboard does not answer. */
  readonly vouch: AskDashboard = async (asked) => {
    const answer = await this.#guard.ask(() => this.#ask('POST', '/dashboard/api/vouch', asked));
    return vouchSchema.parse(answer).until ?? undefined;
  };

  async #readSigningKey(): Promise<webcrypto.JsonWebKey> {
    return (await this.#ask('GET', '/dashboard/api/signing-key')) as webcrypto.JsonWebKey;
  }

  async #ask(method: 'GET' | 'POST', path: string, asked?: object): Promise<unknown> {
    const { statusCode, body } = await this.#pool.request({
      method,
      path,
      signal: AbortSignal.timeout(CONNECT_MS),
      ...(asked && {
        headers: { 'content-type': 'application/json', 'x-berth-dashboard': '1' },
        body: JSON.stringify(asked),
      }),
    });
    if (statusCode === 200) return await body.json();
    await body.dump();
    throw new Error(`The dashboard answered ${method} ${path} with ${statusCode}.`);
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #pass(request: Request, response: Response, body: Buffer | null): Promise<void> {
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    response.once('close', leave);
    try {
      const answer = await this.#pool.request({
        method: request.method,
        path: request.originalUrl,
        headers: headersOf(request, response),
        body,
        signal: AbortSignal.any([gone.signal, AbortSignal.timeout(CALL_MS)]),
      });
      response.status(answer.statusCode);
      const hops = hopByHop(answer.headers.connection);
      for (const [name, value = []] of Object.entries(answer.headers)) {
        if (!hops.has(name)) response.setHeader(name, value);
      }
      // From here on the pipeline looks after a client that leaves.
      response.off('close', leave);
      await pipeline(answer.body, response);
    } catch (error) {
      if (response.destroyed) return;
      if (!response.headersSent) throw unavailable(error);
      response.destroy();
    }
  }
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('dashboard_unavailable', 'The dashboard does not answer. Try again in some seconds.', {
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}

/** The headers that the dashboard gets, and where the client comes from, as this replica saw it. */
function headersOf(request: Request, response: Response): IncomingHttpHeaders {
  const passed = Object.entries(request.headers).filter(([name]) => TO_DASHBOARD.test(name));
  return {
    ...Object.fromEntries(passed),
    'x-forwarded-for': request.ip,
    'x-forwarded-proto': request.protocol,
    'x-request-id': String(response.getHeader('x-request-id') ?? ''),
  };
}
