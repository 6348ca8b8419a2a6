import { encodeReasoning } from '../reasoning-token.ts';
import { argumentText } from '../tool-input.ts';
import { resultText } from '../turns.ts';
import type { HistoryItem, Json, Part } from '../types.ts';

/** Internal items as `input` items for a responses backend. */
export function renderItems(items: readonly HistoryItem[]): Json[] {
  return items.map(renderItem);
}

function renderItem(item: HistoryItem): Json {
  switch (item.kind) {
    case 'message':
      return { type: 'message', role: item.role, content: item.parts.map(renderPart) };
    case 'text':
      return assistantMessage({ type: 'output_text', text: item.text, annotations: [] });
    case 'refusal':
      return assistantMessage({ type: 'refusal', refusal: item.text });
    case 'call':
      return { type: 'function_call', call_id: item.callId, name: item.name, arguments: argumentText(item.arguments) };
    case 'result':
      return { type: 'function_call_output', call_id: item.callId, output: renderOutput(item) };
    default:
      return {
        type: 'reasoning',
        summary: [],
        ...(item.text !== '' && { content: [{ type: 'reasoning_text', text: item.text }] }),
        ...((item.opaque ?? item.signature ?? item.redacted) !== undefined && {
          encrypted_content: encodeReasoning(item),
        }),
      };
  }
}

function assistantMessage(part: Json): Json {
  return { type: 'message', role: 'assistant', content: [part] };
}

function renderOutput(item: { parts: Part[]; isError?: boolean }): unknown {
  const text = resultText({ parts: item.parts, isError: item.isError ?? false });
  const images = item.parts.filter((part) => part.type === 'image');
  return images.length === 0
    ? text
    : [...(text === '' ? [] : [{ type: 'input_text', text }]), ...images.map(renderPart)];
}

function renderPart(part: Part): Json {
  if (part.type === 'text') return { type: 'input_text', text: part.text };
  return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' };
}
