import { createHash, timingSafeEqual } from 'node:crypto';
import { parseSshPublicKey } from '../../resources/ssh-public-key.ts';
import { securityKeyVerifier } from './security-key.ts';
import { verifierOf, type Verify } from '../ssh2/protocol.ts';

/** A public key that may open instances. */
export interface AuthorizedKey {
  /** Key of the SSHKey resource in its store. */
  resource: string;
  id: number;
  /** `SHA256:` and base64, as ssh-keygen -lf prints it. */
  fingerprint: string;
  /** SHA-256 of the wire form: what offered keys are compared with. */
  digest: Buffer;
  verify: Verify;
}

function digestOf(blob: Buffer): Buffer {
  return createHash('sha256').update(blob).digest();
}

/** Undefined for what no login can use: no public key, a type that is not verified here (DSA), RSA below 2048 bits. */
export function parseAuthorizedKey(text: string, resource: string, id: number): AuthorizedKey | undefined {
  try {
    const { type, blob, fingerprint } = parseSshPublicKey(text);
    const verify = securityKeyVerifier(type, blob) ?? verifierOf(`${type} ${blob.toString('base64')}`);
    if (verify === undefined) return undefined;
    return {
      resource,
      id,
      fingerprint,
      digest: digestOf(blob),
      // A signature with RSA and SHA-1 comes without a hash name. It is refused, as OpenSSH 8.8 does.
      verify: (data, signature, hash) => (type !== 'ssh-rsa' || hash !== undefined) && verify(data, signature, hash),
    };
  } catch {
    return undefined;
  }
}

/** The key whose wire form was offered; of several, one that `opens`. Compares all of them, each in constant time. */
export function matchKey(
  keys: Iterable<AuthorizedKey>,
  blob: Buffer,
  opens: (key: AuthorizedKey) => boolean,
): AuthorizedKey | undefined {
  const offered = digestOf(blob);
  const found = [...keys].filter(({ digest }) => timingSafeEqual(digest, offered));
  return found.find(opens) ?? found[0];
}
