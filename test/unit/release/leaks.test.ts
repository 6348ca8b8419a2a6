import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { ANY_PRIVATE_KEY, decoded, leaksIn, privateKey } from '../../e2e/support/leaks.ts';
import { newIdentity } from '../../e2e/support/ssh.ts';

const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const token = { name: 'token', piece: 'berth_0123456789abcdef0123456789abcdef' };

test('a secret is found as it is, and in base64 at any offset', () => {
  expect(leaksIn(`authorization: Bearer ${token.piece}`, [token])).toEqual(['token']);
  for (const before of ['', 'a', 'ab', 'abc']) {
    expect(leaksIn(base64(`${before}${token.piece}${before}`), [token])).toEqual(['token']);
  }
  expect(leaksIn('berth_0123456789', [token])).toEqual([]);
});

test('a private key is found by its body alone', () => {
  const key = newIdentity().privateKey;
  const body = key.split('\n').slice(1, -2).join('\n');
  expect(leaksIn(JSON.stringify({ body }), [privateKey('mine', key)])).toEqual(['mine']);
  expect(leaksIn(newIdentity().privateKey, [privateKey('mine', key), ANY_PRIVATE_KEY])).toEqual(['a private key']);
});

test('values of Secrets are read through all their wrappings', () => {
  const text = `apiVersion: v1\n${token.piece}\n`.repeat(20);
  expect(decoded(base64(text))).toBe(text);
  expect(decoded(base64(base64(gzipSync(text))))).toBe(text);
});
