import { createPublicKey, hash, type KeyObject, verify } from 'node:crypto';
import type { Verify } from '../ssh2/protocol.ts';
import { readStrings } from '../../lib/ssh-strings.ts';

// Signatures of FIDO security keys, as openssh's PROTOCOL.u2f has them.

const ED25519 = 'sk-ssh-ed25519@openssh.com';
const ECDSA = 'sk-ecdsa-sha2-nistp256@openssh.com';
const ED25519_LENGTH = 64;
/** Of the numbers of a point, and of a signature, on the curve nistp256. */
const P256_LENGTH = 32;
/** A byte of flags, and a counter of four bytes, which says nothing without a memory of the last one. */
const TAIL_LENGTH = 5;
const USER_PRESENT = 0x01;

interface SecurityKey {
  key: KeyObject;
  /** SHA-256 of the application: `ssh:` unless its owner chose another one. */
  application: Buffer;
}

function publicKey(jwk: Record<string, string>): KeyObject {
  return createPublicKey({ key: jwk, format: 'jwk' });
}

function securityKey(point: KeyObject, application: Buffer): SecurityKey {
  return { key: point, application: hash('sha256', application, 'buffer') };
}

/** Whether a signature holds for what the key signed: application, flags, counter, and the hash of the data. */
function holds({ key, application }: SecurityKey, data: Buffer, signature: Buffer, tail: Buffer): boolean {
  if (tail.length !== TAIL_LENGTH || ((tail[0] ?? 0) & USER_PRESENT) === 0) return false;
  const signed = Buffer.concat([application, tail, hash('sha256', data, 'buffer')]);
  const isEcdsa = key.asymmetricKeyType === 'ec';
  return verify(isEcdsa ? 'sha256' : null, signed, isEcdsa ? { key, dsaEncoding: 'ieee-p1363' } : key, signature);
}

/** An mpint of at most 32 bytes, in 32 bytes. */
function p256Number(mpint: Buffer): Buffer | undefined {
  const start = mpint.findIndex((byte) => byte !== 0);
  const number = start < 0 ? Buffer.alloc(0) : mpint.subarray(start);
  if (number.length > P256_LENGTH) return undefined;
  return Buffer.concat([Buffer.alloc(P256_LENGTH - number.length), number]);
}

function ed25519Verifier(blob: Buffer): Verify | undefined {
  const [, point, application] = readStrings(blob, 3)?.strings ?? [];
  if (point === undefined || application === undefined) return undefined;
  const known = securityKey(publicKey({ kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') }), application);
  return (data, signature) =>
    holds(known, data, signature.subarray(0, ED25519_LENGTH), signature.subarray(ED25519_LENGTH));
}

function ecdsaVerifier(blob: Buffer): Verify | undefined {
  const [, , point, application] = readStrings(blob, 4)?.strings ?? [];
  if (point === undefined || application === undefined) return undefined;
  // 4, and the two numbers of the point.
  const x = point.subarray(1, 1 + P256_LENGTH).toString('base64url');
  const y = point.subarray(1 + P256_LENGTH).toString('base64url');
  const known = securityKey(publicKey({ kty: 'EC', crv: 'P-256', x, y }), application);
  return (data, signature) => {
    const read = readStrings(signature, 2);
    const numbers = read?.strings.flatMap((mpint) => p256Number(mpint) ?? []) ?? [];
    return read !== undefined && numbers.length === 2 && holds(known, data, Buffer.concat(numbers), read.rest);
  };
}

/**
 * Verifies signatures of a security key, as ssh2 hands them over: without the name of the type before them. The user must
 * have touched the key, as OpenSSH demands without the option no-touch-required. Undefined for other types of keys.
 * Throws for a key that cannot be one.
 */
export function securityKeyVerifier(type: string, blob: Buffer): Verify | undefined {
  if (type === ED25519) return ed25519Verifier(blob);
  return type === ECDSA ? ecdsaVerifier(blob) : undefined;
}
