import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { CeilingsOf } from '../../access/ceilings.ts';
import type { Principal } from '../../access/principal.ts';
import type { Clock } from '../../lib/clock.ts';
import { hash32 } from '../balance/hash.ts';
import type { Member, Model } from '../balance/model.ts';
import { parseInput, promptPrefix, type TranslationContext } from '../dialects/index.ts';
import type { Endpoint, Flight } from '../endpoint.ts';
import type { RetryBudgets } from '../limits/retry-budgets.ts';
import { mayFetch, serves } from '../find-model.ts';
import type { ResponseStore } from '../state/response-store.ts';
import { traceAttempt } from '../trace.ts';
import type { Starts } from '../zero/starts.ts';
import type { AnswerReceiver } from './answer-receiver.ts';
import { applyOutcome, diedIdle, type Failure, type Result, type Served } from './apply-outcome.ts';
import { Attempt } from './attempt.ts';
import { isStored, letGo, type Call } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import { StreamReceiver } from './stream-receiver.ts';
import { dispatchOptions, upstreamRequest, type UpstreamRequest } from './upstream-request.ts';
import { WholeReceiver } from './whole-receiver.ts';

export interface ServeDeps {
  dispatcher: Dispatcher;
  retries: RetryBudgets;
  starts?: Starts | undefined;
  store: ResponseStore;
  ceilings: CeilingsOf;
  log: Logger;
  clock: Clock;
}

/** A call with its model. */
interface Serve {
  call: Call;
  model: Model;
  client: ClientWriter;
  /** Gives back what is held for a call that may wait for another server. */
  giveBack: () => void;
  /** Asks a call again that waited for another server. Rejects when it may not go on. */
  letInAgain: (model: Model) => Promise<void>;
}

const MAX_ATTEMPTS = 3;
/** A request that has broken two servers in a row is likely to break the third. */
const MAX_CRASHES = 2;
const NO_BYTES = Buffer.alloc(0);
/** Longer prefixes are compared by their first characters alone. */
const KEY_CHARS = 32_768;
const NO_SERVER_RETRY_MS = 5000;

/**
 * Sends a call to an endpoint of its model, and the answer to the client; once more when a server has come from zero
 * meanwhile. Throws DialectError when the chosen one cannot serve the call.
 */
export async function serve(deps: ServeDeps, { call, model, client, giveBack, letInAgain }: Serve): Promise<Served> {
  let { served, failure } = await serveOnce(deps, call, model, client);
  if (failure === undefined) return served;
  giveBack();
  const later = call.mayRetry && !client.started ? await deps.starts?.afterFailure(call, model, client) : undefined;
  if (later !== undefined) {
    await letInAgain(later);
    ({ served, failure } = await serveOnce(deps, call, later, client));
  }
  if (failure !== undefined) client.sendError(failure.error, failure.retryAfterMs);
  return served;
}

/**
 * When an endpoint fails before its first byte, another is tried: three in all, never the same twice, and one at most after
 * a crash. A failure has not been sent to the client.
 */
async function serveOnce(
  deps: ServeDeps,
  call: Call,
  model: Model,
  client: ClientWriter,
): Promise<{ served: Served; failure?: Failure }> {
  // A single endpoint gets every call.
  const key = model.members.length > 1 ? routingKey(call) : undefined;
  const tried = unable(model, call);
  const served: Served = { outcome: 'unavailable', attempts: 0, crashes: 0 };
  const tenant = call.principal.namespace;
  const retries = deps.retries.of(tenant, model.name);
  let failure: Failure | undefined;
  retries.earn();
  if (call.inspection.stream) client.keepAlive();
  while (served.attempts < MAX_ATTEMPTS) {
    const member = model.pick(key, tried, tenant);
    const isRetry = served.attempts > 0;
    if (member === undefined || (isRetry && (!call.mayRetry || served.crashes >= MAX_CRASHES || !retries.spend())))
      break;
    tried.push(member.endpoint);
    served.attempts += 1;
    failure = await tryMember({ deps, call, client, served }, member);
    if (failure === undefined) return { served };
  }
  return { served, failure: failure ?? unavailable(model, tenant) };
}

/** The endpoints of the model that do not have what the call is for, or may not fetch what it refers to. */
function unable({ members }: Model, { plain, media }: Call): Endpoint[] {
  return members.flatMap(({ endpoint }) =>
    serves(endpoint.probe, plain?.route) && mayFetch(endpoint.mediaHosts, media) ? [] : [endpoint],
  );
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
  const request = upstreamRequest(call, member);
  served.route = request.native ? 'native' : 'translated';
  client.route = `${served.route}; endpoint=${endpoint.name}; attempt=${served.attempts}`;
  endpoint.inFlight += 1;
  try {
    let result = await send(serving, endpoint, request);
    if (wasIdle(serving, endpoint, result)) {
      result = await send(serving, endpoint, request);
    }
    const { outcome, receiver } = result;
    served.receiver = receiver;
    const failure = applyOutcome(serving, endpoint, result);
    if (outcome.kind === 'complete') {
      if (served.outcome === 'ok' && isStored(call)) await storeAnswer(deps, call, receiver);
      receiver.finish();
    }
    return failure;
  } finally {
    endpoint.inFlight -= 1;
  }
}

