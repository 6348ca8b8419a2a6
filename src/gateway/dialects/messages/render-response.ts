import { isObject, type Json } from '../../../lib/json.ts';
import { ownSeal } from '../encrypted-content.ts';
import { MESSAGES_STOP } from '../stop-reason.ts';
import { inputOf } from '../tool-arguments.ts';
import type { IrResponse, OutputItem, ReasoningItem, TranslationContext, Usage } from '../types.ts';
import { renderMessagesUsage } from '../usage.ts';

/** A whole answer as a messages body. */
export function renderMessagesResponse(response: IrResponse, context: TranslationContext, usage: Usage): Json {
  return {
    ...emptyMessage(context, usage),
    content: response.items.map(renderBlock),
    ...renderStop(response, context),
  };
}

/** Engines also tell of stop strings that a template has, such as `<|im_end|>`. To the client these are the end. */
export function renderStop(
  { stop, stopSequence }: Pick<IrResponse, 'stop' | 'stopSequence'>,
  { request }: TranslationContext,
): Json {
  const asked: unknown = isObject(request) ? request.stop_sequences : undefined;
  const isAsked = stopSequence === undefined || (Array.isArray(asked) && asked.includes(stopSequence));
  if (stop !== 'stop_sequence') return { stop_reason: MESSAGES_STOP[stop], stop_sequence: null };
  return { stop_reason: MESSAGES_STOP[isAsked ? stop : 'end'], stop_sequence: isAsked ? (stopSequence ?? null) : null };
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

/** A block of reasoning: a thinking block for text, else a redacted one with what the engine sealed. */
export function renderReasoning(item: ReasoningItem): Json {
  if (isSealed(item)) return { type: 'redacted_thinking', data: item.redacted ?? ownSeal(item) };
  return { type: 'thinking', thinking: item.text, signature: signatureOf(item) };
}

/** Whether reasoning has data that only its vendor reads, in place of a text. */
export function isSealed({ text, redacted, opaque, callSignature }: ReasoningItem): boolean {
  return text === '' && (redacted ?? opaque ?? callSignature) !== undefined;
}

export function signatureOf(item: ReasoningItem): string {
  return item.signature ?? ownSeal(item);
}
