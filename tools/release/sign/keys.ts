import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { LocalFailure, systemCode } from '../../lib/failure.ts';

/** The variable that names the file of the release's key. The key itself is in no variable, argument or output. */
const VARIABLE = 'BERTH_SIGNING_KEY';
const HOW_TO = `Set ${VARIABLE} to the path of an ECDSA P-256 key in PEM, as \`openssl ecparam -genkey -name prime256v1 -noout\` makes it.`;

export interface KeyPair {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

/** The key pair of a private key. Throws LocalFailure for any other kind of key than ECDSA P-256. */
export function keyPair(privateKey: KeyObject): KeyPair {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = privateKey;
  if (type !== 'ec' || details?.namedCurve !== 'prime256v1') {
    const found = [type, details?.namedCurve].filter((word) => word !== undefined).join(' ');
    throw new LocalFailure(`The signing key is no ECDSA P-256 key, but ${found}.`, HOW_TO);
  }
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/**
 * Reads the key that signs the release. Throws LocalFailure, which has neither the file's content nor the variable's: by
 * mistake that may be the key itself.
 */
export async function readSigningKey(env: Readonly<Record<string, string | undefined>>): Promise<KeyPair> {
  const path = env[VARIABLE];
  if (!path) throw new LocalFailure('A release needs a key that signs it.', HOW_TO);
  const pem = await readFile(path).catch((error: unknown) => {
    throw new LocalFailure(
      `The file that ${VARIABLE} names cannot be read (${systemCode(error) ?? 'unknown'}).`,
      HOW_TO,
    );
  });
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    // The error of the parser is left out: it may quote the file.
    throw new LocalFailure(`The file that ${VARIABLE} names holds no private key in PEM without a password.`, HOW_TO);
  }
  return keyPair(privateKey);
}

/** The public key as PEM (SubjectPublicKeyInfo), which cosign reads. */
export function publicPem(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' });
}
