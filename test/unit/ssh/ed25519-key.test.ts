import ssh2 from 'ssh2';
import { expect, it } from 'vitest';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';

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
