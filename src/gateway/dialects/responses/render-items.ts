import type { Json } from '../../../lib/json.ts';
import { itemId } from '../shared/output-items.ts';
import { encodeReasoning } from '../shared/encrypted-content.ts';
import { argumentText } from '../shared/tool-arguments.ts';
import { resultText } from '../shared/conversation.ts';
import type { HistoryItem, OutputItem, Part } from '../types.ts';

/** Items as `input`. Types and engines require ids and a status in replayed output (vllm-project/vllm#33089). */
export function renderItems(items: readonly HistoryItem[]): Json[] {
  return items.map(renderItem);
}

function renderItem(item: HistoryItem, position: number): Json {
  switch (item.kind) {
    case 'message':
      return { type: 'message', role: item.role, content: item.parts.map(renderPart) };
    case 'text':
      return assistantMessage(idOf(item, position), { type: 'output_text', text: item.text, annotations: [] });
    case 'refusal':
      return assistantMessage(idOf(item, position), { type: 'refusal', refusal: item.text });
    case 'call':
      return { type: 'function_call', call_id: item.callId, name: item.name, arguments: argumentText(item.arguments) };
    case 'result':
      return { type: 'function_call_output', call_id: item.callId, output: renderOutput(item) };
    default:
      return {
        type: 'reasoning',
        id: idOf(item, position),
        summary: [],
        ...(item.text !== '' && { content: [{ type: 'reasoning_text', text: item.text }] }),
        ...((item.opaque ?? item.signature ?? item.redacted) !== undefined && {
          encrypted_content: encodeReasoning(item),
        }),
      };
  }
}

function idOf(item: OutputItem, position: number): string {
  return item.id ?? itemId(item.kind, 'h', position);
}

function assistantMessage(id: string, part: Json): Json {
  return { type: 'message', id, role: 'assistant', status: 'completed', content: [part] };
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
