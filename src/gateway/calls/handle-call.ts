import type { IncomingMessage, ServerResponse } from 'node:http';
import { asCreatedBy, getPrincipal, type Principal } from '../../access/principal.ts';
import { holdRequestSpan, requestSpan } from '../../runtime/tracing/request-span.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { DialectError, type Dialect, type Usage } from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import type { BudgetHold } from '../limits/budget-holds.ts';
import { LimitError, type Reservation } from '../limits/limiter.ts';
import { Standings } from '../limits/standings.ts';
import type { CallRecord } from '../metrics.ts';
import { admitPlain } from './admit-plain.ts';
import { PLAIN_ROUTES } from '../plain-routes.ts';
import { traceCall, traceOf } from '../trace.ts';
import { admit, type Incoming } from './admit.ts';
import { answerError } from './answer-error.ts';
import type { AnswerFacts } from './answer-receiver.ts';
import type { Served } from './apply-outcome.ts';
import { nextCallId, type Call, type CallOutcome } from './call.ts';
import { ClientWriter } from './client-writer.ts';
import { fallbacksOf } from './fallbacks.ts';
import { askAgain, letIn, requireBudget, requireScope } from './let-in.ts';
import type { OpenCall } from './open-calls.ts';
import { readBody } from './read-body.ts';
import { serve } from './serve.ts';

/** The limit that docs/use/models.md states. */
export const BODY_MAX = 32 * 1024 * 1024;
const MIB = 2 ** 20;

/** What metrics need to know of a call, however it ends. */
interface CallSummary {
  model?: Pick<Model, 'name' | 'isShared'>;
  served: Served;
  usage?: Usage | undefined;
}

/** A dialect, or what else clients call. */
export type CallKind =
  | { dialect: Dialect; plain?: undefined; compacts?: boolean }
  | { dialect: 'chat'; plain: PlainRoute; compacts?: undefined };

/** Serves one POST, from reading the request to the end of the answer. Never rejects. */
export async function handleCall(
  deps: ModelRouterDeps,
  { dialect, plain, compacts = false }: CallKind,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startedAt = deps.clock.monotonic();
  const principal = getPrincipal(request);
  const id = nextCallId();
  const client = new ClientWriter(response, dialect, requestIdOf(response) ?? id);
  const summary: CallSummary = { served: { outcome: 'client_error', attempts: 0, crashes: 0, continuations: 0 } };
  // The client has its answer, or is gone, before everything about the call is known.
  const release = holdRequestSpan(request);
  const denied = deps.limiter.enter(principal);
  try {
    if (denied !== undefined) throw new LimitError(denied);
    await run({ deps, client, summary, plain }, request, {
      id,
      dialect,
      principal,
      tenant: deps.tenantId(principal.namespace),
      startedAt,
      sessionHeader: sessionOf(request),
      compacts,
      contentType: request.headers['content-type'],
      anthropicHeaders: anthropicHeadersOf(request),
      trace: traceOf(request.headers),
      span: requestSpan(request),
    });
  } catch (error) {
    summary.served.outcome = answerError(deps, client, error);
  } finally {
    if (denied === undefined) deps.limiter.leave(principal);
    record(deps, { operation: plain ?? dialect, principal, startedAt }, summary);
    traceCall(requestSpan(request), { ...summary, model: summary.model?.name });
    release();
  }
}

interface Running {
  deps: ModelRouterDeps;
  client: ClientWriter;
  summary: CallSummary;
  plain: PlainRoute | undefined;
}

type Origin = Omit<Incoming, 'bytes' | 'hold' | 'kept'>;

async function run(running: Running, request: IncomingMessage, origin: Origin): Promise<void> {
  requireScope(origin.principal);
  const open = running.deps.open.begin(running.client, origin.principal);
  try {
    await runOpen(running, request, { ...origin, open });
  } finally {
    open.close();
  }
}

