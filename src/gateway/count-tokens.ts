import type { Request, Response } from 'express';
import {
  checkBody,
  checkMessages,
  estimateTokens,
  optionalCount,
  quirksOf,
  translateRequest,
} from './dialects/index.ts';
import { getPrincipal, type Principal } from '../access/principal.ts';
import { isObject, type Json } from '../lib/json.ts';
import type { Member } from './balance/model.ts';
import type { ModelRouterDeps } from './deps.ts';
import { smallRequest } from './discovery/small-http.ts';
import { findModel, parseBody } from './calls/admit.ts';
import { nextCallId } from './calls/call.ts';
import { ClientWriter } from './calls/client-writer.ts';
import { answerError } from './calls/answer-error.ts';
import { BODY_MAX, holdOf, requireScope } from './calls/handle-call.ts';
import { readBody } from './calls/read-body.ts';
import { LimitError } from './limits/limiter.ts';

const LIMITS = { timeoutMs: 10_000, maxBytes: 8 * 1024 * 1024 } as const;

/** Anthropic's count_tokens: the engine's own count, else the count of its tokeniser, else an estimate. */
export async function countTokens(deps: ModelRouterDeps, request: Request, response: Response): Promise<void> {
  const client = new ClientWriter(response, 'messages', nextCallId());
  const principal = getPrincipal(request);
  const denied = deps.limiter.enter(principal);
  try {
    if (denied !== undefined) throw new LimitError(denied);
    requireScope(principal);
    const overLimit = deps.limiter.isMetered(principal) ? await deps.limiter.countRequest(principal) : undefined;
    if (overLimit !== undefined) throw new LimitError(overLimit);
    const count = await countBody(deps, principal, request);
    client.sendWhole(Buffer.from(JSON.stringify({ input_tokens: count })));
  } catch (error) {
    answerError(deps, client, error);
  } finally {
    if (denied === undefined) deps.limiter.leave(principal);
  }
}

async function countBody(deps: ModelRouterDeps, principal: Principal, request: Request): Promise<number> {
  const hold = holdOf(deps, principal);
  const bytes = await readBody(request, { limit: BODY_MAX, hold, clock: deps.clock });
  try {
    const body = parseBody(bytes);
    checkBody(body);
    const model = findModel(deps, principal, body.model);
    checkMessages(body);
    const member = model.pick(undefined, [], principal.namespace);
    const counted = member === undefined ? undefined : await ask(deps, member, body);
    return counted ?? estimateTokens('messages', body);
  } finally {
    hold.release();
  }
}

async function ask(deps: ModelRouterDeps, member: Member, body: Json): Promise<number | undefined> {
  const { endpoint, upstreamModel } = member;
  const { probe, origin, credential } = endpoint;
  if (probe === undefined) return undefined;
  try {
    if (probe.countTokens) {
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
    const chat = translateRequest('messages', 'chat', complete, { model: upstreamModel, quirks });
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
