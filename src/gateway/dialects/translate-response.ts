import { isObject, type Json } from '../../lib/json.ts';
import { signerOf } from './call-signature.ts';
import { isNoCall, itemId, tidy } from './output-items.ts';
import { parseChatResponse } from './chat/parse-response.ts';
import { renderChatResponse } from './chat/render-response.ts';
import { estimateTokens, tokensOfItems } from './inspect/estimate-tokens.ts';
import { parseJson } from './fields.ts';
import { DialectError } from './errors/dialect-error.ts';

import { parseMessagesResponse } from './messages/parse-response.ts';
import { renderMessagesResponse } from './messages/render-response.ts';
import { parseResponsesResponse } from './responses/parse-response.ts';
import { renderResponsesResponse } from './responses/render-response.ts';
import type { Dialect, HistoryItem, IrResponse, OutputItem, TranslationContext, Usage } from './types.ts';
import { isErrorObject, readErrorObject } from './errors/upstream-error.ts';
import { atLeast } from './usage.ts';
import { type AnswerOptions, answerOptions } from './answer-options.ts';

export interface TranslatedResponse {
  body: unknown;
  usage: Usage | undefined;
  /** The output of this answer, to be stored after the input. */
  items: HistoryItem[];
}

const PARSERS = {
  chat: parseChatResponse,
  responses: parseResponsesResponse,
  messages: parseMessagesResponse,
} as const satisfies Record<Dialect, (body: Json) => IrResponse | undefined>;

/** Translates a whole answer. Throws DialectError: 502 when the body is no answer, or the engine's own error. */
export function translateResponse(
  upstream: Dialect,
  client: Dialect,
  body: unknown,
  context: TranslationContext,
): TranslatedResponse {
  const options = answerOptions(client, context);
  const parsed = parseAnswer(upstream, body);
  const items = identify(tidy(parsed.items, options.singleCall), context, options);
  const { usage } = parsed;
  const told = usage?.outputTokens === 0 ? atLeast(tokensOfItems(items), usage) : usage;
  const response = { ...parsed, items, ...(told !== undefined && { usage: told }) };
  if (client === 'chat') return { body: renderChatResponse(response, context), usage, items };
  if (client === 'responses') return { body: renderResponsesResponse(response, context, options), usage, items };
  const counted = told ?? { ...estimatedUsage(client, context), outputTokens: tokensOfItems(items) };
  return { body: renderMessagesResponse(response, context, counted), usage, items };
}

/** Reads a whole answer. Throws DialectError: 502 when the body is no answer, or the engine's own error. */
export function parseAnswer(upstream: Dialect, body: unknown): IrResponse {
  if (isObject(body)) {
    if (isErrorObject(body) || isObject(body.error)) throw new DialectError(readErrorObject(body));
    const parsed = PARSERS[upstream](body);
    if (parsed !== undefined) return withoutNoCalls(parsed);
  }
  throw new DialectError({
    status: 502,
    message: 'The model server answered with a body that is not an answer in its dialect.',
    code: 'bad_upstream_response',
  });
}

/** An estimate of what a whole answer has. */
export function outputTokensIn(dialect: Dialect, bytes: Buffer): number {
  const body = parseJson(bytes.toString('utf8'));
  return isObject(body) ? tokensOfItems(PARSERS[dialect](body)?.items ?? []) : 0;
}

function withoutNoCalls(answer: IrResponse): IrResponse {
  const items = answer.items.filter((item) => item.kind !== 'call' || !isNoCall(item));
  const hasCalls = items.some((item) => item.kind === 'call');
  return { ...answer, items, stop: answer.stop === 'tool' && !hasCalls ? 'end' : answer.stop };
}

/** Gives every item an id, signatures their signer, and a call id to calls without one of their own. */
function identify(
  items: readonly OutputItem[],
  { id: answer, upstreamModel, model }: TranslationContext,
  { origins }: AnswerOptions,
): OutputItem[] {
  const seen = new Set<string>();
  const by = signerOf(upstreamModel ?? model);
  return items.map((item, index) => {
    const own = { id: itemId(item.kind, answer, index) };
    if (item.kind === 'reasoning' && item.callSignature !== undefined)
      return { ...item, callSignature: { ...item.callSignature, by }, ...own };
    if (item.kind !== 'call') return { ...item, ...own };
    const id = itemId(item.kind, answer, index, origins.get(item.name));
    const callId = item.callId === '' || seen.has(item.callId) ? `call_${answer}${index}` : item.callId;
    seen.add(callId);
    return { ...item, id, callId };
  });
}

/** Usage for an engine that reports none, where the dialect requires numbers. */
export function estimatedUsage(client: Dialect, context: TranslationContext): Usage {
  const inputTokens = estimateTokens(client, context.request);
  return { inputTokens, outputTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
}
