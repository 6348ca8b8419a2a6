import type { webcrypto } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, RequestHandler, Response } from 'express';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { hopByHop } from '../lib/relay-headers.ts';
import { Shares } from '../lib/shares.ts';
import { Pool } from '../lib/lean-http.ts';

/** Calls of one replica that are passed on at the same time: of all clients, and of one address. */
const CALLS_AT_ONCE = 64;
const CALLS_OF_ADDRESS = 16;
/** Bytes. The longest body is a Kubernetes token of 16 KiB. */
const MAX_BODY = 64 * 1024;
/** Milliseconds that a call may take from its start to the end of its answer, and the connection alone. */
const CALL_MS = 30_000;
const CONNECT_MS = 3_000;
/** Milliseconds. Below the time after which the dashboard closes an idle connection. */
const KEEP_ALIVE_MS = 4_000;
const RETRY_SECONDS = 2;

/** What the dashboard reads of a request. API keys and everything else stay here. */
const TO_DASHBOARD =
  /^(?:accept|accept-encoding|content-type|cookie|host|if-none-match|origin|sec-fetch-.*|x-berth-.*)$/;

/** When a replica is not told where the dashboard is. */
export const NO_DASHBOARD: RequestHandler = () => {
  throw new ApiError('not_found', 'This address has no dashboard. Make API keys with `berth keys create` or kubectl.');
};

/** Passes requests for /dashboard on to the role that may make API keys, which the api role may not. */
export class DashboardProxy {
  readonly #pool: Pool;
  readonly #calls = new Shares(CALLS_AT_ONCE);

  /** @param url scheme and host of the dashboard's Service */
  constructor(url: URL) {
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
    if (!request.originalUrl.startsWith('/')) throw new ApiError('bad_request', 'Send the path alone: /dashboard.');
    const address = request.ip ?? '';
    if (this.#calls.take(address, 1, CALLS_OF_ADDRESS) !== 'taken') {
      throw new ApiError('rate_limit_exceeded', 'Too many calls of the dashboard are under way. Try again.', {
        retryAfterSeconds: RETRY_SECONDS,
      });
    }
    try {
      await this.#pass(request, response);
    } finally {
      this.#calls.give(address, 1);
    }
  };

  /** The public part of the key that the dashboard signs people's tokens with. Rejects with a 503 when it does not answer. */
  async signingKey(): Promise<webcrypto.JsonWebKey> {
    try {
      const path = '/dashboard/api/signing-key';
      const { statusCode, body } = await this.#pool.request({
        method: 'GET',
        path,
        signal: AbortSignal.timeout(CONNECT_MS),
      });
      if (statusCode === 200) return (await body.json()) as webcrypto.JsonWebKey;
      await body.dump();
    } catch (error) {
      throw unavailable(error);
    }
    throw unavailable(undefined);
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }

  async #pass(request: Request, response: Response): Promise<void> {
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    try {
      const { statusCode, headers, body } = await this.#pool.request({
        method: request.method,
        path: request.originalUrl,
        headers: headersOf(request, response),
        body: bodyOf(request),
        signal: AbortSignal.any([gone.signal, AbortSignal.timeout(CALL_MS)]),
      });
      response.status(statusCode);
      const hops = hopByHop(headers.connection);
      for (const [name, value = []] of Object.entries(headers)) {
        if (!hops.has(name)) response.setHeader(name, value);
      }
      await pipeline(body, response);
    } catch (error) {
      if (gone.signal.aborted) return;
      if (response.headersSent) response.destroy();
      else if (error instanceof ApiError) throw error;
      else throw unavailable(error);
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
    ...(hasBody(request) && { 'content-length': request.headers['content-length'] }),
    'x-forwarded-for': request.ip,
    'x-forwarded-proto': request.protocol,
    'x-request-id': String(response.getHeader('x-request-id') ?? ''),
  };
}

function hasBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The body as it comes. Throws and fails with 413 as soon as it is too long. */
function bodyOf(request: Request): Readable | null {
  if (!hasBody(request)) return null;
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY) throw tooLong();
  return Readable.from(bounded(request), { objectMode: false });
}

async function* bounded(request: Request): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY) throw tooLong();
    yield chunk;
  }
}

function tooLong(): ApiError {
  return new ApiError('payload_too_large', `The body is longer than ${MAX_BODY} bytes. Send a shorter one.`);
}
