import type { IncomingHttpHeaders } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import { retryAfterMs } from '../../lib/retry-after.ts';
import type { FailureKind } from '../balance/breaker.ts';
import { HungError, LostError } from '../balance/hang-watch.ts';
import {
  BROKE_OFF,
  DialectError,
  failedStream,
  isOverflow,
  readUpstreamError,
  type ClientError,
  type StreamTranslator,
} from '../dialects/index.ts';
import type { FallbackReason } from '../../resources/model-servers/names.ts';
import type { EngineCredential } from '../../resources/model-servers/engine-credential.ts';
import type { Endpoint } from '../endpoint.ts';
import type { Charge } from '../queue/fair-line.ts';
import { AnswerShareError } from './answer-share.ts';
import { AnswerTooLongError, DivergedError, type AnswerReceiver } from './answer-receiver.ts';
import type { Outcome } from './attempt.ts';
import type { Call, CallOutcome } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import { withoutKey } from './without-key.ts';

/** How a call ended, for metrics. */
export interface Served {
  outcome: CallOutcome;
  /** Absent when no endpoint was reached. */
  route?: 'native' | 'translated';
  /** What the server that began the answer put between texts of the system. */
  joinsSystem?: string | undefined;
  attempts: number;
  /** How many servers broke the connection while they had the request, which may be what broke them. */
  crashes: number;
  receiver?: AnswerReceiver;
  /** Milliseconds, monotonic. */
  firstByteAt?: number;
  /** How often another server went on with the answer. */
  continuations: number;
  /** What it took of its turn, where it waited for one. */
  charge?: Charge;
  /** It went to another model than it named. */
  fallback?: { to: string; why: FallbackReason };
}

/** How one request to one endpoint ended. */
export interface Result {
  outcome: Outcome;
  receiver: AnswerReceiver;
  /** As the breaker returned it. */
  begunAt: number;
  /** What the request had, which may be another one by now. */
  credential: EngineCredential | undefined;
}

/** Why another endpoint should be tried, and what the client gets when there is none. */
export interface Failure {
  error: ClientError;
  why: FallbackReason;
  retryAfterMs?: number | undefined;
  /** It did not wait, because another model has room. */
  hasRoomElsewhere?: boolean;
  /** The client has the start of the answer, and another server may go on with it. */
  begun?: StreamTranslator;
}

interface Serving {
  deps: { clock: Clock };
  call: Call;
  client: ClientWriter;
  served: Served;
  /** Another model may take what is too long for this one. */
  mayOverflow: boolean;
}

const REST_AFTER_429_MS = 1000;
const FULL_RETRY_MS = 1000;

/**
 * Applies the end of one request to the endpoint's breaker and the record of the call. Tells the client about a failure
 * that no other endpoint may mend; returns one that another may.
 */
export function applyOutcome(serving: Serving, endpoint: Endpoint, result: Result): Failure | undefined {
  const { served, call } = serving;
  const { outcome, receiver, begunAt, credential } = result;
  const tenant = call.principal.namespace;
  switch (outcome.kind) {
    case 'complete':
      endpoint.answered = true;
      endpoint.breaker.succeed(tenant);
      served.outcome = receiver.facts.error === undefined ? 'ok' : 'upstream_error';
      return undefined;
    case 'aborted':
      endpoint.breaker.release(tenant);
      served.outcome = serving.client.gone ? 'client_closed' : 'cut';
      tellCut(serving.client, receiver);
      return undefined;
    case 'refused': {
      const { status, headers, body } = outcome;
      const error = withoutKey(credential, readUpstreamError(status, body));
      const isTold = status < 300 || isOverflow(error);
      return applyRefusal(serving, endpoint, { status: isTold ? error.status : status, headers, error, begunAt });
    }
    case 'broken':
      break;
  }
  const { error } = outcome;
  // The engine's own error, in an answer with a good status.
  if (error instanceof DialectError && !serving.client.started)
    return applyRefusal(serving, endpoint, {
      status: error.status,
      headers: {},
      error: withoutKey(credential, error),
      begunAt,
    });
  blame(endpoint, tenant, error, begunAt);
  if (wasCrash(error)) served.crashes += 1;
  return applyBreak(serving, receiver, error);
}

function tellCut(client: ClientWriter, receiver: AnswerReceiver): void {
  const { cutBy, started } = client;
  if (cutBy === undefined) return;
  if (started) receiver.fail(cutBy);
  else client.sendError(cutBy);
}

/** Tells the breaker of a request that broke off. */
function blame({ breaker }: Endpoint, tenant: string, error: Error, begunAt: number): void {
  // The watch that found the hang has told the breaker.
  if (error instanceof HungError) return;
  const isOther = error instanceof LostError || error instanceof DivergedError || error instanceof AnswerShareError;
  if (isOther) breaker.release(tenant);
  else if (isTimeout(error)) breaker.failFor(tenant, 'unavailable', begunAt);
  else if (wasCrash(error)) breaker.failFor(tenant, 'connection', begunAt);
  else if (codeOf(error) === '') breaker.failFor(tenant, 'error', begunAt);
  else breaker.fail('connection', begunAt);
}

