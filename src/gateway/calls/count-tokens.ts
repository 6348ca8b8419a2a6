import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  checkBody,
  checkMessages,
  estimateTokens,
  inspectRequest,
  optionalCount,
  quirksOf,
  tokensOfItem,
  translateRequest,
  type HistoryItem,
} from '../dialects/index.ts';
import { getPrincipal, type Principal } from '../../access/principal.ts';
import { isObject, type Json } from '../../lib/json.ts';
import type { Member } from '../balance/model.ts';
import type { ModelRouterDeps } from '../deps.ts';
import { smallRequest } from '../discovery/small-http.ts';
import { findModel } from '../find-model.ts';
import { parseBody } from './admit.ts';
import { nextCallId } from './call.ts';
import { ClientWriter } from './client-writer.ts';
import { answerError } from './answer-error.ts';
import { BODY_MAX, countRequest, holdOf, requireScope } from './handle-call.ts';
import { readBody } from './read-body.ts';
import { LimitError } from '../limits/limiter.ts';
import { Standings } from '../limits/standings.ts';
import { readHistory } from '../state/history.ts';

const LIMITS = { timeoutMs: 10_000, maxBytes: 8 * 1024 * 1024 } as const;

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
  try {
    if (denied !== undefined) throw new LimitError(denied);
    requireScope(principal);
    if (deps.limiter.isMetered(principal))
      await countRequest(deps, client, { principal, dialect, standings: new Standings() });
    const count = { input_tokens: await countBody(deps, dialect, principal, request) };
    const answer = dialect === 'messages' ? count : { object: 'response.input_tokens', ...count };
    client.sendWhole(Buffer.from(JSON.stringify(answer)));
  } catch (error) {
    answerError(deps, client, error);
  } finally {
    if (denied === undefined) deps.limiter.leave(principal);
  }
}

async function countBody(
  deps: ModelRouterDeps,
  dialect: Counted,
  principal: Principal,
  request: IncomingMessage,
): Promise<number> {
  const hold = holdOf(deps, principal);
  const bytes = await readBody(request, { limit: BODY_MAX, hold, clock: deps.clock });
  try {
    const body = parseBody(bytes);
    checkBody(body);
    const model = findModel(deps, principal, body.model);
    if (dialect === 'messages') checkMessages(body);
    const stored = dialect === 'responses' ? await storedInput(deps, principal, body) : {};
    const member = model.pick(undefined, [], principal.namespace);
    const counted = member === undefined ? undefined : await ask(deps, member, { dialect, body, ...stored });
    if (counted !== undefined) return counted;
    const history = (stored.history ?? []).reduce((sum, item) => sum + tokensOfItem(item), 0);
    return estimateTokens(dialect, body) + history;
  } finally {
    hold.release();
  }
}

/** What a responses body refers to of the answers that the gateway keeps. Throws DialectError. */
async function storedInput(deps: ModelRouterDeps, principal: Principal, body: Json): Promise<StoredInput> {
  const { previousResponseId, itemReferences } = inspectRequest('responses', { input: '', ...body });
  return {
    history: previousResponseId === undefined ? [] : await readHistory(deps.store, principal, previousResponseId),
    references: await deps.store.findItems(principal, itemReferences),
  };
}

interface StoredInput {
  history?: readonly HistoryItem[];
  references?: ReadonlyMap<string, readonly HistoryItem[]>;
}

interface Question extends StoredInput {
  dialect: Counted;
  body: Json;
}

async function ask(
  deps: ModelRouterDeps,
  member: Member,
  { dialect, body, ...stored }: Question,
): Promise<number | undefined> {
  const { endpoint, upstreamModel } = member;
  const { probe, origin, credential } = endpoint;
  if (probe === undefined) return undefined;
  try {
    if (probe.countTokens && dialect === 'messages') {
      const path = `${probe.prefix}/v1/messages/count_tokens`;
      const { json } = await smallRequest(deps.dispatcher, {
        origin,
        credential,
        path,
        body: { ...body, model: upstreamModel },
        ...LIMITS,
      });
      return numberAt(json, 'input_tokens');
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
    const { json } = await smallRequest(deps.dispatcher, {
      origin,
      credential,
      path: '/tokenize',
      body: question,
      ...LIMITS,
    });
    return numberAt(json, 'count');
  } catch (err) {
    // The caller has an estimate to answer with.
    deps.log.debug({ err, endpoint: endpoint.name }, 'Model server did not count tokens');
    return undefined;
  }
}

function numberAt(json: unknown, name: string): number | undefined {
  return isObject(json) ? optionalCount(json[name]) : undefined;
}
