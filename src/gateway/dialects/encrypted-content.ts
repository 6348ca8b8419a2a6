import { isObject } from '../../lib/json.ts';
import { parseJson } from './fields.ts';
import type { ReasoningItem } from './types.ts';

const PREFIX = 'berth1.';

/**
 * The `encrypted_content` of a reasoning item that the gateway makes. Clients without server state, such as Codex, send
 * only this field back, so it has the text and, from a messages engine, the signature or redacted data.
 */
export function encodeReasoning(item: ReasoningItem): string {
  if (item.opaque !== undefined) return item.opaque;
  const payload = { t: item.text, s: item.signature, r: item.redacted };
  return PREFIX + Buffer.from(JSON.stringify(payload)).toString('base64url');
}

/** The reasoning in an `encrypted_content` or a signature. One that the gateway did not make becomes `opaque`. */
export function decodeReasoning(token: string): Omit<ReasoningItem, 'kind' | 'id'> {
  if (!token.startsWith(PREFIX)) return { text: '', opaque: token };
  const payload = parseJson(Buffer.from(token.slice(PREFIX.length), 'base64url').toString('utf8'));
  if (!isObject(payload)) return { text: '' };
  return {
    text: typeof payload.t === 'string' ? payload.t : '',
    ...(typeof payload.s === 'string' && { signature: payload.s }),
    ...(typeof payload.r === 'string' && { redacted: payload.r }),
  };
}
