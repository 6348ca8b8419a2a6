import type { Principal } from '../../access/principal.ts';
import { hash32 } from '../balance/hash.ts';
import type { Model } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import type { Endpoint } from '../endpoint.ts';
import { DialectError, promptPrefix } from '../dialects/index.ts';
import { LimitError } from '../limits/limiter.ts';
import type { RetryBudgets } from '../limits/retry-budgets.ts';
import { QueueError, type Turn } from '../queue/call-queue.ts';
import type { Starts } from '../zero/starts.ts';
import { type Failure, sendRefusal, type Served } from './apply-outcome.ts';
import type { Call } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import { fallbacksOf } from './fallbacks.ts';
import { goOn, type GoOnDeps } from './go-on.ts';
import { askAgain, requireBudget } from './let-in.ts';
import { likelyTokens } from './most-tokens.ts';
import { priorityOf } from './priority.ts';
import { tryMember, unable } from './send.ts';

export interface ServeDeps extends GoOnDeps, Pick<ModelRouterDeps, 'caller' | 'holds'> {
  retries: RetryBudgets;
  starts?: Starts | undefined;
}

/** A call with its model. */
interface Serve {
  call: Call;
  model: Model;
  client: ClientWriter;
  /** Gives back what is held for a call that may wait for another server. */
  giveBack: () => void;
  /** Asks a call again that waited for another server, or goes to another model. Rejects when it may not go on. */
  letInAgain: (model: Model) => Promise<void>;
}

const MAX_ATTEMPTS = 3;
/** A request that has broken two servers in a row is likely to break the third. */
const MAX_CRASHES = 2;
/** Longer prefixes are compared by their first characters alone. */
const KEY_CHARS = 32_768;
const NO_SERVER_RETRY_MS = 5000;

/** How a call to one model ended. A failure has not been sent to the client. */
interface Ended {
  served: Served;
  failure?: Failure;
}

/**
 * Sends a call to an endpoint of its model, and the answer to the client. When the model cannot take it, the call goes to
 * another one that the operator named; else it goes out once more when its turn or a server from zero has come. Throws
 * DialectError when the chosen endpoint cannot serve the call.
 */
export async function serve(deps: ServeDeps, serving: Serve): Promise<Served> {
  const { call, model, client, giveBack, letInAgain } = serving;
  let { served, failure } = await serveOnce(deps, serving, model, ELSEWHERE_FIRST);
  if (failure === undefined) return served;
  giveBack();
  const fallen = await fallBack(deps, serving, served, failure);
  if (fallen !== undefined) return fallen;
  const mayGoOn = call.mayRetry && !client.started;
  const later = failure.hasRoomElsewhere
    ? model
    : mayGoOn
      ? await deps.starts?.afterFailure(call, model, client)
      : undefined;
  if (later !== undefined) {
    await letInAgain(later);
    ({ served, failure } = await serveOnce(deps, serving, later));
  }
  if (failure !== undefined) sendRefusal(call, client, failure.error, failure.retryAfterMs);
  return served;
}

/** Sends a call that its model could not take to the first other one that can. Undefined when there is none. */
async function fallBack(
  deps: ServeDeps,
  { call, model, client, giveBack, letInAgain }: Serve,
  before: Served,
  { why }: Failure,
): Promise<Served | undefined> {
  const asked = call.inspection;
  for (const target of fallbacksOf(deps, call, model, why)) {
    if (!call.mayRetry || client.started || client.over !== undefined || before.crashes >= MAX_CRASHES) break;
    if (why === 'error' && !deps.retries.of(call.principal.namespace, model.name).spend()) break;
    call.inspection = { ...asked, model: target.name };
    const fallback = { to: target.name, why };
    try {
      await letInAgain(target);
      const { served, failure } = await serveOnce(deps, { call, client }, target, {
        fallback,
        crashes: before.crashes,
      });
      before.crashes = served.crashes;
      if (failure === undefined) return served;
    } catch (error) {
      // A refusal of the other model is no answer to a call that did not name it.
      const isRefused = error instanceof DialectError || error instanceof LimitError || error instanceof QueueError;
      if (!isRefused || client.started || client.over !== undefined) throw error;
    }
    giveBack();
  }
  call.inspection = asked;
  return undefined;
}

interface Once {
  /** It does not wait while another model has room that takes it. */
  elsewhereFirst?: boolean;
  fallback?: Served['fallback'];
  /** Of servers of other models. */
  crashes?: number;
}

const ELSEWHERE_FIRST: Once = { elsewhereFirst: true };
const HERE: Once = {};

/**
 * When an endpoint fails before its first byte, another is tried: three in all, never the same twice, and one at most after
 * a crash. Only the first one is waited for: a call that a server failed has had its turn.
 */
