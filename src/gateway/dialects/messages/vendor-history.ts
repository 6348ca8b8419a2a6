import { isObject } from '../../../lib/json.ts';
import { type CallIds, idsFor } from '../call-ids.ts';
import { decodeOwn } from '../encrypted-content.ts';
import { changedItems, objectsOf, textValue } from '../fields.ts';
import type { Quirks } from '../quirks.ts';

/** What Anthropic takes as the id of a call. */
export function callIdFor(id: string, { plainCallIds }: Quirks): string {
  return plainCallIds ? id.replaceAll(/[^\w-]/g, '_') : id;
}

/**
 * Messages without the thoughts that this gateway signed and without answers of white space, which came from another server:
 * Anthropic refuses both. Each call has an id of its own in its letters. The same list where all is so.
 */
export function historyForVendor(messages: unknown, quirks: Quirks): unknown {
  if (!Array.isArray(messages)) return messages;
  const blocks = objectsOf(messages).flatMap(({ content }) => objectsOf(content));
  const ids = idsFor(blocks.flatMap(({ type, id }) => (type === 'tool_use' ? [textValue(id)] : [])));
  return changedItems(messages, (message) => changedMessage(message, quirks, ids));
}

function changedMessage(message: unknown, quirks: Quirks, ids: CallIds | undefined): unknown[] {
  if (!isObject(message)) return [message];
  const isAnswer = message.role === 'assistant';
  if (!isAnswer) ids?.next();
  if (!Array.isArray(message.content)) return [message];
  const content = changedItems(message.content, (block) =>
    isOwnThought(block) || (isAnswer && isBlankText(block)) ? [] : [withCallId(block, quirks, ids)],
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

function withCallId(block: unknown, quirks: Quirks, ids: CallIds | undefined): unknown {
  if (!isObject(block) || (block.type !== 'tool_use' && block.type !== 'tool_result')) return block;
  const [name, own] =
    block.type === 'tool_use'
      ? (['id', ids?.ofCall(textValue(block.id))] as const)
      : (['tool_use_id', ids?.ofResult(textValue(block.tool_use_id))] as const);
  const { [name]: given } = block;
  const id = typeof given === 'string' ? callIdFor(own ?? given, quirks) : given;
  return id === given ? block : { ...block, [name]: id };
}
