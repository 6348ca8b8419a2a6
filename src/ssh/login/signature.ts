import { verifierOf } from '../ssh2/protocol.ts';
import { readStrings } from '../../lib/ssh-strings.ts';
import { securityKeyVerifier } from './security-key.ts';

/** Whether a signature in SSH's wire form, which begins with its type, holds for the data. */
export type VerifySignature = (data: Buffer, signature: Buffer) => boolean;

// Never ssh-rsa, whose hash is SHA-1, as OpenSSH since 8.2.
const RSA_HASHES: Readonly<Record<string, string>> = { 'rsa-sha2-256': 'sha256', 'rsa-sha2-512': 'sha512' };
const SEQUENCE = 0x30;
const INTEGER = 0x02;
const LONG_LENGTH = 0x80;

function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  return Buffer.concat([Buffer.from(length < LONG_LENGTH ? [tag, length] : [tag, LONG_LENGTH + 1, length]), content]);
}

/** Two mpints as ASN.1 has them, which writes each number with the same bytes. Undefined for anything else. */
function ecdsaInDer(signature: Buffer): Buffer | undefined {
  const read = readStrings(signature, 2);
  if (read === undefined || read.rest.length > 0 || signature.length > 0xff) return undefined;
  return der(SEQUENCE, Buffer.concat(read.strings.map((number) => der(INTEGER, number))));
}

function plainVerifier(type: string, blob: Buffer): VerifySignature | undefined {
  const verify = verifierOf(`${type} ${blob.toString('base64')}`);
  if (verify === undefined) return undefined;
  return (data, signature) => {
    const read = readStrings(signature, 2);
    const [name, content] = read?.strings ?? [];
    if (name === undefined || content === undefined || read?.rest.length !== 0) return false;
    const hash = type === 'ssh-rsa' ? RSA_HASHES[name.toString('latin1')] : undefined;
    if (type === 'ssh-rsa' ? hash === undefined : name.toString('latin1') !== type) return false;
    const known = type.startsWith('ecdsa-') ? ecdsaInDer(content) : content;
    return known !== undefined && verify(data, known, hash);
  };
}

/**
 * Verifies signatures of the key with this wire form (RFC 4253 section 6.6, RFC 5656, RFC 8332, openssh PROTOCOL.u2f).
 * Undefined for a type that is not verified here. Throws for a key that cannot be one.
 */
export function signatureVerifier(type: string, blob: Buffer): VerifySignature | undefined {
  const securityKey = securityKeyVerifier(type, blob);
  if (securityKey === undefined) return plainVerifier(type, blob);
  return (data, signature) => {
    const read = readStrings(signature, 1);
    // The length of the signature comes before it, as flags and counter come after it.
    return read?.strings[0]?.toString('latin1') === type && securityKey(data, read.rest.subarray(4), undefined);
  };
}