async function runOpen(
  { deps, client, summary, plain }: Running,
  request: IncomingMessage,
  { open, ...origin }: Origin & { open: OpenCall },
): Promise<void> {
  const { principal } = origin;
  requireIdentity(request);
  const standings = deps.limiter.isMetered(principal) ? new Standings() : undefined;
  if (standings !== undefined) await countRequest(deps, client, { standings, ...origin });
  const hold = holdOf(deps, principal);
  const kept = holdOf(deps, principal);
  client.countUnread(holdOf(deps, principal));
  try {
    // No variable here holds the bytes: the call lets go of them before this function ends.
    const isForm = plain !== undefined && PLAIN_ROUTES[plain].isForm;
    const { call, model } = await admitAny(deps, plain, {
      ...origin,
      hold,
      kept,
      bytes: await unlessOver(client, readBody(request, { limit: BODY_MAX, hold, clock: deps.clock, isForm })),
    });
    open.narrow(call.inspection.model);
    const { name, isShared } = model;
    summary.model = { name, isShared };
    requireBudget(deps, client, call);
    await serveWithin(deps, { call, model, client, summary, standings, open });
  } finally {
    hold.release();
    kept.release();
  }
}

interface Admitted {
  call: Call;
  model: Model;
  client: ClientWriter;
  summary: CallSummary;
  /** Undefined where nothing is counted per minute. */
  standings: Standings | undefined;
  open: OpenCall;
}

/** Serves a call within its tokens of the minute and its budgets. */
async function serveWithin(deps: ModelRouterDeps, admitted: Admitted): Promise<void> {
  const { call, model, client, summary, open } = admitted;
  let reservation: Reservation | undefined = await reserve(deps, admitted);
  let held: BudgetHold | undefined;
  const giveBack = (): void => {
    held?.release();
    held = undefined;
  };
  /** After a wait everything may be different: the key, its limits, its budgets and the price. */
  const letInAgain = async (ready: Model): Promise<void> => {
    askAgain(deps, call);
    open.narrow(call.inspection.model);
    const earlier = reservation;
    reservation = undefined;
    await earlier?.replace(0);
    const standings = deps.limiter.isMetered(call.principal) ? new Standings() : undefined;
    reservation = await reserve(deps, { call, client, standings });
    held = await letIn(deps, call, ready, client);
  };
  try {
    const isElsewhere =
      model.fallback !== undefined &&
      model.readyCount === 0 &&
      fallbacksOf(deps, call, model, 'unavailable').length > 0;
    if (isElsewhere) deps.starts?.wake(model);
    const ready = isElsewhere ? undefined : await deps.starts?.ready(call, model, client);
    if (ready === undefined) held = await letIn(deps, call, model, client);
    else await letInAgain(ready);
    summary.served = await serve(deps, { call, model: ready ?? model, client, giveBack, letInAgain });
    summary.usage = usageOf(call, summary.served);
    bill(deps, call, summary.served, held);
  } finally {
    giveBack();
    const { served, usage } = summary;
    const used = usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;
    // A server that was left before its first byte may have read the prompt.
    served.charge?.correct(used || call.promptTokens);
    const wasLeft = served.attempts > 0 && (served.outcome === 'client_closed' || served.outcome === 'cut');
    await reservation?.replace(used || (wasLeft ? call.promptTokens : 0));
  }
}

/** Rejects with why the call is over when that is before the promise resolves. */
export async function unlessOver<T>(client: ClientWriter, promise: Promise<T>): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  client.onOver(reject);
  try {
    return await Promise.race([promise, over]);
  } finally {
    client.onOver(undefined);
  }
}

interface Counting {
  principal: Principal;
  dialect: Dialect;
  standings: Standings;
}

/** Counts a call, and tells the client what is left. Rejects with LimitError. */
export async function countRequest(
  { limiter, clock }: Pick<ModelRouterDeps, 'limiter' | 'clock'>,
  client: ClientWriter,
  { principal, dialect, standings }: Counting,
): Promise<void> {
  const denied = await limiter.countRequest(principal, standings);
  client.add(standings.headers(dialect, clock.now()));
  if (denied !== undefined) throw new LimitError(denied);
}

async function admitAny(deps: ModelRouterDeps, plain: PlainRoute | undefined, incoming: Incoming) {
  return plain === undefined ? admit(deps, incoming) : admitPlain(deps, incoming, plain);
}

/** The place of one body or answer: within the share of the caller's tenant. */
export function holdOf(
  { bodies, ceilings }: Pick<ModelRouterDeps, 'bodies' | 'ceilings'>,
  { namespace }: Principal,
): BodyHold {
  return bodies.hold(namespace, ceilings(namespace).http.bodyMib * MIB);
}

async function reserve(
  { limiter, clock }: ModelRouterDeps,
  { call, client, standings }: Pick<Admitted, 'call' | 'client' | 'standings'>,
): Promise<Reservation | undefined> {
  if (standings === undefined) return undefined;
  const { principal, promptTokens, dialect } = call;
  const reserved = await limiter.reserveTokens(principal, promptTokens, standings);
  client.add(standings.headers(dialect, clock.now()));
  if ('replace' in reserved) return reserved;
  throw new LimitError(reserved);
}

