import { createHmac, hash, randomBytes } from 'node:crypto';

/** Annotation of what a request with an Idempotency-Key created: the hash of that request's body. */
export const REQUEST_HASH = 'berth.dev/request-hash';

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

function base32(bytes: Uint8Array, length: number): string {
  let text = '';
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5 && text.length < length) {
      bits -= 5;
      text += BASE32.charAt((value >>> bits) & 31);
      value &= (1 << bits) - 1;
    }
  }
  return text;
}

/** A fresh instance name: `i-` and 12 base32 characters (60 random bits). */
export function newInstanceName(): string {
  return `i-${base32(randomBytes(8), 12)}`;
}

/**
 * The name of the object that an idempotency key creates: the same in every replica and every retry of one tenant, and
 * to be guessed by nobody without the secret.
 */
export function idempotentName(prefix: string, namespace: string, key: string, secret: Buffer): string {
  const digest = createHmac('sha256', secret).update(`${namespace}\0${key}`).digest();
  return `${prefix}-${base32(digest, 20)}`;
}

/** Id of an SSH key or template: the first 48 bits of SHA-256 of metadata.uid, which JSON carries exactly. Never 0. */
export function numericId(uid: string): number {
  const id = hash('sha256', uid, 'buffer').readUIntBE(0, 6);
  return id === 0 ? 1 : id;
}

/** What makes two places the same offer. */
export interface OfferIdentity {
  pool: string;
  resourceName: string;
  product: string;
  memoryMb: number;
  gpuCount: number;
  /** Simulated nodes never share an offer with real ones. */
  simulated?: boolean;
  /** The part of a whole GPU that a time-sliced one is; undefined for all else. */
  gpuShare?: string | undefined;
}

/** The id of an offer (`ask_id`): a positive 31-bit integer that its identity determines. */
export function offerId(identity: OfferIdentity): number {
  const { pool, resourceName, product, memoryMb, gpuCount, simulated = false, gpuShare } = identity;
  const others = [...(simulated ? ['simulated'] : []), ...(gpuShare === undefined ? [] : [gpuShare])];
  const text = [pool, resourceName, product, memoryMb, gpuCount, ...others].join('\0');
  const id = hash('sha256', text, 'buffer').readUInt32BE(0) & 0x7fffffff;
  return id === 0 ? 1 : id;
}
