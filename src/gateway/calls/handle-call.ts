import { randomUUID } from 'node:crypto';
import type { Request, Response } from 'express';
import { DialectError, type ClientError, type Dialect, type Usage } from '../dialects/index.ts';
import type { ModelRouterDeps } from '../deps.ts';
import type { Denied, Reservation } from '../key-limiter.ts';
import type { Principal } from '../principal.ts';
import { admit, type Incoming } from './admit.ts';
import type { Call } from './call.ts';
import { ClientWriter } from './client-writer.ts';
import { BodyTooLargeError, ClientGoneError, OverloadedError, readBody } from './read-body.ts';
import { nextCallId } from './call-id.ts';
import { serve, type CallOutcome, type Served } from './serve.ts';

export const MODELS_SCOPE = 'models';
/** As documented for the model endpoints. */
export const BODY_MAX = 32 * 1024 * 1024;
const OVERLOAD_RETRY_MS = 1000;
/** Rough, for reservations alone: English text has about four characters to a token. */
const BYTES_PER_TOKEN = 4;

/** What is known of a call when it ends, whatever way it ends. */
interface Ledger {
  model?: string;
  served: Served;
  usage?: Usage | undefined;
}

/** Serves one POST of a dialect from the first byte in to the last one out. Never rejects. */
export async function handleCall(
  deps: ModelRouterDeps,
  dialect: Dialect,
  request: Request,
  response: Response,
): Promise<void> {
  const startedAt = deps.now();
  const principal = deps.getPrincipal(request);
  const id = nextCallId();
  const client = new ClientWriter(response, dialect, requestIdOf(response) ?? id);
  const ledger: Ledger = { served: { outcome: 'client_error', attempts: 0 } };
  const denied = deps.limiter.enter(principal);
  try {
    if (denied !== undefined) throw new LimitError(denied);
    await run({ deps, client, ledger }, request, {
      id,
      dialect,
      principal,
      startedAt,
      sessionHeader: sessionOf(request),
    });
  } catch (error) {
    ledger.served.outcome = answerError(deps, client, error);
  } finally {
    if (denied === undefined) deps.limiter.leave(principal);
    record(deps, { dialect, principal, startedAt }, ledger);
  }
}

interface Running {
  deps: ModelRouterDeps;
  client: ClientWriter;
  ledger: Ledger;
}

type Origin = Omit<Incoming, 'bytes'>;

async function run({ deps, client, ledger }: Running, request: Request, origin: Origin): Promise<void> {
  const { principal } = origin;
  requireScope(principal);
  requireIdentity(request);
  if (principal.limits !== undefined) {
    const denied = await deps.limiter.countRequest(principal);
    if (denied !== undefined) throw new LimitError(denied);
  }
  const { bytes, held } = await readBody(request, BODY_MAX, deps.bodies);
  try {
    const { call, pool } = await admit(deps, { ...origin, bytes });
    ledger.model = pool.model;
    const reservation = principal.limits === undefined ? undefined : await reserve(deps, call);
    try {
      ledger.served = await serve(deps, call, pool, client);
      ledger.usage = usageOf(call, ledger.served);
    } finally {
      const { inputTokens, outputTokens } = ledger.usage ?? { inputTokens: 0, outputTokens: 0 };
      if (reservation !== undefined) await reservation.settle(inputTokens + outputTokens);
    }
  } finally {
    deps.bodies.give(held);
  }
}

async function reserve(deps: ModelRouterDeps, { principal, bytes }: Call): Promise<Reservation> {
  const reserved = await deps.limiter.reserveTokens(principal, Math.ceil(bytes.length / BYTES_PER_TOKEN));
  if ('settle' in reserved) return reserved;
  throw new LimitError(reserved);
}