/** Whether the request met a connection that the server had closed while it was idle, and may go out on another one. */
function wasIdle({ call, client, served }: Serving, endpoint: Endpoint, { outcome }: Result): boolean {
  if (outcome.kind !== 'broken' || client.started || !call.mayRetry) return false;
  // After a crash, what looks like a connection that died idle may be the next crash.
  return served.crashes === 0 && endpoint.answered && diedIdle(outcome.error);
}

async function send(serving: Serving, endpoint: Endpoint, request: UpstreamRequest): Promise<Result> {
  const { deps, call, client, served } = serving;
  const tenant = call.principal.namespace;
  const isStream = call.inspection.stream;
  const begunAt = endpoint.breaker.begin(tenant);
  // When an answer comes whole, its first byte says nothing about the queue.
  let waiting = isStream ? 1 : 0;
  endpoint.waiting += waiting;
  const begun = (): void => {
    endpoint.waiting -= waiting;
    waiting = 0;
  };
  const free = (): void => {
    // A translated answer repeats parts of its request.
    if (!request.native || isStored(call)) return;
    letGo(call);
    request.body = NO_BYTES;
  };
  const receiver = receiverFor(call, request, client, () => {
    served.firstByteAt = deps.clock.monotonic();
    begun();
    if (!isStream) return;
    // A stream may last for minutes. Other calls need not wait for its end, nor does it need its body.
    endpoint.breaker.release(tenant);
    free();
  });
  const attempt = new Attempt(receiver, () => endpoint.heard(flight, deps.clock.monotonic()));
  const flight: Flight = {
    begunAt,
    isStream,
    promptTokens: call.promptTokens,
    answered: false,
    giveUp: (error) => attempt.giveUp(error),
    letGo: free,
  };
  endpoint.flights.add(flight);
  client.onOver(() => attempt.abort());
  const traced = traceAttempt(call, endpoint);
  const to = { origin: endpoint.origin, trace: traced.headers };
  if (client.over === undefined) deps.dispatcher.dispatch(dispatchOptions(call, to, request), attempt);
  const outcome = await attempt.outcome;
  traced.end({ outcome, receiver });
  client.onOver(undefined);
  endpoint.flights.delete(flight);
  begun();
  return { outcome, receiver, begunAt };
}

function receiverFor(
  call: Call,
  request: UpstreamRequest,
  client: ClientWriter,
  onFirstByte: () => void,
): AnswerReceiver {
  const { id, createdAt, inspection, body } = call;
  const head = { id, createdAt, model: inspection.model };
  const context: TranslationContext = request.native
    ? { ...head, request: undefined }
    : { ...head, request: body, history: [...call.history, ...[...call.references.values()].flat()] };
  const deps = { call, request, client, context, onFirstByte };
  return inspection.stream ? new StreamReceiver(deps) : new WholeReceiver(deps);
}

/** Stores a complete answer for later calls to continue. Never rejects. */
async function storeAnswer({ store, ceilings, log }: ServeDeps, call: Call, answer: AnswerReceiver): Promise<void> {
  const { inspection, principal, body, references } = call;
  const { responseId, items } = answer.facts;
  if (responseId === undefined) return;
  const previous = inspection.previousResponseId;
  try {
    const input = parseInput(body.input, references);
    await store.put(
      principal,
      responseId,
      {
        items: [...input, ...items],
        inputs: input.length,
        model: inspection.model,
        response: answer.response,
        ...(previous !== undefined && { previous }),
      },
      ceilings(principal.namespace).models.storedResponses,
    );
  } catch (err) {
    // The answer itself is good. The client gets it, and cannot continue it by its id.
    log.warn({ err }, 'Answer was not stored');
  }
}

function unavailable(model: Model, tenant: string): Failure {
  const wait = model.waitMs(tenant);
  const message =
    wait === undefined
      ? `The model '${model.name}' has no ready server at the moment. Try again later.`
      : `Every server of the model '${model.name}' is failing at the moment. Try again shortly.`;
  return { error: { status: 503, message }, retryAfterMs: wait ?? NO_SERVER_RETRY_MS };
}

/**
 * A hash of what the prefix cache depends on: calls of a tenant with the same key go to the same endpoint. No tenant sees
 * by the way of its own calls what another asks.
 */
function routingKey({ principal, inspection, history, dialect, body, sessionHeader }: Call): number | undefined {
  const session = inspection.sessionHint ?? sessionHeader;
  if (session !== undefined) return keyOf(principal, session);
  const prefix = history.length === 0 ? inspection.promptPrefix : promptPrefix(dialect, body, history);
  const text = prefix.join('\0');
  return text.length < prefix.length ? undefined : keyOf(principal, text);
}

function keyOf({ namespace }: Principal, text: string): number {
  return hash32(`${namespace}\0${text.slice(0, KEY_CHARS)}`);
}
