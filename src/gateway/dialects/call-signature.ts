import { createHash } from 'node:crypto';
import { isObject, type Json } from '../../lib/json.ts';
import type { CallItem, OutputItem, ReasoningItem } from './types.ts';

/** What a server sealed of its thoughts for a call, and of which model. */
export type CallSignature = NonNullable<ReasoningItem['callSignature']>;

/** Characters. Those of Gemini have some hundred to some thousand. */
const MOST = 65_536;

/** The signature of a tool call of chat, as the servers of Gemini write it; undefined for none, and for one that is too long. */
export function signatureOfCall({ extra_content: extra }: Json): string | undefined {
  const google = isObject(extra) ? extra.google : undefined;
  const { thought_signature: data } = isObject(google) ? google : {};
  return isTaken(data) ? data : undefined;
}

function isTaken(data: unknown): data is string {
  return typeof data === 'string' && data !== '' && data.length <= MOST;
}

/** The same tool call with its signature. */
export function withSignature(call: Json, data: string | undefined): Json {
  return data === undefined ? call : { ...call, extra_content: { google: { thought_signature: data } } };
}

/** Tells models apart, and does not say what they are called at their servers. */
export function signerOf(model: string): string {
  return createHash('sha256').update(model).digest('base64url').slice(0, 16);
}

/** The thought in front of a call that carries its signature to the client and back. */
export function signatureItem(data: string, by: string): ReasoningItem {
  return { kind: 'reasoning', text: '', callSignature: { data, by } };
}

/** A signature in what the client sent back. */
export function readSignature(data: unknown, by: unknown): { callSignature: CallSignature } | undefined {
  return isTaken(data) && typeof by === 'string' ? { callSignature: { data, by } } : undefined;
}

/**
 * What the calls of a turn are to be sent with. Each signature is of the next call that has none. Those of another model
 * stay out: its servers would refuse the whole call.
 */
export function signaturesOf(items: readonly OutputItem[], by: string): ReadonlyMap<CallItem, string> {
  const found = new Map<CallItem, string>();
  const open: CallSignature[] = [];
  for (const item of items) {
    if (item.kind === 'reasoning' && item.callSignature !== undefined) open.push(item.callSignature);
    const signature = item.kind === 'call' ? open.shift() : undefined;
    if (item.kind === 'call' && signature?.by === by) found.set(item, signature.data);
  }
  return found;
}
