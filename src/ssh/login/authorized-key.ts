import { type Authority, fingerprintOf, parseSshPublicKey } from '../../resources/ssh-public-key.ts';
import { type Certificate, readCertificate } from './certificate.ts';
import { securityKeyVerifier } from './security-key.ts';
import { readStrings } from '../../lib/ssh-strings.ts';
import { verifierOf, type Verify } from '../ssh2/protocol.ts';

/** A public key that may open instances, or one whose certificates may. */
export interface AuthorizedKey {
  /** Key of the SSHKey resource in its store. */
  resource: string;
  id: number;
  /** `SHA256:` and base64, as ssh-keygen -lf prints it. */
  fingerprint: string;
  /** Of the client's login. With `authority`, of the login with {@link certificate}. */
  verify: Verify;
  /** The key opens nothing itself, and certificates that it signed do. */
  authority?: Authority;
  /** What the client logs in with, signed by this key. */
  certificate?: Certificate;
}

/** Undefined for what no login can use: no public key, a type that is not verified here (DSA), RSA below 2048 bits. */
export function parseAuthorizedKey(text: string, resource: string, id: number): AuthorizedKey | undefined {
  try {
    const { type, blob, fingerprint, authority } = parseSshPublicKey(text);
    const verify = securityKeyVerifier(type, blob) ?? verifierOf(`${type} ${blob.toString('base64')}`);
    if (verify === undefined) return undefined;
    return {
      resource,
      id,
      fingerprint,
      ...(authority && { authority }),
      // A signature with RSA and SHA-1 comes without a hash name. It is refused, as OpenSSH 8.8 does.
      verify: (data, signature, hash) => (type !== 'ssh-rsa' || hash !== undefined) && verify(data, signature, hash),
    };
  } catch {
    return undefined;
  }
}

/** The keys with a fingerprint, the one to prefer first. */
type KeysWith = (fingerprint: string) => Iterable<AuthorizedKey>;

/** The first key with this wire form that is an authority, or none. Fingerprints are no secret. */
function find(keysWith: KeysWith, blob: Buffer, isAuthority: boolean): AuthorizedKey | undefined {
  for (const key of keysWith(fingerprintOf(blob))) if ((key.authority !== undefined) === isAuthority) return key;
  return undefined;
}

/** Whether a signature in SSH's wire form, which begins with its type, holds for the data. */
type VerifySignature = (data: Buffer, signature: Buffer) => boolean;

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
function signatureVerifier(type: string, blob: Buffer): VerifySignature | undefined {
  const securityKey = securityKeyVerifier(type, blob);
  if (securityKey === undefined) return plainVerifier(type, blob);
  return (data, signature) => {
    const read = readStrings(signature, 1);
    // The length of the signature comes before it, as flags and counter come after it.
    return read?.strings[0]?.toString('latin1') === type && securityKey(data, read.rest.subarray(4), undefined);
  };
}

/** The authority with a certificate that it signed, to log in with. Undefined when it did not sign it. */
function certified(authority: AuthorizedKey, type: string, certificate: Certificate): AuthorizedKey | undefined {
  const { type: keyType, key, signed, signature } = certificate;
  try {
    if (signatureVerifier(type, certificate.authority)?.(signed, signature) !== true) return undefined;
    const verify = signatureVerifier(keyType, key);
    return verify && { ...authority, certificate, verify: (data, proof) => verify(data, proof) };
  } catch {
    return undefined;
  }
}

/**
 * The key that was offered, by its wire form or by that of a certificate that the key signed. An authority is none
 * without a certificate.
 */
export function matchKey(keysWith: KeysWith, blob: Buffer): AuthorizedKey | undefined {
  const certificate = readCertificate(blob);
  if (certificate === undefined) return find(keysWith, blob, false);
  const authority = find(keysWith, certificate.authority, true);
  const type = readStrings(certificate.authority, 1)?.strings[0]?.toString('latin1') ?? '';
  return authority && certified(authority, type, certificate);
}
