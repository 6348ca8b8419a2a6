import { describe, expect, it } from 'vitest';
import { parseAuthorizedKey } from '../../../src/ssh/login/authorized-key.ts';
import { softwareKey } from '../../support/security-key.ts';

const DATA = Buffer.from('session');

/** As ssh2 hands a signature over (lib/protocol/handlers.misc.js, 1.17): without the name of the type. */
function handedOver(type: string, signature: Buffer): Buffer {
  return signature.subarray(4 + type.length + 4);
}

describe.each(['ed25519', 'ecdsa'] as const)('a security key of type %s', (kind) => {
  const mine = softwareKey(kind);
  const key = parseAuthorizedKey(mine.line, 'a/k', 1);
  const verify = (signature: Buffer, data = DATA): boolean | undefined =>
    key?.verify(data, handedOver(mine.type, signature), undefined);

  it('opens with its own signature', () => {
    // Leading zeros of ECDSA numbers come about once in a hundred signatures.
    for (let count = 0; count < 200; count += 1) expect(verify(mine.sign(DATA))).toBe(true);
  });

  it('does not open without a touch, for another application, for other data, or by another key', () => {
    expect(verify(mine.sign(DATA, { touched: false }))).toBe(false);
    expect(verify(mine.sign(DATA, { application: 'https://example.com' }))).toBe(false);
    expect(verify(mine.sign(DATA), Buffer.from('another'))).toBe(false);
    expect(verify(softwareKey(kind).sign(DATA))).toBe(false);
  });

  it('does not open when any part was changed, cut off or added', () => {
    const signature = mine.sign(DATA);
    const start = 4 + mine.type.length + 4;
    for (let at = start; at < signature.length; at += 1) {
      const changed = Buffer.from(signature);
      changed[at] = (changed[at] ?? 0) ^ 0x40;
      expect(verify(changed)).toBe(false);
      expect(verify(signature.subarray(0, at))).toBe(false);
    }
    expect(verify(Buffer.concat([signature, Buffer.of(0)]))).toBe(false);
  });
});

it('a point that is not on the curve opens nothing', () => {
  const { type, blob } = softwareKey('ecdsa');
  const damaged = Buffer.from(blob);
  const last = 4 + type.length + 4 + 'nistp256'.length + 4 + 64;
  damaged[last] = (damaged[last] ?? 0) ^ 1;
  expect(parseAuthorizedKey(`${type} ${damaged.toString('base64')}`, 'a/k', 1)).toBeUndefined();
});
