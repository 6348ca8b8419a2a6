import { createPrivateKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { readStrings, wireString } from '../../lib/ssh-strings.ts';

const TYPE = 'ssh-ed25519';
const BLOCK = 8;
const MAGIC = Buffer.from('openssh-key-v1\0');
const ONE_KEY = Buffer.from([0, 0, 0, 1]);
/** Before the private half: a random number, twice. */
const CHECK_BYTES = 8;
const SEED_BYTES = 32;

/**
 * A new ed25519 key pair in OpenSSH's formats (PROTOCOL.key), not encrypted. The generator of ssh2 is not used: it drops a
 * leading zero byte of the public half, and about one key in two hundred opens nothing.
 */
export function newEd25519Key(comment: string): { private: string; public: string } {
  const { x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const publicHalf = Buffer.from(x, 'base64url');
  const blob = Buffer.concat([wireString(TYPE), wireString(publicHalf)]);
  const check = randomBytes(4);
  const secret = Buffer.concat([Buffer.from(d, 'base64url'), publicHalf]);
  const content = Buffer.concat([
    check,
    check,
    wireString(TYPE),
    wireString(publicHalf),
    wireString(secret),
    wireString(comment),
  ]);
  const padding = Buffer.from(
    Array.from({ length: (BLOCK - (content.length % BLOCK)) % BLOCK }, (_, index) => index + 1),
  );
  const file = Buffer.concat([
    MAGIC,
    wireString('none'),
    wireString('none'),
    wireString(''),
    ONE_KEY,
    wireString(blob),
    wireString(Buffer.concat([content, padding])),
  ]);
  const lines = file.toString('base64').match(/.{1,70}/g) ?? [];
  return {
    private: `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`,
    public: `${TYPE} ${blob.toString('base64')} ${comment}`,
  };
}

/** Whether the private half of a file, seed and public half, belongs to this public half. Node compares them. */
function isPair(publicBytes: Buffer, secret: Buffer): boolean {
  const [d, x] = [secret.subarray(0, SEED_BYTES), publicBytes].map((half) => half.toString('base64url'));
  try {
    createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', ...(d && { d }), ...(x && { x }) }, format: 'jwk' });
    return true;
  } catch {
    return false;
  }
}

/** The public half of an unencrypted ed25519 key in OpenSSH's format, as in known_hosts; undefined for anything else. */
export function publicHalf(privateKey: string): string | undefined {
  const text = /^-----BEGIN OPENSSH PRIVATE KEY-----\s([\s\S]+)-----END OPENSSH PRIVATE KEY-----\s*$/.exec(privateKey);
  const file = Buffer.from(text?.[1] ?? '', 'base64');
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  const head = readStrings(file.subarray(MAGIC.length), 3);
  if (head?.strings[0]?.toString() !== 'none' || !head.rest.subarray(0, ONE_KEY.length).equals(ONE_KEY))
    return undefined;
  const [blob, content] = readStrings(head.rest.subarray(ONE_KEY.length), 2)?.strings ?? [];
  const [type, publicBytes] = readStrings(blob ?? Buffer.alloc(0), 2)?.strings ?? [];
  const secret = readStrings(content?.subarray(CHECK_BYTES) ?? Buffer.alloc(0), 3)?.strings[2];
  if (blob === undefined || publicBytes === undefined || secret === undefined) return undefined;
  if (type?.toString() !== TYPE || !isPair(publicBytes, secret)) return undefined;
  return `${TYPE} ${blob.toString('base64')}`;
}
