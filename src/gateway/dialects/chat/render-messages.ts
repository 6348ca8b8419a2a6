import { unsupported } from '../errors/dialect-error.ts';
import type { Quirks } from '../quirks.ts';
import { argumentText } from '../shared/tool-arguments.ts';
import { resultText, type Turn } from '../shared/conversation.ts';
import type { Json, OutputItem, Part } from '../types.ts';

/** Turns (without system) as chat messages. */
export function renderTurns(turns: readonly Turn[], quirks: Quirks): Json[] {
  const messages: Json[] = [];
  let images: Part[] = [];
  for (const turn of turns) {
    if (turn.role === 'tool') {
      messages.push({ role: 'tool', tool_call_id: turn.callId, content: resultText(turn) });
      images.push(...turn.parts.filter((part) => part.type === 'image'));
      continue;
    }
    // Chat has no images in tool messages; as in vLLM, a user message after all the results shows them.
    const shown: Part[] = images.length > 0 ? [{ type: 'text', text: 'Images returned by the tools:' }, ...images] : [];
    images = [];
    if (turn.role === 'assistant') {
      pushUser(messages, shown, quirks);
      messages.push(renderAssistant(turn.items, quirks));
    } else pushUser(messages, [...shown, ...turn.parts], quirks);
  }
  if (images.length > 0)
    pushUser(messages, [{ type: 'text', text: 'Images returned by the tools:' }, ...images], quirks);
  return messages;
}

function pushUser(messages: Json[], parts: readonly Part[], quirks: Quirks): void {
  if (parts.length === 0) return;
  const last = messages.at(-1);
  const content = renderParts(parts, quirks);
  // Templates that insist on alternation refuse this user turn; its text joins the turn before.
  const joins = last !== undefined && (last.role === 'tool' || last.role === 'user');
  if (quirks.strictAlternation && joins && typeof content === 'string' && typeof last.content === 'string') {
    last.content = last.content === '' ? content : `${last.content}\n\n${content}`;
    return;
  }
  messages.push({ role: 'user', content });
}

function renderParts(parts: readonly Part[], quirks: Quirks): string | Json[] {
  const [only] = parts;
  if (parts.length === 1 && only?.type === 'text') return only.text;
  if (quirks.strictAlternation && parts.every((part) => part.type === 'text')) {
    return parts.map((part) => part.text).join('\n\n');
  }
  return parts.map((part) => (part.type === 'text' ? { type: 'text', text: part.text } : renderImage(part, quirks)));
}

function renderImage(part: { url: string; detail?: string }, quirks: Quirks): Json {
  if (!quirks.remoteImages && !part.url.startsWith('data:')) {
    throw unsupported(
      'image_url',
      'This engine takes images only as data URLs; the gateway does not fetch remote ones.',
    );
  }
  return {
    type: 'image_url',
    image_url: part.detail === undefined ? { url: part.url } : { url: part.url, detail: part.detail },
  };
}

function renderAssistant(items: readonly OutputItem[], quirks: Quirks): Json {
  const message: Json = { role: 'assistant' };
  const calls = items.filter((item) => item.kind === 'call');
  const text = assistantText(items);
  // Templates such as Mistral's refuse an empty text beside calls (vllm #38738): null there, text otherwise.
  message.content = text === '' && calls.length > 0 ? null : text;
  const reasoning = items.flatMap((item) => (item.kind === 'reasoning' && item.text !== '' ? [item.text] : []));
  if (reasoning.length > 0) for (const field of quirks.reasoningFields) message[field] = reasoning.join('\n\n');
  if (calls.length > 0) message.tool_calls = calls.map(renderCall);
  return message;
}

/** Texts of one turn: pieces of the same text are joined as they are, those apart by a call with a blank line. */
function assistantText(items: readonly OutputItem[]): string {
  let text = '';
  let apart = false;
  for (const item of items) {
    if (item.kind === 'text' || item.kind === 'refusal') {
      text += text !== '' && apart ? `\n\n${item.text}` : item.text;
      apart = false;
    } else apart = true;
  }
  return text;
}

/** One call as chat spells it. */
export function renderCall(call: { callId: string; name: string; arguments: string }): Json {
  return { id: call.callId, type: 'function', function: { name: call.name, arguments: argumentText(call.arguments) } };
}