function applyBreak({ client, served }: Serving, receiver: AnswerReceiver, error: Error): Failure | undefined {
  if (error instanceof AnswerShareError) {
    // It would need as much room from another server.
    served.outcome = 'cut';
    if (client.started) receiver.fail(error.client);
    else client.sendError(error.client, FULL_RETRY_MS);
    return undefined;
  }
  if (client.started) {
    const isTooLong = error instanceof AnswerTooLongError;
    served.outcome = isTooLong ? 'cut' : 'interrupted';
    const begun = isTooLong ? undefined : receiver.unfinished;
    if (begun !== undefined) return { why: 'error', error: BROKE_OFF, begun };
    receiver.fail(isTooLong ? { status: 502, message: error.message } : BROKE_OFF);
    return undefined;
  }
  if (error instanceof AnswerTooLongError) {
    // It would be as long elsewhere, and has been paid for.
    served.outcome = 'cut';
    client.sendError({ status: 502, message: error.message });
    return undefined;
  }
  served.outcome = 'upstream_error';
  if (error instanceof HungError)
    return { why: 'error', error: { status: 504, message: 'The model server does not answer. Try again shortly.' } };
  if (!isTimeout(error)) return { why: 'error', error: { status: 502, message: brokenMessage(error) } };
  client.sendError({ status: 504, message: 'The model server did not answer in time. Try again later.' });
  return undefined;
}

interface Refusal {
  /** What decides whether another endpoint is tried. */
  status: number;
  headers: IncomingHttpHeaders;
  error: ClientError;
  begunAt: number;
}

function applyRefusal(
  { deps, call, client, served, mayOverflow }: Serving,
  endpoint: Endpoint,
  { status, headers, error: said, begunAt }: Refusal,
): Failure | undefined {
  const tenant = call.principal.namespace;
  endpoint.answered = true;
  const ofOperator = endpoint.isOutside ? judgeOutside(status) : undefined;
  const { failover, breaker } = ofOperator ?? judgeStatus(status);
  const error = ofOperator?.error ?? said;
  if (breaker === undefined) endpoint.breaker.succeed(tenant);
  else endpoint.breaker.failFor(tenant, breaker, begunAt);
  // It does not go on with what another one began.
  if (client.started) return { why: 'error', error: BROKE_OFF };
  const wait =
    retryAfterMs(headers['retry-after'], deps.clock.now()) ?? (status === 429 ? REST_AFTER_429_MS : undefined);
  if (failover) {
    if (wait !== undefined) endpoint.breaker.restFor(tenant, wait);
    served.outcome = status === 429 ? 'rate_limited' : 'upstream_error';
    return { why: status === 429 ? 'full' : 'error', error, retryAfterMs: wait };
  }
  served.outcome = status < 500 ? 'client_error' : 'upstream_error';
  if (mayOverflow && isOverflow(error)) return { why: 'overflow', error };
  sendRefusal(call, client, error, wait);
  return undefined;
}

/** Tells the client about an error in the way of its dialect. */
export function sendRefusal(call: Call, client: ClientWriter, error: ClientError, retryAfterMs?: number): void {
  const { id, createdAt, inspection, body, dialect } = call;
  const context = { id, createdAt, model: inspection.model, request: body };
  const failed = inspection.stream ? failedStream(dialect, error, context) : undefined;
  if (failed === undefined) client.sendError(error, retryAfterMs);
  else client.endStream(failed);
}

interface Judgement {
  failover: boolean;
  breaker?: FailureKind;
}

const NOT_TAKEN = 'The server of the model, which is outside the cluster,';

/**
 * What a server outside says to the operator, whose account and address of it these are: it is no answer for a caller, and
 * its words may tell of the account. Undefined for what it says to the caller.
 */
function judgeOutside(status: number): (Judgement & { error: ClientError }) | undefined {
  if (status === 429) {
    const message = `${NOT_TAKEN} takes no more calls at the moment. Try again later.`;
    return { failover: true, error: { status, message, code: 'rate_limit_exceeded' } };
  }
  const what =
    status >= 300 && status < 400
      ? 'answered with a redirect, which Berth does not follow'
      : (REFUSALS_OUTSIDE as Readonly<Record<number, string>>)[status];
  if (what === undefined) return undefined;
  const message = `${NOT_TAKEN} ${what}. Tell the operator of Berth, who can look at the conditions of the ModelServer.`;
  return { failover: true, breaker: 'unavailable', error: { status: 502, message, code: 'upstream_unauthorized' } };
}

const REFUSALS_OUTSIDE = {
  401: 'refused the credential',
  402: 'wants its account to be paid',
  403: 'refused the call for its account',
  404: 'does not know the model or the route',
  407: 'is behind a proxy that wants a credential',
} as const;

/** What an error status means. A 4xx other than 408 and 429 is the client's fault at every endpoint. */
function judgeStatus(status: number): Judgement {
  if (status === 429 || status === 408) return { failover: true };
  if (status === 502 || status === 503 || status === 504) return { failover: true, breaker: 'unavailable' };
  if (status >= 500) return { failover: true, breaker: 'error' };
  return { failover: false };
}

const RESET_CODES = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const TIMEOUT_CODES = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

/** The code of an error of the network. An answer that cannot be understood has none. */
function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/**
 * Whether the server closed a connection that was kept alive before it read this request, as every server does at some
 * moment. Undici reports how many bytes were ever read from the socket.
 */
export function diedIdle(error: Error): boolean {
  if (!RESET_CODES.has(codeOf(error))) return false;
  const socket = 'socket' in error ? error.socket : undefined;
  const bytesRead =
    typeof socket === 'object' && socket !== null && 'bytesRead' in socket ? socket.bytesRead : undefined;
  return bytesRead !== 0;
}

function isTimeout(error: Error): boolean {
  return TIMEOUT_CODES.has(codeOf(error)) || error instanceof LostError;
}

/** The server had the request, and closed the connection or died. */
function wasCrash(error: Error): boolean {
  return RESET_CODES.has(codeOf(error));
}

function brokenMessage(error: Error): string {
  if (codeOf(error) === '') return 'The model server sent an answer that the gateway cannot read. Try again.';
  return 'The model server closed the connection before it answered. Try again.';
}
