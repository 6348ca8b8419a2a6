import type { Dispatcher } from 'undici';
import type { FailureKind } from '../balance/breaker.ts';
import type { Member, Pool } from '../balance/pool.ts';
import { hash32 } from '../balance/hash.ts';
import { promptPrefix, readUpstreamError, type ClientError } from '../dialects/index.ts';
import type { Endpoint } from '../endpoint.ts';
import { Attempt, type Outcome } from './attempt.ts';
import { isKept, type Call } from './call.ts';
import { codeOf, diedIdle, isTimeout, judgeStatus, retryAfterMs } from './apply-outcome.ts';
import type { ClientWriter } from './client-writer.ts';
import { keepAnswer, type KeepDeps } from './keep.ts';
import { planFor, type Plan } from './upstream-request.ts';
import { receiverFor, type AnswerReceiver } from './stream-receiver.ts';
import type { RetryBudget } from '../balance/retry-budget.ts';

export interface ServeDeps extends KeepDeps {
  dispatcher: Dispatcher;
  retries: RetryBudget;
  /** Milliseconds since the epoch: for Retry-After dates. */
  wallClock: () => number;
  /** Milliseconds, monotonic. */
  now: () => number;
}

export type CallOutcome =
  | 'ok'
  | 'client_error'
  | 'rate_limited'
  | 'unavailable'
  | 'upstream_error'
  | 'interrupted'
  | 'client_closed';

/** How a call ended, for the accounts. */
export interface Served {
  outcome: CallOutcome;
  /** Absent when no endpoint was reached. */
  route?: 'native' | 'translated';
  endpoint?: string;
  attempts: number;
  receiver?: AnswerReceiver;
  firstByteAt?: number;
}

interface Failure {
  error: ClientError;
  retryAfterMs?: number;
}

const MAX_ATTEMPTS = 3;
/** A prefix longer than this is told apart by its start alone. */
const KEY_CHARS = 32_768;
const FIRST_BYTE_TIMEOUT_MS = 600_000;
const SILENCE_TIMEOUT_MS = 300_000;
const REST_AFTER_429_MS = 1000;
const NO_SERVER_RETRY_MS = 5000;

/**
 * Sends a call to an endpoint of the pool and the answer to the client. Before the first byte of the answer another
 * endpoint is tried when one fails, three in all, never the same twice; after it, never.
 *
 * @throws DialectError when the chosen endpoint cannot serve the call
 */
export async function serve(deps: ServeDeps, call: Call, pool: Pool, client: ClientWriter): Promise<Served> {
  // Alone, an endpoint gets everything.
  const key = pool.members.length > 1 ? routingKey(call) : undefined;
  const tried: Endpoint[] = [];
  const served: Served = { outcome: 'unavailable', attempts: 0 };
  let failure: Failure | undefined;
  deps.retries.earn();
  if (call.inspection.stream) client.keepAlive();
  while (served.attempts < MAX_ATTEMPTS) {
    const member = pool.pick(key, tried);
    if (member === undefined || (served.attempts > 0 && !deps.retries.spend())) break;
    tried.push(member.endpoint);
    served.attempts += 1;
    const next = await tryMember({ deps, call, client, served }, member);
    if (next === undefined) return served;
    failure = next;
  }
  failure ??= unavailable(pool);
  client.sendError(failure.error, failure.retryAfterMs);
  return served;
}

interface Serving {
  deps: ServeDeps;
  call: Call;
  client: ClientWriter;
  served: Served;
}

/** @returns undefined when the client has its answer or is gone, else why another endpoint should be tried */
async function tryMember(serving: Serving, member: Member): Promise<Failure | undefined> {
  const { deps, call, client, served } = serving;
  const { endpoint } = member;
  const plan = planFor(call, member);
  served.route = plan.native ? 'native' : 'translated';
  served.endpoint = endpoint.name;
  client.route = `${served.route}; endpoint=${endpoint.name}; attempt=${served.attempts}`;
  endpoint.inFlight += 1;
  try {
    let sent = await send(serving, endpoint, plan);
    if (sent.outcome.kind === 'broken' && !client.started && endpoint.answered && diedIdle(sent.outcome.error)) {
      sent = await send(serving, endpoint, plan);
    }
    const { outcome, receiver } = sent;
    served.receiver = receiver;
    const failure = settle(serving, endpoint, sent);
    if (outcome.kind === 'complete') {
      if (served.outcome === 'ok' && isKept(call)) await keepAnswer(deps, call, receiver);
      receiver.finish();
    }
    return failure;
  } finally {
    endpoint.inFlight -= 1;
  }
}

interface Sent {
  outcome: Outcome;
  receiver: AnswerReceiver;
  /** As the breaker says. */
  begunAt: number;
}

