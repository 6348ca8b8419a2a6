import { generateKeyPairSync, hash, sign } from 'node:crypto';
import { wireString } from '../../src/lib/ssh-strings.ts';

const TYPES = { ed25519: 'sk-ssh-ed25519@openssh.com', ecdsa: 'sk-ecdsa-sha2-nistp256@openssh.com' } as const;

/** A FIDO security key in software, by openssh's PROTOCOL.u2f. */
export interface SoftwareKey {
  type: string;
  /** The wire form of the public half. */
  blob: Buffer;
  /** As in authorized_keys. */
  line: string;
  /** A signature as an agent gives it; it says that the key was touched, unless told otherwise. */
  sign(data: Buffer, said?: { touched?: boolean; application?: string }): Buffer;
}

function mpint(number: Buffer): Buffer {
  return wireString(((number[0] ?? 0) & 0x80) === 0 ? number : Buffer.concat([Buffer.of(0), number]));
}

export function softwareKey(kind: keyof typeof TYPES): SoftwareKey {
  const type = TYPES[kind];
  const isEcdsa = kind === 'ecdsa';
  const pair = isEcdsa ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' });
  const numbers = [x, y].map((text) => Buffer.from(text, 'base64url'));
  const point = isEcdsa
    ? [wireString('nistp256'), wireString(Buffer.concat([Buffer.of(4), ...numbers]))]
    : [wireString(numbers[0] ?? '')];
  const blob = Buffer.concat([wireString(type), ...point, wireString('ssh:')]);
  return {
    type,
    blob,
    line: `${type} ${blob.toString('base64')}`,
    sign: (data, { touched = true, application = 'ssh:' } = {}) => {
      const tail = Buffer.of(touched ? 1 : 0, 0, 0, 0, 7);
      const signed = Buffer.concat([hash('sha256', application, 'buffer'), tail, hash('sha256', data, 'buffer')]);
      const raw = isEcdsa
        ? sign('sha256', signed, { key: pair.privateKey, dsaEncoding: 'ieee-p1363' })
        : sign(null, signed, pair.privateKey);
      const inner = isEcdsa ? Buffer.concat([mpint(raw.subarray(0, 32)), mpint(raw.subarray(32))]) : raw;
      return Buffer.concat([wireString(type), wireString(inner), tail]);
    },
  };
}
