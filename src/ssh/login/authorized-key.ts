import { createHash, timingSafeEqual } from 'node:crypto';
import ssh2 from 'ssh2';

/** A public key that may open instances. */
export interface AuthorizedKey {
  /** Key of the SSHKey resource in its store. */
  resource: string;
  id: number;
  type: string;
  /** `SHA256:` and base64, as ssh-keygen -lf prints it. */
  fingerprint: string;
  /** SHA-256 of the wire form: what offered keys are compared with. */
  digest: Buffer;
  verify(data: Buffer, signature: Buffer, hash: string | undefined): boolean;
}

const MIN_RSA_BITS = 2048;

export function digestOf(blob: Buffer): Buffer {
  return createHash('sha256').update(blob).digest();
}

export function fingerprintOf(digest: Buffer): string {
  return `SHA256:${digest.toString('base64').replace(/=+$/, '')}`;
}

/** Bits of the modulus in an ssh-rsa blob: type, exponent, modulus (RFC 4253 section 6.6). */
function rsaBits(blob: Buffer): number {
  let offset = 0;
  let length = 0;
  for (let field = 0; field < 3; field += 1) {
    length = blob.readUInt32BE(offset);
    offset += 4 + length;
  }
  const modulus = blob.subarray(offset - length, offset);
  return (modulus[0] === 0 ? modulus.length - 1 : modulus.length) * 8;
}

/**
 * Reads the text of an SSHKey. Undefined when no login could ever use it: not a public key, of a type that the server
 * cannot verify (DSA, FIDO), or RSA below 2048 bits.
 */
export function parseAuthorizedKey(text: string, resource: string, id: number): AuthorizedKey | undefined {
  try {
    const parsed = ssh2.utils.parseKey(text.trim());
    if (parsed instanceof Error || Array.isArray(parsed) || parsed.isPrivateKey() || parsed.type === 'ssh-dss') {
      return undefined;
    }
    const blob = parsed.getPublicSSH();
    if (parsed.type === 'ssh-rsa' && rsaBits(blob) < MIN_RSA_BITS) return undefined;
    const digest = digestOf(blob);
    return {
      resource,
      id,
      type: parsed.type,
      fingerprint: fingerprintOf(digest),
      digest,
      // RSA with SHA-1 arrives without a hash name: refused as OpenSSH 8.8 does.
      verify: (data, signature, hash) =>
        // ssh2 answers a malformed signature with an Error, which its types do not say.
        (parsed.type !== 'ssh-rsa' || hash !== undefined) && Object.is(parsed.verify(data, signature, hash), true),
    };
  } catch {
    return undefined;
  }
}

/**
 * The key whose wire form was offered. A tenant may have registered it several times: one that `opens` is preferred.
 * Compares all of them in constant time each, whatever matches.
 */
export function matchKey(
  keys: Iterable<AuthorizedKey>,
  blob: Buffer,
  opens: (key: AuthorizedKey) => boolean,
): AuthorizedKey | undefined {
  const offered = digestOf(blob);
  const found = [...keys].filter(({ digest }) => timingSafeEqual(digest, offered));
  return found.find(opens) ?? found[0];
}