async function send({ deps, call, client, served }: Serving, endpoint: Endpoint, plan: Plan): Promise<Sent> {
  const begunAt = endpoint.breaker.begin();
  // Of an answer that comes whole nobody knows when it began.
  let waiting = call.inspection.stream ? 1 : 0;
  endpoint.waiting += waiting;
  const begun = (): void => {
    endpoint.waiting -= waiting;
    waiting = 0;
  };
  const receiver = receiverFor(call, plan, client, () => {
    served.firstByteAt = deps.now();
    begun();
    // A stream may last for minutes: nobody else waits for its end.
    if (call.inspection.stream) endpoint.breaker.release();
  });
  const attempt = new Attempt(receiver);
  client.onGone(() => attempt.abort());
  if (!client.gone) deps.dispatcher.dispatch(requestOf(call, endpoint, plan), attempt);
  const outcome = await attempt.outcome;
  client.onGone(undefined);
  begun();
  return { outcome, receiver, begunAt };
}

function requestOf(call: Call, { origin }: Endpoint, { path, body }: Plan): Dispatcher.DispatchOptions {
  const accept = call.inspection.stream ? 'text/event-stream' : 'application/json';
  return {
    origin,
    path,
    method: 'POST',
    headers: ['content-type', 'application/json', 'accept', accept, 'x-request-id', call.id],
    body,
    headersTimeout: FIRST_BYTE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
  };
}

function settle(serving: Serving, endpoint: Endpoint, { outcome, receiver, begunAt }: Sent): Failure | undefined {
  const { client, served } = serving;
  switch (outcome.kind) {
    case 'complete':
      endpoint.answered = true;
      endpoint.breaker.succeed();
      served.outcome = receiver.error === undefined ? 'ok' : 'upstream_error';
      return undefined;
    case 'aborted':
      endpoint.breaker.release();
      served.outcome = 'client_closed';
      return undefined;
    case 'refused':
      endpoint.answered = true;
      return settleRefusal(serving, endpoint, outcome, begunAt);
    case 'broken':
      break;
  }
  const { error } = outcome;
  endpoint.breaker.fail(failureKind(error), begunAt);
  if (client.started) {
    served.outcome = 'interrupted';
    receiver.fail({ status: 502, message: 'The model server broke off in the middle of the answer.' });
    return undefined;
  }
  served.outcome = 'upstream_error';
  if (!isTimeout(error)) return { error: { status: 502, message: brokenMessage(error) } };
  client.sendError({ status: 504, message: 'The model server did not answer in time.' });
  return undefined;
}

function failureKind(error: Error): FailureKind {
  if (isTimeout(error)) return 'unavailable';
  // Without a code it is not the network: the answer could not be understood.
  return codeOf(error) === '' ? 'error' : 'connection';
}

function brokenMessage(error: Error): string {
  if (codeOf(error) === '') return 'The answer of the model server could not be understood.';
  return 'The model server closed the connection before it answered.';
}

function settleRefusal(
  { deps, client, served }: Serving,
  endpoint: Endpoint,
  { status, headers, body }: Extract<Outcome, { kind: 'refused' }>,
  begunAt: number,
): Failure | undefined {
  const verdict = judgeStatus(status);
  if (verdict.breaker === undefined) endpoint.breaker.succeed();
  else endpoint.breaker.fail(verdict.breaker, begunAt);
  const wait =
    retryAfterMs(headers['retry-after'], deps.wallClock()) ?? (status === 429 ? REST_AFTER_429_MS : undefined);
  if (wait !== undefined && verdict.failover) endpoint.breaker.rest(wait);
  const failure = { error: readUpstreamError(status, body), ...(wait !== undefined && { retryAfterMs: wait }) };
  if (verdict.failover) {
    served.outcome = status === 429 ? 'rate_limited' : 'upstream_error';
    return failure;
  }
  served.outcome = status < 500 ? 'client_error' : 'upstream_error';
  client.sendError(failure.error, failure.retryAfterMs);
  return undefined;
}

function unavailable(pool: Pool): Failure {
  const wait = pool.waitMs;
  const message =
    wait === undefined
      ? `The model '${pool.model}' has no ready server at the moment. Try again later.`
      : `Every server of the model '${pool.model}' is failing at the moment. Try again shortly.`;
  return { error: { status: 503, message }, retryAfterMs: wait ?? NO_SERVER_RETRY_MS };
}

function routingKey({ inspection, history, dialect, body, sessionHeader }: Call): number | undefined {
  const session = inspection.sessionHint ?? sessionHeader;
  if (session !== undefined) return hash32(session.slice(0, KEY_CHARS));
  const prefix = history.length === 0 ? inspection.promptPrefix : promptPrefix(dialect, body, history);
  const text = prefix.join('\0');
  return text.length < prefix.length ? undefined : hash32(text.slice(0, KEY_CHARS));
}
