import type { Json } from '../../../lib/json.ts';
import { CHAT_FINISH } from '../stop-reason.ts';
import type { IrResponse, TranslationContext } from '../types.ts';
import { renderChatUsage } from '../usage.ts';
import { renderCall } from './render-request.ts';

/** A whole answer as a chat.completion body. */
export function renderChatResponse(response: IrResponse, context: TranslationContext): Json {
  const calls = response.items.filter((item) => item.kind === 'call');
  const text = joined(response, 'text');
  const refusal = joined(response, 'refusal');
  const reasoning = joined(response, 'reasoning');
  const message: Json = {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
  };
  if (reasoning !== '') message.reasoning_content = reasoning;
  if (calls.length > 0) message.tool_calls = calls.map(renderCall);
  const body: Json = {
    id: `chatcmpl-${context.id}`,
    object: 'chat.completion',
    created: context.createdAt,
    model: context.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: CHAT_FINISH[response.stop] }],
  };
  if (response.usage !== undefined) body.usage = renderChatUsage(response.usage);
  return body;
}

function joined(response: IrResponse, kind: 'text' | 'refusal' | 'reasoning'): string {
  return response.items.map((item) => (item.kind === kind ? item.text : '')).join('');
}
