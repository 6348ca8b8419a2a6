import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { describe, expect, it } from 'vitest';
import type { Connection } from 'ssh2';
import { countUp, type GcmCipher, sendData } from '../../../src/ssh/ssh2/gcm-data.ts';
import { takeOverData } from '../../../src/ssh/ssh2/private.ts';

/** Of lib/protocol/crypto.js, as a client uses it. */
interface Crypto {
  CIPHER_INFO: Record<string, { keyLen: number }>;
  createCipher(config: object): GcmCipher & { encrypt(packet: Buffer): void };
  createDecipher(config: object): { decrypt(data: Buffer, from: number, to: number): void };
}

const ssh2 = createRequire(import.meta.url)('ssh2/lib/protocol/crypto.js') as Crypto;

/** Ssh2's two ends of a connection: what is written to the cipher, and the payloads that come out of the decipher. */
function ends(name: string, nonce = randomBytes(12)) {
  const info = ssh2.CIPHER_INFO[name];
  const key = randomBytes(info?.keyLen ?? 0);
  const payloads: Buffer[] = [];
  const pieces: Buffer[] = [];
  const decipher = ssh2.createDecipher({
    inbound: {
      seqno: 0,
      decipherInfo: info,
      decipherKey: key,
      decipherIV: Buffer.from(nonce),
      onPayload: (payload: Uint8Array) => void payloads.push(Buffer.from(payload)),
    },
  });
  const cipher = ssh2.createCipher({
    outbound: {
      seqno: 0xffff_ffff,
      cipherInfo: info,
      cipherKey: key,
      cipherIV: Buffer.from(nonce),
      onWrite: (piece: Buffer) => void pieces.push(piece),
    },
  });
  const arrive = (): Buffer[] => {
    const bytes = Buffer.concat(pieces.splice(0));
    decipher.decrypt(bytes, 0, bytes.length);
    return payloads.splice(0);
  };
  return { cipher, pieces, arrive };
}

function payloadOf(channel: number, data: Buffer): Buffer {
  const head = Buffer.of(94, 0, 0, 0, 0, 0, 0, 0, 0);
  head.writeUInt32BE(channel, 1);
  head.writeUInt32BE(data.length, 5);
  return Buffer.concat([head, data]);
}

describe.each(['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com'])('data sealed with %s', (name) => {
  it('is what ssh2 opens, at every length of the padding', () => {
    const { cipher, arrive } = ends(name);
    const sent = [...Array.from({ length: 33 }, (_, n) => n + 1), 4096, 32 * 1024].map((bytes) => randomBytes(bytes));
    for (const data of sent) sendData(cipher, 0xffff_fffe, data);
    expect(arrive()).toEqual(sent.map((data) => payloadOf(0xffff_fffe, data)));
  });

  it('leaves alone what it was given', () => {
    const { cipher } = ends(name);
    const data = Buffer.alloc(1000, 'x');
    sendData(cipher, 1, data);
    expect(data).toEqual(Buffer.alloc(1000, 'x'));
  });

  it('counts packets as ssh2 does', () => {
    const nonce = Buffer.from('000000000000fffffffffffe', 'hex');
    const { cipher, arrive } = ends(name, nonce);
    for (let n = 0; n < 4; n += 1) sendData(cipher, n, Buffer.from('data'));
    expect(arrive()).toHaveLength(4);
    expect(cipher.outSeqno).toBe(3);
  });

  it('is padded with other bytes each time', () => {
    const { cipher } = ends(name);
    const tails = Array.from({ length: 600 }, () => {
      const pieces: Buffer[] = [];
      // The same key and nonce seal the same bytes alike.
      const again = { ...cipher, _encIV: Buffer.alloc(12), _onWrite: (piece: Buffer) => void pieces.push(piece) };
      sendData(again, 1, Buffer.from('data'));
      return pieces.at(-1)?.toString('hex');
    });
    expect(new Set(tails).size).toBe(600);
  });
});

it('a nonce counts through all of its last eight bytes, and through no others', () => {
  const nonce = Buffer.from('aaaaaaaaffffffffffffffff', 'hex');
  countUp(nonce);
  expect(nonce.toString('hex')).toBe('aaaaaaaa0000000000000000');
  countUp(nonce);
  expect(nonce.toString('hex')).toBe('aaaaaaaa0000000000000001');
});

describe('a connection', () => {
  function connection(cipher: object, kexinit?: Buffer) {
    const byItself: unknown[] = [];
    const protocol = {
      _cipher: cipher,
      _kexinit: kexinit,
      channelData: (...args: unknown[]) => void byItself.push(args),
    };
    takeOverData({ _protocol: protocol } as unknown as Connection);
    return { protocol, byItself };
  }

  it('seals data so, with the cipher of the moment', () => {
    const before = ends('aes128-gcm@openssh.com');
    const { protocol, byItself } = connection(before.cipher);
    protocol.channelData(1, Buffer.from('one'));
    const after = ends('aes256-gcm@openssh.com');
    protocol._cipher = after.cipher;
    protocol.channelData(2, Buffer.from('two'));
    expect(before.arrive()).toEqual([payloadOf(1, Buffer.from('one'))]);
    expect(after.arrive()).toEqual([payloadOf(2, Buffer.from('two'))]);
    expect(byItself).toEqual([]);
  });

  it('leaves data to ssh2 with other ciphers, and while keys are exchanged', () => {
    const data = Buffer.from('data');
    const other = connection({ encrypt: () => undefined });
    other.protocol.channelData(1, data);
    expect(other.byItself).toEqual([[1, data]]);
    const { cipher, pieces } = ends('aes128-gcm@openssh.com');
    const rekeying = connection(cipher, Buffer.alloc(1));
    rekeying.protocol.channelData(1, data);
    expect(rekeying.byItself).toEqual([[1, data]]);
    expect(pieces).toEqual([]);
  });

  it('sends nothing more once its cipher was freed', () => {
    const { cipher, pieces } = ends('aes128-gcm@openssh.com');
    cipher._dead = true;
    sendData(cipher, 1, Buffer.from('data'));
    expect(pieces).toEqual([]);
  });
});
