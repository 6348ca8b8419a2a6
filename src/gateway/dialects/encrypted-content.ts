import { isObject, type Json } from '../../lib/json.ts';
import { readSignature } from './call-signature.ts';
import { parseJson } from './fields.ts';
import type { ReasoningItem } from './types.ts';

const PREFIX = 'berth1.';

/**
 * The `encrypted_content` of a reasoning item that the gateway makes. Clients without server state, such as Codex, send
 * only this field back, so it has the text and, from a messages engine, the signature or redacted data.
 */
export function encodeReasoning(item: ReasoningItem): string {
  if (item.opaque !== undefined) return item.opaque;
  return encode({ t: item.text, s: item.signature, r: item.redacted, ...signed(item) });
}

function signed({ callSignature }: Pick<ReasoningItem, 'callSignature'>): Json {
  return callSignature === undefined ? {} : { g: callSignature.data, b: callSignature.by };
}

/**
 * The gateway's own signature of thinking, and its data in place of a text. Clients of messages require one and send it back
 * unchecked, so it has what another vendor sealed.
 */
export function ownSeal({ opaque, ...item }: Pick<ReasoningItem, 'opaque' | 'callSignature'>): string {
  return encode({ t: '', o: opaque, ...signed(item) });
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

type Sealed = Omit<ReasoningItem, 'kind' | 'id'>;

/** The reasoning in an `encrypted_content`. One that the gateway did not make becomes `opaque`. */
export function decodeReasoning(token: string): Sealed {
  return decodeOwn(token) ?? { text: '', opaque: token };
}

/** The reasoning in what the gateway made; undefined for anything else. */
export function decodeOwn(token: string): Sealed | undefined {
  const payload = decode(token);
  if (payload === undefined) return undefined;
  return {
    text: typeof payload.t === 'string' ? payload.t : '',
    ...(typeof payload.s === 'string' && { signature: payload.s }),
    ...(typeof payload.r === 'string' && { redacted: payload.r }),
    ...(typeof payload.o === 'string' && { opaque: payload.o }),
    ...readSignature(payload.g, payload.b),
  };
}