const BILLED: ReadonlySet<CallOutcome> = new Set(['ok', 'client_closed', 'cut']);

/**
 * Bills what the engine reported last. Of a stream that the client left or the gateway cut, what it did not report is
 * estimated: the prompt by its bytes, and the output by what was passed on since it was counted last. So is the output of a
 * whole answer of which the engine reported only the prompt, or only the beginning. An answer that the model server broke off or
 * refused costs nothing, nor does one that was over before its first byte.
 */
function bill({ meter }: ModelRouterDeps, call: Call, served: Served, held: BudgetHold | undefined): void {
  const { principal, tenant, prices, inspection } = call;
  const { outcome, receiver, firstByteAt } = served;
  if (prices === undefined) return;
  if (receiver === undefined || firstByteAt === undefined || !BILLED.has(outcome)) return;
  const { usage } = receiver.facts;
  const isEstimate = usage === undefined ? outcome !== 'ok' : isUncounted(receiver.facts, outcome);
  const by = asCreatedBy(principal);
  const accounts = held?.accounts ?? [];
  const billed = { namespace: principal.namespace, tenant, by, model: inspection.model, prices, accounts };
  meter.add(billed, isEstimate ? usageOf(call, served) : usage, isEstimate);
}

/** Whether more was produced than the engine counted. */
function isUncounted({ usage, estimatedOutputTokens, isCounted }: AnswerFacts, outcome: CallOutcome): boolean {
  return !(outcome === 'ok' && isCounted) && estimatedOutputTokens > (usage?.outputTokens ?? 0);
}

/** What the engine reported. For what it did not count, an estimate of what was passed on. */
function usageOf(call: Call, { receiver, outcome, firstByteAt }: Served): Usage | undefined {
  if (receiver === undefined) return undefined;
  const { usage, estimatedOutputTokens } = receiver.facts;
  // Early events report the input, with an output of which most is still to come.
  if (usage !== undefined)
    return isUncounted(receiver.facts, outcome) ? { ...usage, outputTokens: estimatedOutputTokens } : usage;
  if (firstByteAt === undefined || outcome === 'client_error') return undefined;
  return {
    inputTokens: call.promptTokens,
    outputTokens: estimatedOutputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

/** @throws DialectError 415 for a body that a server might read otherwise than the gateway, which decompresses none */
export function requireIdentity({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return;
  throw new DialectError({
    status: 415,
    message: 'Compressed request bodies are not supported. Send the body without Content-Encoding.',
    code: 'unsupported_content_encoding',
  });
}

function record(
  deps: ModelRouterDeps,
  origin: Pick<Origin, 'principal' | 'startedAt'> & Pick<CallRecord, 'operation'>,
  summary: CallSummary,
): void {
  const { operation, principal, startedAt } = origin;
  const { served, usage, model } = summary;
  const { outcome, attempts, continuations, firstByteAt, fallback, route = 'none' } = served;
  deps.metrics.record({
    operation,
    model,
    keyId: principal.keyId,
    route,
    outcome,
    seconds: (deps.clock.monotonic() - startedAt) / 1000,
    firstByteSeconds: firstByteAt === undefined ? undefined : (firstByteAt - startedAt) / 1000,
    attempts,
    continuations,
    fallback: fallback?.why,
    usage,
  });
}

/** Headers by which agents keep a conversation on one server: Claude Code, Codex, OpenCode. */
const SESSION_HEADERS = ['x-claude-code-session-id', 'session_id', 'session-id', 'x-session-affinity'] as const;

function sessionOf({ headers }: IncomingMessage): string | undefined {
  for (const name of SESSION_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

const HEADER_VALUE = /^[\w.,: -]{1,1024}$/;

function anthropicHeadersOf({ headers }: IncomingMessage): Call['anthropicHeaders'] {
  const said = (value: unknown): string | undefined =>
    typeof value === 'string' && HEADER_VALUE.test(value) ? value : undefined;
  return { version: said(headers['anthropic-version']), trials: said(headers['anthropic-beta']) };
}

/** The id that the app in front gave the request: header, log and error body agree. */
export function requestIdOf(response: ServerResponse): string | undefined {
  const header = response.getHeader('x-request-id');
  return typeof header === 'string' ? header : undefined;
}
