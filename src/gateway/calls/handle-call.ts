import type { IncomingMessage, ServerResponse } from 'node:http';
import { asCreatedBy, getPrincipal, type Principal } from '../../access/principal.ts';
import { spentMessage } from '../../budgets/counted.ts';
import { keyBudget, tenantBudget } from '../../budgets/words.ts';
import { holdRequestSpan, requestSpan } from '../../runtime/tracing/request-span.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';
import type { BilledCall } from '../billing/token-page.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { DialectError, INSUFFICIENT_QUOTA, type Dialect, type Usage } from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import { LimitError, type Reservation } from '../limits/limiter.ts';
import { Standings } from '../limits/standings.ts';
import type { CallRecord } from '../metrics.ts';
import { admitPlain } from './admit-plain.ts';
import { PLAIN_ROUTES } from '../plain-routes.ts';
import { traceCall, traceOf } from '../trace.ts';
import { admit, type Incoming } from './admit.ts';
import { answerError } from './answer-error.ts';
import type { Served } from './apply-outcome.ts';
import { nextCallId, type Call } from './call.ts';
import { ClientWriter } from './client-writer.ts';
import { readBody } from './read-body.ts';
import { serve } from './serve.ts';

/** The limit that docs/models.md states. */
export const BODY_MAX = 32 * 1024 * 1024;
const MIB = 2 ** 20;

/** What metrics need to know of a call, however it ends. */
interface CallSummary {
  model?: string;
  served: Served;
  usage?: Usage | undefined;
}

/** A dialect, or what else clients call. */
export type CallKind = { dialect: Dialect; plain?: undefined } | { dialect: 'chat'; plain: PlainRoute };

/** Serves one POST, from reading the request to the end of the answer. Never rejects. */
export async function handleCall(
  deps: ModelRouterDeps,
  { dialect, plain }: CallKind,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startedAt = deps.clock.monotonic();
  const principal = getPrincipal(request);
  const id = nextCallId();
  const client = new ClientWriter(response, dialect, requestIdOf(response) ?? id);
  const summary: CallSummary = { served: { outcome: 'client_error', attempts: 0, crashes: 0 } };
  // The client has its answer, or is gone, before everything about the call is known.
  const release = holdRequestSpan(request);
  const denied = deps.limiter.enter(principal);
  try {
    if (denied !== undefined) throw new LimitError(denied);
    await run({ deps, client, summary, plain }, request, {
      id,
      dialect,
      principal,
      startedAt,
      sessionHeader: sessionOf(request),
      contentType: request.headers['content-type'],
      trace: traceOf(request.headers),
      span: requestSpan(request),
    });
  } catch (error) {
    summary.served.outcome = answerError(deps, client, error);
  } finally {
    if (denied === undefined) deps.limiter.leave(principal);
    record(deps, { operation: plain ?? dialect, principal, startedAt }, summary);
    traceCall(requestSpan(request), summary);
    release();
  }
}

interface Running {
  deps: ModelRouterDeps;
  client: ClientWriter;
  summary: CallSummary;
  plain: PlainRoute | undefined;
}

type Origin = Omit<Incoming, 'bytes' | 'hold'>;

