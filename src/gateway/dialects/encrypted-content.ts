import { isObject, type Json } from '../../lib/json.ts';
import { parseJson } from './fields.ts';
import type { ReasoningItem } from './types.ts';

const PREFIX = 'berth1.';

/**
 * The `encrypted_content` of a reasoning item that the gateway makes. Clients without server state, such as Codex, send
 * only this field back, so it has the text and, from a messages engine, the signature or redacted data.
 */
export function encodeReasoning(item: ReasoningItem): string {
  if (item.opaque !== undefined) return item.opaque;
  return encode({ t: item.text, s: item.signature, r: item.redacted });
}

/** The `encrypted_content` of a summary that the gateway had written. */
export function encodeSummary(text: string): string {
  return encode({ c: text });
}

/** The summary in an `encrypted_content`; undefined for one that the gateway did not make. */
export function decodeSummary(token: string): string | undefined {
  const { c: text } = decode(token) ?? {};
  return typeof text === 'string' ? text : undefined;
}

function encode(payload: Json): string {
  return PREFIX + Buffer.from(JSON.stringify(payload)).toString('base64url');
}

function decode(token: string): Json | undefined {
  if (!token.startsWith(PREFIX)) return undefined;
  const payload = parseJson(Buffer.from(token.slice(PREFIX.length), 'base64url').toString('utf8'));
  return isObject(payload) ? payload : {};
}

/** The reasoning in an `encrypted_content` or a signature. One that the gateway did not make becomes `opaque`. */
export function decodeReasoning(token: string): Omit<ReasoningItem, 'kind' | 'id'> {
  const payload = decode(token);
  if (payload === undefined) return { text: '', opaque: token };
  return {
    text: typeof payload.t === 'string' ? payload.t : '',
    ...(typeof payload.s === 'string' && { signature: payload.s }),
    ...(typeof payload.r === 'string' && { redacted: payload.r }),
  };
}
