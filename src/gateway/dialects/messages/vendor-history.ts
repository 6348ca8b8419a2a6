import { isObject, type Json } from '../../../lib/json.ts';
import { decodeOwn } from '../encrypted-content.ts';
import { changedItems, textValue } from '../fields.ts';
import type { Quirks } from '../quirks.ts';

/** What Anthropic takes as the id of a call. */
export function callIdFor(id: string, { plainCallIds }: Quirks): string {
  return plainCallIds ? id.replaceAll(/[^\w-]/g, '_') : id;
}

/**
 * Messages without the thoughts that this gateway signed and without answers of white space, which came from another server:
 * Anthropic refuses both. The ids of calls are in its letters. The same list where it has none of these.
 */
export function historyForVendor(messages: unknown, quirks: Quirks): unknown {
  if (!Array.isArray(messages)) return messages;
  return changedItems(messages, (message) => changedMessage(message, quirks));
}

function changedMessage(message: unknown, quirks: Quirks): unknown[] {
  if (!isObject(message) || !Array.isArray(message.content)) return [message];
  const isAnswer = message.role === 'assistant';
  const content = changedItems(message.content, (block) =>
    isOwnThought(block) || (isAnswer && isBlankText(block)) ? [] : [withCallId(block, quirks)],
  );
  if (content === message.content) return [message];
  // A message without content is refused.
  return content.length === 0 ? [] : [{ ...message, content }];
}

function isBlankText(block: unknown): boolean {
  return isObject(block) && block.type === 'text' && typeof block.text === 'string' && block.text.trim() === '';
}

function isOwnThought(block: unknown): boolean {
  if (!isObject(block)) return false;
  const { type, signature, data } = block;
  if (type === 'thinking') return decodeOwn(textValue(signature)) !== undefined;
  return type === 'redacted_thinking' && decodeOwn(textValue(data)) !== undefined;
}

function withCallId(block: unknown, quirks: Quirks): unknown {
  const name = isObject(block) ? ID_NAMES.get(block.type) : undefined;
  if (name === undefined) return block;
  const { [name]: given } = block as Json;
  const id = typeof given === 'string' ? callIdFor(given, quirks) : given;
  return id === given ? block : { ...(block as Json), [name]: id };
}

const ID_NAMES = new Map<unknown, string>([
  ['tool_use', 'id'],
  ['tool_result', 'tool_use_id'],
]);
