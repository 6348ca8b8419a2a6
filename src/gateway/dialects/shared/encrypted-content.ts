import { isObject } from '../../../lib/json.ts';
import { parseJson } from '../fields.ts';
import type { ReasoningItem } from '../types.ts';

const PREFIX = 'berth1.';

/**
 * The `encrypted_content` of a reasoning item made by the gateway. Clients that keep no server state send only this
 * field back (Codex does), so it carries the text and, from a messages backend, the signature or redacted data.
 */
export function encodeReasoning(item: ReasoningItem): string {
  if (item.opaque !== undefined) return item.opaque;
  const payload = { t: item.text, s: item.signature, r: item.redacted };
  return PREFIX + Buffer.from(JSON.stringify(payload)).toString('base64url');
}

/** The reasoning of an `encrypted_content` or a signature; one the gateway did not make is kept as opaque. */
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
