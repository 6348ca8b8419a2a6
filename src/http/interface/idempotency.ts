import { hkdfSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { contentHash } from '../../lib/content-hash.ts';
import { idempotentName } from '../../resources/ids.ts';
import { ApiError } from './errors/api-error.ts';
import { LIMITS } from './schema.ts';

/** Printable ASCII, no space at either end. */
export const IDEMPOTENCY_KEY = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** The Idempotency-Key of a request. Throws 400 for one that is empty, too long or not printable ASCII. */
export function idempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length <= LIMITS.idempotencyKey && IDEMPOTENCY_KEY.test(key)) return key;
  const most = LIMITS.idempotencyKey;
  throw new ApiError(
    'bad_request',
    `The Idempotency-Key must be 1 to ${most} printable ASCII characters, for example a UUID.`,
  );
}

/** The name of the object that an Idempotency-Key of a tenant creates. Rejects as reading the key of sessions does. */
export type ObjectNames = (prefix: string, namespace: string, key: string) => Promise<string>;

/**
 * Names that all replicas derive alike and nobody else can. Whoever could guess one would make an object of this name
 * first, and so get in the way of the request, or of the SSH login.
 */
export function objectNames(sessionKey: () => Promise<Buffer>): ObjectNames {
  return async (prefix, namespace, key) => {
    const secret = Buffer.from(hkdfSync('sha256', await sessionKey(), '', 'berth idempotency', 32));
    return idempotentName(prefix, namespace, key, secret);
  };
}

/** Hash of a body. Bodies that mean the same have the same: the order of fields and nulls do not count. */
export function requestHash(body: unknown): string {
  return contentHash(body, 'nulls are absent');
}

export function idempotencyConflict(message: string): ApiError {
  return new ApiError('idempotency_conflict', message);
}

export function otherBody(): ApiError {
  return idempotencyConflict('An earlier request had this Idempotency-Key and another body. Use a new key.');
}
