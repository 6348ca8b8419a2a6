import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { CeilingsOf } from '../../access/ceilings.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Member, Model } from '../balance/model.ts';
import {
  DialectError,
  inputToStore,
  isSaidInChat,
  type StreamTranslator,
  type TranslationContext,
} from '../dialects/index.ts';
import type { Endpoint, Flight } from '../endpoint.ts';
import { mayFetch, serves } from '../find-model.ts';
import type { CallQueue } from '../queue/call-queue.ts';
import type { ResponseStore } from '../state/response-store.ts';
import { traceAttempt } from '../trace.ts';
import type { AnswerReceiver, ReceiverDeps } from './answer-receiver.ts';
import { applyOutcome, diedIdle, type Failure, type Result, type Served } from './apply-outcome.ts';
import { Attempt } from './attempt.ts';
import { isStored, letGo, type Call } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import { StreamReceiver } from './stream-receiver.ts';
import { dispatchOptions, upstreamRequest, type UpstreamRequest } from './upstream-request.ts';
import { WholeReceiver } from './whole-receiver.ts';

const NO_BYTES = Buffer.alloc(0);

export interface SendDeps {
  dispatcher: Dispatcher;
  queue: CallQueue;
  store: ResponseStore;
  ceilings: CeilingsOf;
  log: Logger;
  clock: Clock;
}

/** A call on its way to the endpoints of a model. */
export interface Serving {
  deps: SendDeps;
  call: Call;
  client: ClientWriter;
  served: Served;
  model: Model;
  mayOverflow: boolean;
}

/** Lets an endpoint go on with an answer that broke off. */
export interface Further {
  request: UpstreamRequest;
  answer: StreamTranslator;
}

/**
 * Sends a call to an endpoint, which counts it as under way already.
 *
 * @returns undefined when the client has its answer or is gone, else why another endpoint should be tried
 */
export async function tryMember(serving: Serving, member: Member, further?: Further): Promise<Failure | undefined> {
  const { deps, call, client, served } = serving;
  const { endpoint } = member;
  try {
    const request = further?.request ?? upstreamRequest(call, member);
    if (further === undefined) {
      served.route = request.native ? 'native' : 'translated';
      served.joinsSystem = request.joinsSystem;
    }
    client.route = routeOf(served, endpoint);
    let result = await send(serving, endpoint, { request, answer: further?.answer });
    if (wasIdle(serving, endpoint, result)) {
      result = await send(serving, endpoint, { request });
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
    endpoint.leave(call);
    deps.queue.freed(endpoint);
  }
}

/** The endpoints of the model that do not have what the call is for, or may not fetch what it refers to. */
export function unable({ members }: Model, { plain, media }: Call): Endpoint[] {
  return members.flatMap(({ endpoint }) =>
    serves(endpoint.probe, plain?.route) && mayFetch(endpoint.mediaHosts, media) ? [] : [endpoint],
  );
}

/** What the client may know of the way of its call. */
function routeOf({ route, attempts, fallback }: Served, { name }: Endpoint): string {
  const way = `${route}; endpoint=${name}; attempt=${attempts}`;
  return fallback === undefined ? way : `${way}; fallback=${encodeURIComponent(fallback.to)}; reason=${fallback.why}`;
}

/** Whether the request met a connection that the server had closed while it was idle, and may go out on another one. */
function wasIdle({ call, client, served }: Serving, endpoint: Endpoint, { outcome }: Result): boolean {
  if (outcome.kind !== 'broken' || client.started || !call.mayRetry) return false;
  // After a crash, what looks like a connection that died idle may be the next crash.
  return served.crashes === 0 && endpoint.answered && diedIdle(outcome.error);
}

async function send(
  serving: Serving,
  endpoint: Endpoint,
  { request, answer }: { request: UpstreamRequest; answer?: StreamTranslator | undefined },
): Promise<Result> {
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
    if (!request.native) return;
    letGo(call);
    if (!call.mayRetry) request.body = NO_BYTES;
  };
  const onFirstByte = (): void => {
    served.firstByteAt ??= deps.clock.monotonic();
    begun();
    if (!isStream) return;
    endpoint.begun(call);
    deps.queue.freed(endpoint);
    // A stream may last for minutes. Other calls need not wait for its end, nor does it need its body.
    endpoint.breaker.release(tenant);
    if (!mayGoOn) free();
  };
  const mayGoOn = answer !== undefined || couldGoOn(serving, request);
  const receiver = receiverFor({ call, request, client, mayGoOn, onFirstByte }, answer);
  const attempt = new Attempt(receiver, () => endpoint.heard(flight, deps.clock.monotonic()));
  const flight: Flight = {
    tenant,
    begunAt,
    isStream,
    promptTokens: call.promptTokens,
    answered: false,
    giveUp: (error) => attempt.giveUp(error),
    withdraw: () => client.cut(withdrawn(call)),
    letGo: free,
  };
  endpoint.flights.add(flight);
  client.onOver(() => attempt.abort());
  const traced = traceAttempt(call, endpoint);
  const to = { origin: endpoint.origin, trace: traced.headers };
  if (client.over === undefined)
    (endpoint.dispatcher ?? deps.dispatcher).dispatch(dispatchOptions(call, to, request), attempt);
  const outcome = await attempt.outcome;
  traced.end({ outcome, receiver });
  client.onOver(undefined);
  endpoint.flights.delete(flight);
  begun();
  return { outcome, receiver, begunAt, credential: request.credential };
}

function withdrawn({ inspection: { model } }: Call): DialectError {
  return new DialectError({
    status: 404,
    message: `The call was ended. The operator has taken the model '${model.slice(0, 200)}' away from this tenant.`,
    code: 'model_not_found',
    param: 'model',
  });
}

/** Whether another server of the model could go on with the stream. A body that is kept for that leaves others their room. */
function couldGoOn({ call, model }: Serving, { native, joinsSystem }: UpstreamRequest): boolean {
  if (!call.inspection.stream || model.members.length < 2 || call.plain !== undefined || call.compacts) return false;
  if (!native) return true;
  return (call.dialect === 'chat' || isSaidInChat(call.body, joinsSystem)) && call.hold.hasRoom;
}

function receiverFor(deps: Omit<ReceiverDeps, 'context'>, answer: StreamTranslator | undefined): AnswerReceiver {
  const { call, request } = deps;
  const { id, createdAt, inspection, body } = call;
  const head = { id, createdAt, model: inspection.model, upstreamModel: request.model };
  const context: TranslationContext = request.native
    ? { ...head, request: undefined }
    : { ...head, request: body, history: [...call.history, ...[...call.references.values()].flat()] };
  return inspection.stream ? new StreamReceiver({ ...deps, context }, answer) : new WholeReceiver({ ...deps, context });
}

/** Stores a complete answer for later calls to continue. Never rejects. */
async function storeAnswer({ store, ceilings, log }: SendDeps, call: Call, answer: AnswerReceiver): Promise<void> {
  const { inspection, principal, body, references } = call;
  const { responseId, items } = answer.facts;
  if (responseId === undefined) return;
  const previous = inspection.previousResponseId;
  try {
    const input = inputToStore(body.input, references);
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