/** What the engine reported; for an answer cut off before it did, an estimate of what was made for the client. */
function usageOf(call: Call, { receiver, outcome, firstByteAt }: Served): Usage | undefined {
  if (receiver === undefined) return undefined;
  const { usage, estimatedOutputTokens } = receiver;
  if (usage !== undefined) {
    // Early events report the input with an output of 0 or 1.
    return outcome === 'ok' ? usage : { ...usage, outputTokens: Math.max(usage.outputTokens, estimatedOutputTokens) };
  }
  if (firstByteAt === undefined || outcome === 'client_error') return undefined;
  return {
    inputTokens: Math.ceil(call.bytes.length / BYTES_PER_TOKEN),
    outputTokens: estimatedOutputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

class LimitError extends Error {
  override readonly name = 'LimitError';
  readonly retryAfterMs: number;

  constructor({ message, retryAfterMs }: Denied) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** @throws DialectError 403 */
export function requireScope({ scopes }: Principal): void {
  if (scopes.includes(MODELS_SCOPE)) return;
  throw new DialectError({
    status: 403,
    message: `This API key lacks the scope '${MODELS_SCOPE}'. Create a key with it on the dashboard.`,
    type: 'permission_error',
    code: 'insufficient_scope',
  });
}

function requireIdentity({ headers }: Request): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return;
  throw new DialectError({
    status: 415,
    message: 'Compressed request bodies are not supported: send the body without Content-Encoding.',
    code: 'unsupported_content_encoding',
  });
}

/** Tells the client what went wrong, and says how the call counts. */
export function answerError(
  { logger }: Pick<ModelRouterDeps, 'logger'>,
  client: ClientWriter,
  error: unknown,
): CallOutcome {
  if (client.gone || error instanceof ClientGoneError) return 'client_closed';
  if (error instanceof LimitError) {
    client.sendError({ status: 429, message: error.message, code: 'rate_limit_exceeded' }, error.retryAfterMs);
    return 'rate_limited';
  }
  if (error instanceof OverloadedError) {
    client.sendError(
      { status: 503, message: 'The gateway holds too many requests at the moment. Try again shortly.' },
      OVERLOAD_RETRY_MS,
    );
    return 'unavailable';
  }
  if (error instanceof BodyTooLargeError) {
    client.sendError({ status: 413, message: error.message, code: 'request_too_large' });
    return 'client_error';
  }
  if (error instanceof DialectError) {
    client.sendError(error, error.status === 503 ? OVERLOAD_RETRY_MS : undefined);
    return error.status < 500 ? 'client_error' : 'unavailable';
  }
  const incident = randomUUID();
  logger.error({ err: error, incident }, 'model call failed');
  const failure: ClientError = { status: 500, message: `The gateway failed. The incident id is ${incident}.` };
  client.sendError(failure);
  return 'upstream_error';
}

function record(
  deps: ModelRouterDeps,
  origin: Pick<Origin, 'dialect' | 'principal' | 'startedAt'>,
  ledger: Ledger,
): void {
  const { dialect, principal, startedAt } = origin;
  const { served, usage, model } = ledger;
  const { outcome, attempts, firstByteAt, route = 'none' } = served;
  deps.metrics.record({
    dialect,
    model,
    keyId: principal.keyId,
    route,
    outcome,
    seconds: (deps.now() - startedAt) / 1000,
    firstByteSeconds: firstByteAt === undefined ? undefined : (firstByteAt - startedAt) / 1000,
    attempts,
    usage,
  });
}

/** What the agents send to keep a conversation on one server: Claude Code, Codex, OpenCode. */
const SESSION_HEADERS = ['x-claude-code-session-id', 'session_id', 'session-id', 'x-session-affinity'] as const;

function sessionOf({ headers }: Request): string | undefined {
  for (const name of SESSION_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

/** The id that the app in front gave the request, so that header, log and error body agree. */
export function requestIdOf(response: Response): string | undefined {
  const header = response.getHeader('x-request-id');
  return typeof header === 'string' ? header : undefined;
}
