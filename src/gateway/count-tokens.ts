import type { Request, Response } from 'express';
import {
  checkBody,
  checkMessages,
  estimateTokens,
  optionalCount,
  quirksOf,
  translateRequest,
} from './dialects/index.ts';
import { getPrincipal } from '../access/principal.ts';
import { isObject, type Json } from '../lib/json.ts';
import type { Member } from './balance/model.ts';
import type { ModelRouterDeps } from './deps.ts';
import { smallRequest } from './discovery/small-http.ts';
import { findModel, parseBody } from './calls/admit.ts';
import { nextCallId } from './calls/call.ts';
import { ClientWriter } from './calls/client-writer.ts';
import { answerError } from './calls/answer-error.ts';
import { BODY_MAX, requireScope } from './calls/handle-call.ts';
import { readBody } from './calls/read-body.ts';

const LIMITS = { timeoutMs: 10_000, maxBytes: 8 * 1024 * 1024 } as const;

/** Anthropic's count_tokens: the engine's own count, else the count of its tokeniser, else an estimate. */
export async function countTokens(deps: ModelRouterDeps, request: Request, response: Response): Promise<void> {
  const client = new ClientWriter(response, 'messages', nextCallId());
  try {
    const principal = getPrincipal(request);
    requireScope(principal);
    const { bytes, heldBytes } = await readBody(request, BODY_MAX, deps.bodies);
    try {
      const body = parseBody(bytes);
      checkBody(body);
      const model = findModel(deps, principal, body.model);
      checkMessages(body);
      const estimate = estimateTokens('messages', body);
      const member = model.pick(undefined, []);
      const counted = member === undefined ? undefined : await ask(deps, member, body);
      client.sendWhole(Buffer.from(JSON.stringify({ input_tokens: counted ?? estimate })));
    } finally {
      deps.bodies.release(heldBytes);
    }
  } catch (error) {
    answerError(deps, client, error);
  }
}

async function ask(deps: ModelRouterDeps, member: Member, body: Json): Promise<number | undefined> {
  const { endpoint, upstreamModel } = member;
  const { probe, origin } = endpoint;
  if (probe === undefined) return undefined;
  try {
    if (probe.countTokens) {
      const path = `${probe.prefix}/v1/messages/count_tokens`;
      const { json } = await smallRequest(deps.dispatcher, {
        origin,
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
    const { json } = await smallRequest(deps.dispatcher, { origin, path: '/tokenize', body: question, ...LIMITS });
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
