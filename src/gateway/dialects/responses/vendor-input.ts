import { isObject, type Json } from '../../../lib/json.ts';
import { decodeOwn, decodeSummary } from '../encrypted-content.ts';
import { changedItems, objectsOf, textValue } from '../fields.ts';
import { parseCompaction } from './compaction.ts';
import { renderItems } from './render-request.ts';

/** Input without signatures of chat: engines refuse a thought without a text. The same list where it has none. */
export function withoutSignatures(input: unknown): unknown {
  if (!Array.isArray(input)) return input;
  return changedItems(input, (item) => (isObject(item) && isSignature(item) ? [] : [item]));
}

function isSignature({ type, encrypted_content: sealed }: Json): boolean {
  return type === 'reasoning' && decodeOwn(textValue(sealed))?.callSignature !== undefined;
}

/**
 * Input without what this gateway sealed, which came from another server: OpenAI refuses a seal that is not its own. So it does
 * a thought that has no more than an id, because it stored none. A summary is a text. The same list where it has none of these.
 */
export function inputForVendor(input: unknown): unknown {
  if (!Array.isArray(input)) return input;
  return changedItems(input, (item) => (isObject(item) ? changedItem(item) : [item]));
}

function changedItem(item: Json): unknown[] {
  const sealed = textValue(item.encrypted_content);
  if (item.type === 'reasoning') {
    const isKept = sealed === '' ? objectsOf(item.content).length > 0 : decodeOwn(sealed) === undefined;
    return isKept ? [item] : [];
  }
  return item.type === 'compaction' && decodeSummary(sealed) !== undefined
    ? renderItems([parseCompaction(item)])
    : [item];
}
