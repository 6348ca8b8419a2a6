import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  checkBody,
  checkMessages,
  estimateTokens,
  inspectRequest,
  optionalCount,
  quirksOf,
  refuseOfServers,
  remoteMedia,
  tokensOfItem,
  translateRequest,
  type HistoryItem,
} from '../dialects/index.ts';
import { getPrincipal, type Principal } from '../../access/principal.ts';
import { isObject, type Json } from '../../lib/json.ts';
import type { Member } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { smallRequest } from '../discovery/small-http.ts';
import { findModel, mayFetch, requireMedia } from '../find-model.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import { readConversation } from './admit.ts';
import { nextCallId } from './call.ts';
import { ClientWriter } from './client-writer.ts';
import { answerError } from './answer-error.ts';
import { BODY_MAX, countRequest, holdOf, requireIdentity, unlessOver } from './handle-call.ts';
import { requireBudget, requireScope } from './let-in.ts';
import type { OpenCall } from './open-calls.ts';
import { parseBody } from './parse-body.ts';
import { readBody } from './read-body.ts';
import { LimitError } from '../limits/limiter.ts';
import { Standings } from '../limits/standings.ts';

const LIMITS = { timeoutMs: 10_000, maxBytes: 65_536 } as const;
/** vLLM's tokeniser tells the count before the tokens, of which a long prompt has megabytes. */
const START = { ...LIMITS, maxBytes: 1024, isStartEnough: true } as const;
const COUNT = /^\s*\{\s*"count"\s*:\s*(\d{1,12})[,\s}]/;

type Counted = 'messages' | 'responses';

/**
 * Anthropic's count_tokens and OpenAI's input_tokens: the engine's own count, else the count of its tokeniser, else an
 * estimate.
 */
export async function countTokens(
  deps: ModelRouterDeps,
  dialect: Counted,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const client = new ClientWriter(response, dialect, nextCallId());
  const principal = getPrincipal(request);
  const denied = deps.limiter.enter(principal);
  let open: OpenCall | undefined;
  try {
    if (denied !== undefined) throw new LimitError(denied);
    requireScope(principal);
    open = deps.open.begin(client, principal);
    requireIdentity(request);
    if (deps.limiter.isMetered(principal))
      await countRequest(deps, client, { principal, dialect, standings: new Standings() });
    const counted = countBody(deps, { dialect, principal, client, open }, request);
    const count = { input_tokens: await unlessOver(client, counted) };
    const answer = dialect === 'messages' ? count : { object: 'response.input_tokens', ...count };
    client.sendWhole(Buffer.from(JSON.stringify(answer)));
  } catch (error) {
    answerError(deps, client, error);
  } finally {
    open?.close();
    if (denied === undefined) deps.limiter.leave(principal);
  }
}

async function countBody(
  deps: ModelRouterDeps,
  {
    dialect,
    principal,
    client,
    open,
  }: { dialect: Counted; principal: Principal; client: ClientWriter; open: OpenCall },
  request: IncomingMessage,
): Promise<number> {
  const hold = holdOf(deps, principal);
  const bytes = await readBody(request, { limit: BODY_MAX, hold, clock: deps.clock });
  try {
    const body = parseBody(bytes);
    checkBody(body);
    const model = findModel(deps, principal, body.model);
    open.narrow(body.model);
    requireBudget(deps, client, { principal, dialect, prices: model.prices });
    if (dialect === 'messages') checkMessages(body);
    const stored = dialect === 'responses' ? await storedInput(deps, { principal, hold }, body) : {};
    const referred = [...(stored.history ?? []), ...(stored.references?.values() ?? [])].flat();
    if (model.isShared) refuseOfServers(body, referred);
    const media = [...remoteMedia(body), ...remoteMedia(referred, 'previous_response_id')];
    requireMedia(model, media);
    const unable = model.members.flatMap(({ endpoint }) => (mayFetch(endpoint.mediaHosts, media) ? [] : [endpoint]));
    const member = model.pick(undefined, unable, principal.namespace);
    const counted =
      member === undefined
        ? undefined
        : await askWithin(deps, member, { dialect, principal, body, signal: open.signal, ...stored });
    if (counted !== undefined) return counted;
    const history = (stored.history ?? []).reduce((sum, item) => sum + tokensOfItem(item), 0);
    return estimateTokens(dialect, body) + history;
  } finally {
    hold.release();
  }
}

/** What a responses body refers to of the answers that the gateway keeps. Throws DialectError. */
function storedInput(
  deps: ModelRouterDeps,
  caller: { principal: Principal; hold: BodyHold },
  body: Json,
): Promise<StoredInput> {
  return readConversation(deps, caller, inspectRequest('responses', { input: '', ...body }));
}

interface StoredInput {
  history?: readonly HistoryItem[];
  references?: ReadonlyMap<string, readonly HistoryItem[]>;
}

interface Question extends StoredInput {
  dialect: Counted;
  body: Json;
  signal: AbortSignal;
}

/** Asks within the tenant's share of the server. A caller beyond it has an estimate. */
async function askWithin(
  deps: ModelRouterDeps,
  member: Member,
  { principal: { namespace }, ...question }: Question & { principal: Principal },
): Promise<number | undefined> {
  const { counts } = member.endpoint;
  if (counts.take(namespace, 1) !== 'taken') return undefined;
  try {
    return await ask(deps, member, question);
  } finally {
    counts.give(namespace, 1);
  }
}

async function ask(
  deps: ModelRouterDeps,
  member: Member,
  { dialect, body, signal, ...stored }: Question,
): Promise<number | undefined> {
  const { endpoint, upstreamModel } = member;
  const { probe, origin, credential } = endpoint;
  if (probe === undefined) return undefined;
  try {
    if (probe.countTokens && dialect === 'messages') {
      const path = `${probe.prefix}/v1/messages/count_tokens`;
      const question = { ...body, model: upstreamModel };
      const { json } = await endpoint.guard.ask(() =>
        smallRequest(deps.dispatcher, { origin, credential, path, body: question, signal, ...LIMITS }),
      );
      return isObject(json) ? optionalCount(json.input_tokens) : undefined;
    }
    if (!probe.tokenize || probe.engine !== 'vllm') return undefined;
    const quirks = quirksOf(probe.engine, probe.version, upstreamModel);
    const complete = { max_tokens: 1, ...body };
    const chat = translateRequest(dialect, 'chat', complete, { model: upstreamModel, quirks, ...stored });
    const question = {
      model: upstreamModel,
      messages: chat.messages,
      ...(chat.tools !== undefined && { tools: chat.tools }),
    };
    const { text } = await endpoint.guard.ask(() =>
      smallRequest(deps.dispatcher, { origin, credential, path: '/tokenize', body: question, signal, ...START }),
    );
    const [, count] = COUNT.exec(text) ?? [];
    return count === undefined ? undefined : Number(count);
  } catch (err) {
    // The caller has an estimate to answer with.
    deps.log.debug({ err, endpoint: endpoint.name }, 'Model server did not count tokens');
    return undefined;
  }
}
