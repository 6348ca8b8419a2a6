import type { Json } from '../../../lib/json.ts';
import { unsupported } from '../errors/dialect-error.ts';
import type { Quirks } from '../quirks.ts';
import { checkImage } from '../shared/refusals.ts';
import { inputOf } from '../shared/tool-arguments.ts';
import { textOf, type Turn } from '../shared/conversation.ts';
import type { OutputItem, Part } from '../types.ts';

/** Turns, without system turns, as messages. Results and the user text after them share one user message. */
export function renderTurns(turns: readonly Turn[], quirks: Quirks): Json[] {
  const messages: { role: string; content: Json[] }[] = [];
  for (const turn of turns) {
    const role = turn.role === 'assistant' ? 'assistant' : 'user';
    const content = renderTurn(turn, quirks);
    const last = messages.at(-1);
    if (last?.role === role) last.content.push(...content);
    else if (content.length > 0) messages.push({ role, content });
  }
  return messages.map((message) => ({ ...message }));
}

function renderTurn(turn: Turn, quirks: Quirks): Json[] {
  if (turn.role === 'assistant') return turn.items.flatMap(renderOutput);
  const parts = turn.parts.flatMap((part) => renderPart(part, quirks));
  if (turn.role !== 'tool') return parts;
  const result: Json = { type: 'tool_result', tool_use_id: turn.callId };
  result.content = turn.parts.every((part) => part.type === 'text') ? textOf(turn.parts) : parts;
  if (turn.isError) result.is_error = true;
  return [result];
}

function renderOutput(item: OutputItem): Json[] {
  switch (item.kind) {
    case 'text':
    case 'refusal':
      return [{ type: 'text', text: item.text }];
    case 'call':
      return [{ type: 'tool_use', id: item.callId, name: item.name, input: inputOf(item.arguments) }];
    default:
      if (item.redacted !== undefined) return [{ type: 'redacted_thinking', data: item.redacted }];
      // This engine cannot read another vendor's encrypted reasoning.
      return item.text === '' ? [] : [{ type: 'thinking', thinking: item.text, signature: item.signature ?? '' }];
  }
}

function renderPart(part: Part, quirks: Quirks): Json[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }];
  return [{ type: 'image', source: imageSource(part.url, quirks) }];
}

function imageSource(url: string, quirks: Quirks): Json {
  const data = /^data:([^;,]+);base64,/.exec(url);
  if (data !== null) return { type: 'base64', media_type: data[1], data: url.slice(data[0].length) };
  if (url.startsWith('data:')) throw unsupported('image_url', 'Data URLs of images must be base64.');
  checkImage(url, quirks);
  return { type: 'url', url };
}
