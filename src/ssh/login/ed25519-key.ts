import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { wireString } from '../ssh2/wire.ts';

const TYPE = 'ssh-ed25519';
const BLOCK = 8;

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
    Buffer.from('openssh-key-v1\0'),
    wireString('none'),
    wireString('none'),
    wireString(''),
    Buffer.from([0, 0, 0, 1]),
    wireString(blob),
    wireString(Buffer.concat([content, padding])),
  ]);
  const lines = file.toString('base64').match(/.{1,70}/g) ?? [];
  return {
    private: `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`,
    public: `${TYPE} ${blob.toString('base64')} ${comment}`,
  };
}