async function run({ deps, client, summary, plain }: Running, request: IncomingMessage, origin: Origin): Promise<void> {
  const { principal } = origin;
  requireScope(principal);
  requireIdentity(request);
  requireBudget(deps, client, origin);
  const standings = deps.limiter.isMetered(principal) ? new Standings() : undefined;
  if (standings !== undefined) await countRequest(deps, client, { standings, ...origin });
  const hold = holdOf(deps, principal);
  try {
    // No variable here holds the bytes: the call lets go of them before this function ends.
    const isForm = plain !== undefined && PLAIN_ROUTES[plain].isForm;
    const { call, model } = await admitAny(deps, plain, {
      ...origin,
      hold,
      bytes: await readBody(request, { limit: BODY_MAX, hold, clock: deps.clock, isForm }),
    });
    summary.model = model.name;
    // What a call costs is fixed when it is let in.
    const { prices } = model;
    const reservation = standings === undefined ? undefined : await reserve(deps, client, call, standings);
    try {
      const ready = (await deps.starts?.ready(call, model, client)) ?? model;
      summary.served = await serve(deps, call, ready, client);
      summary.usage = usageOf(call, summary.served);
      if (prices !== undefined) bill(deps, call, { model: model.name, prices, served: summary.served });
    } finally {
      const { inputTokens, outputTokens } = summary.usage ?? { inputTokens: 0, outputTokens: 0 };
      if (reservation !== undefined) await reservation.replace(inputTokens + outputTokens);
    }
  } finally {
    hold.release();
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

/** The place of one body: within the share of the caller's tenant. */
export function holdOf(
  { bodies, ceilings }: Pick<ModelRouterDeps, 'bodies' | 'ceilings'>,
  { namespace }: Principal,
): BodyHold {
  return bodies.hold(namespace, ceilings(namespace).http.bodyMib * MIB);
}

async function reserve(
  deps: ModelRouterDeps,
  client: ClientWriter,
  { principal, promptTokens, dialect }: Call,
  standings: Standings,
): Promise<Reservation> {
  const reserved = await deps.limiter.reserveTokens(principal, promptTokens, standings);
  client.add(standings.headers(dialect, deps.clock.now()));
  if ('replace' in reserved) return reserved;
  throw new LimitError(reserved);
}

/**
 * Bills what the engine reported last. An answer that the model server broke off or refused costs nothing, nor does one
 * that the client left before its first byte.
 */
function bill(
  { meter }: ModelRouterDeps,
  { principal }: Call,
  { model, prices, served }: Pick<BilledCall, 'model' | 'prices'> & { served: Served },
): void {
  const { outcome, receiver, firstByteAt } = served;
  if (receiver === undefined || firstByteAt === undefined || (outcome !== 'ok' && outcome !== 'client_closed')) return;
  const { namespace } = principal;
  meter.add({ namespace, by: asCreatedBy(principal), model, prices }, receiver.facts.usage);
}

/** What the engine reported. For an answer that was cut off before, an estimate of what was passed on. */
function usageOf(call: Call, { receiver, outcome, firstByteAt }: Served): Usage | undefined {
  if (receiver === undefined) return undefined;
  const { usage, estimatedOutputTokens } = receiver.facts;
  if (usage !== undefined) {
    // Early events report the input with an output of 0 or 1.
    return outcome === 'ok' ? usage : { ...usage, outputTokens: Math.max(usage.outputTokens, estimatedOutputTokens) };
  }
  if (firstByteAt === undefined || outcome === 'client_error') return undefined;
  return {
    inputTokens: call.promptTokens,
    outputTokens: estimatedOutputTokens,
    cachedTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
  };
}

/** @throws DialectError 403 */
export function requireScope({ scopes }: Principal): void {
  if (scopes.includes('models')) return;
  throw new DialectError({
    status: 403,
    message: "This API key lacks the scope 'models'. Create a key with that scope on the dashboard.",
    code: 'insufficient_scope',
  });
}

function requireIdentity({ headers }: IncomingMessage): void {
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return;
  throw new DialectError({
    status: 415,
    message: 'Compressed request bodies are not supported. Send the body without Content-Encoding.',
    code: 'unsupported_content_encoding',
  });
}

/**
 * Refuses a call when the budget of its tenant or its key is spent, in the words of the dialect for an account without
 * credit: OpenAI's `insufficient_quota`, Anthropic's `billing_error`. The header keeps the clients of both from trying
 * again.
 * @throws DialectError 402, 429
 */
function requireBudget(
  { budgets, keyBudgets, ceilings }: Pick<ModelRouterDeps, 'budgets' | 'keyBudgets' | 'ceilings'>,
  client: ClientWriter,
  { principal, dialect }: { principal: Principal; dialect: Dialect },
): void {
  const { namespace, name } = principal;
  const [budget, own] = [budgets(namespace), keyBudgets(principal)];
  const message =
    (budget && spentMessage(budget, tenantBudget(ceilings(namespace).policies))) ??
    (own && spentMessage(own, keyBudget(name)));
  if (message === undefined) return;
  client.add({ 'x-should-retry': 'false' });
  throw new DialectError({ status: dialect === 'messages' ? 402 : 429, message, code: INSUFFICIENT_QUOTA });
}

function record(
  deps: ModelRouterDeps,
  origin: Pick<Origin, 'principal' | 'startedAt'> & Pick<CallRecord, 'operation'>,
  summary: CallSummary,
): void {
  const { operation, principal, startedAt } = origin;
  const { served, usage, model } = summary;
  const { outcome, attempts, firstByteAt, route = 'none' } = served;
  deps.metrics.record({
    operation,
    model,
    keyId: principal.keyId,
    route,
    outcome,
    seconds: (deps.clock.monotonic() - startedAt) / 1000,
    firstByteSeconds: firstByteAt === undefined ? undefined : (firstByteAt - startedAt) / 1000,
    attempts,
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

/** The id that the app in front gave the request: header, log and error body agree. */
export function requestIdOf(response: ServerResponse): string | undefined {
  const header = response.getHeader('x-request-id');
  return typeof header === 'string' ? header : undefined;
}
