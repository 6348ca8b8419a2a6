import type { Json } from '../../../lib/json.ts';
import { encodeReasoning } from '../encrypted-content.ts';
import { MESSAGES_STOP } from '../stop-reason.ts';
import { inputOf } from '../tool-arguments.ts';
import type { IrResponse, OutputItem, TranslationContext, Usage } from '../types.ts';
import { renderMessagesUsage } from '../usage.ts';

/** The gateway's own signature. Clients require one and send it back unchecked. */
export const OWN_SIGNATURE = encodeReasoning({ kind: 'reasoning', text: '' });

/** A whole answer as a messages body. */
export function renderMessagesResponse(response: IrResponse, context: TranslationContext, usage: Usage): Json {
  return {
    ...emptyMessage(context, usage),
    content: response.items.map(renderBlock),
    stop_reason: MESSAGES_STOP[response.stop],
    stop_sequence: response.stop === 'stop_sequence' ? (response.stopSequence ?? null) : null,
  };
}

/** The message of `message_start`: everything but the content. */
export function emptyMessage(context: TranslationContext, usage: Usage): Json {
  return {
    id: `msg_${context.id}`,
    type: 'message',
    role: 'assistant',
    model: context.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: {
      ...renderMessagesUsage(usage),
      cache_creation: null,
      inference_geo: null,
      service_tier: 'standard',
      speed: null,
    },
  };
}

function renderBlock(item: OutputItem): Json {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      // The published type is a list or null. The AI SDK refuses null.
      return { type: 'text', text: item.text, citations: [] };
    case 'call':
      return {
        type: 'tool_use',
        id: item.callId,
        caller: { type: 'direct' },
        name: item.name,
        input: inputOf(item.arguments),
      };
    default:
      return renderReasoning(item);
  }
}

/** A block of reasoning: a thinking block for text, else a redacted one with the data as the engine sent it. */
export function renderReasoning(item: OutputItem & { kind: 'reasoning' }): Json {
  const sealed = item.redacted ?? item.opaque;
  if (item.text === '' && sealed !== undefined) return { type: 'redacted_thinking', data: sealed };
  return { type: 'thinking', thinking: item.text, signature: item.signature ?? OWN_SIGNATURE };
}
