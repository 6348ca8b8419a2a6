import { expect, it } from 'vitest';
import { newEd25519Key, publicHalf } from '../../../src/ssh/login/ed25519-key.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';

it('makes keys that sign and verify, those whose public half begins with a zero byte too', () => {
  const message = Buffer.from('message');
  let zeros = 0;
  // One in 256 begins with a zero: 4,000 keys have none with a probability of 2 in ten million.
  for (let count = 0; count < 4000; count++) {
    const pair = newEd25519Key('me');
    const blob = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64');
    expect(blob.length).toBe(51);
    if (blob[19] !== 0 && count > 20) continue;
    zeros += blob[19] === 0 ? 1 : 0;
    const secret = ssh2.utils.parseKey(pair.private);
    const open = ssh2.utils.parseKey(pair.public);
    if (secret instanceof Error || open instanceof Error) throw new Error('not a key', { cause: [secret, open] });
    expect(open.verify(message, secret.sign(message))).toBe(true);
  }
  expect(zeros).toBeGreaterThan(0);
});

function rewrite(privateKey: string, change: (file: Buffer) => void): string {
  const [first, last] = ['-----BEGIN OPENSSH PRIVATE KEY-----', '-----END OPENSSH PRIVATE KEY-----'];
  const file = Buffer.from(privateKey.replace(first, '').replace(last, ''), 'base64');
  change(file);
  return `${first}\n${file.toString('base64')}\n${last}\n`;
}

it('reads the public half of its own keys, and of no others', () => {
  const { private: secret, public: open } = newEd25519Key('me');
  expect(publicHalf(secret)).toBe(open.split(' ').slice(0, 2).join(' '));
  expect(publicHalf(secret.replaceAll('\n', '\r\n'))).toBe(publicHalf(secret));
  const encrypted = rewrite(secret, (file) => file.write('nope', file.indexOf('none')));
  const twoKeys = rewrite(secret, (file) => file.writeUInt32BE(2, 35));
  const ofAnother = rewrite(secret, (file) => file.fill(7, file.length - 60, file.length - 50));
  const cutOff = rewrite(secret, (file) => file.fill(255, 39, 43));
  for (const wrong of [encrypted, twoKeys, ofAnother, cutOff, '', open, secret.slice(40)]) {
    expect(publicHalf(wrong)).toBeUndefined();
  }
});