async function serveOnce(
  deps: ServeDeps,
  { call, client }: Pick<Serve, 'call' | 'client'>,
  named: Model,
  { elsewhereFirst = false, fallback, crashes = 0 }: Once = HERE,
): Promise<Ended> {
  let model = named;
  // A single endpoint gets every call.
  const key = model.members.length > 1 ? routingKey(call) : undefined;
  const tried = unable(model, call);
  const served: Served = { outcome: 'unavailable', attempts: 0, crashes, continuations: 0 };
  if (fallback !== undefined) served.fallback = fallback;
  const tenant = call.principal.namespace;
  const retries = deps.retries.of(tenant, model.name);
  const mayOverflow = fallback !== undefined || fallbacksOf(deps, call, model, 'overflow').length > 0;
  let failure: Failure | undefined;
  retries.earn();
  if (call.inspection.stream) {
    client.keepAlive();
    if (model.members.length > 1) client.announceContinuations();
  }
  while (served.attempts < MAX_ATTEMPTS) {
    const isRetry = served.attempts > 0;
    const withRoom = !isRetry;
    let member = withRoom && deps.queue.isWaitedFor(model) ? undefined : model.pick(key, tried, tenant, withRoom);
    if (member !== undefined && isRetry && (!call.mayRetry || served.crashes >= MAX_CRASHES || !retries.spend())) break;
    if (member !== undefined) member.endpoint.enter(call);
    else if (withRoom && model.pick(key, tried, tenant) !== undefined) {
      if (
        elsewhereFirst &&
        isFull(deps, model, tried, tenant) &&
        fallbacksOf(deps, call, model, 'full').some((other) => hasRoom(deps, other, tenant))
      )
        return { served, failure: FULL_HERE };
      const turn = await waitForTurn({ deps, call, client, served }, model, key);
      if (turn === undefined) break;
      if ('error' in turn) return { served, failure: turn };
      ({ model, member } = turn);
      askAtTurn(deps, call, client, turn);
    }
    if (member === undefined) break;
    tried.push(member.endpoint);
    served.attempts += 1;
    const serving = { deps, call, client, served, model, mayOverflow };
    failure = await tryMember(serving, member);
    if (failure?.begun !== undefined) await goOn(deps, serving, failure.begun, tried);
    if (failure === undefined || failure.begun !== undefined) return { served };
    if (failure.why === 'overflow') break;
  }
  served.charge?.correct(call.promptTokens);
  return { served, failure: failure ?? unavailable(model, tenant) };
}

/** Never sent: the call goes elsewhere, or waits. */
const FULL_HERE: Failure = { why: 'full', hasRoomElsewhere: true, error: { status: 429, message: '' } };

function hasRoom({ queue }: ServeDeps, model: Model, tenant: string): boolean {
  return !queue.isWaitedFor(model) && model.pick(undefined, [], tenant, true) !== undefined;
}

/** Whether its servers have as many calls as they do well, with those that wait until a prompt is read. */
function isFull({ queue }: ServeDeps, model: Model, tried: readonly Endpoint[], tenant: string): boolean {
  const open = model.members
    .map(({ endpoint }) => endpoint)
    .filter((one) => one.available && one.breaker.permits(tenant) && !tried.includes(one));
  const free = open.reduce((sum, { window, inFlight }) => sum + Math.max(0, window.size - inFlight), 0);
  return (queue.lineOf(model, tenant)?.waiting ?? 0) >= free;
}

interface Waiting {
  deps: ServeDeps;
  call: Call;
  client: ClientWriter;
  served: Served;
}

/** Waits until an endpoint of the model has room and it is this call's turn; undefined when there is no endpoint. */
async function waitForTurn(
  { deps, call, client, served }: Waiting,
  model: Model,
  key: number | undefined,
): Promise<Turn | Failure | undefined> {
  const { principal, prices, hold } = call;
  try {
    const turn = await deps.queue.wait({
      tenant: principal.namespace,
      priority: priorityOf(call),
      model,
      servers: new Map(model.members.map(({ endpoint, upstreamModel }) => [endpoint.server, upstreamModel])),
      isShared: model.isShared,
      prices,
      key,
      unable: (now) => unable(now, call),
      prompt: call,
      tokens: likelyTokens(call),
      bytes: hold.held,
      onLeave: (leave) => client.onOver(leave),
    });
    if (turn !== undefined) served.charge = turn.charge;
    return turn;
  } catch (error) {
    if (!(error instanceof QueueError) || error.status !== 429) throw error;
    served.outcome = 'rate_limited';
    const { message, retryAfterMs } = error;
    return { why: 'full', error: { status: 429, message, code: 'rate_limit_exceeded' }, retryAfterMs };
  } finally {
    client.onOver(undefined);
  }
}

/**
 * Asks a call again at its turn, which others get when it may not go on. It holds what it may cost, so it waits for nothing.
 * @throws DialectError
 */
function askAtTurn(deps: ServeDeps, call: Call, client: ClientWriter, { member, charge }: Turn): void {
  try {
    askAgain(deps, call);
    requireBudget(deps, client, call);
  } catch (error) {
    member.endpoint.leave(call);
    charge.correct(0);
    deps.queue.freed(member.endpoint);
    throw error;
  }
}

function unavailable(model: Model, tenant: string): Failure {
  const wait = model.waitMs(tenant);
  const message =
    wait === undefined
      ? `The model '${model.name}' has no ready server at the moment. Try again later.`
      : `Every server of the model '${model.name}' is failing at the moment. Try again shortly.`;
  return { why: 'unavailable', error: { status: 503, message }, retryAfterMs: wait ?? NO_SERVER_RETRY_MS };
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
