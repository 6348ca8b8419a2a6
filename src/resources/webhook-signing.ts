import { createHmac } from 'node:crypto';
import type { Webhook } from './webhook.ts';

const PREFIX = 'whsec_';

/**
 * The signing secret of a webhook, as Standard Webhooks writes it. It is derived: whoever has the key can derive all of
 * them, and nothing stores one.
 *
 * @param key 32 bytes, from the Secret `berth-webhook-key`
 */
export function signingSecret(key: Buffer, { metadata, spec }: Pick<Webhook, 'metadata' | 'spec'>): string {
  const { uid } = metadata;
  // Without a uid all webhooks would share one secret.
  if (uid === undefined || uid === '') throw new RangeError('a webhook without a uid has no signing secret');
  const digest = createHmac('sha256', key)
    .update(`${uid}/${spec.secretVersion ?? 1}`)
    .digest('base64');
  return PREFIX + digest;
}

/** What a delivery says of itself, as Standard Webhooks 1.0.0 names it. */
export interface SignedHeaders {
  'webhook-id': string;
  'webhook-timestamp': string;
  'webhook-signature': string;
}

/** Signs a body. `timestamp`: whole seconds since the epoch. */
export function signedHeaders(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
): SignedHeaders {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': `v1,${signature}` };
}
