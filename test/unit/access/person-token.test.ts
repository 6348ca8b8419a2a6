import { createPublicKey } from 'node:crypto';
import { expect, it } from 'vitest';
import {
  type PersonClaims,
  personPrincipal,
  personSigningKey,
  publicPart,
  readPersonToken,
  signInEnd,
  signPersonToken,
} from '../../../src/access/person-token.ts';

const KEY = personSigningKey(Buffer.alloc(32, 7));
const PUBLIC = createPublicKey({ key: publicPart(KEY), format: 'jwk' });
const CLAIMS: PersonClaims = {
  id: 'a'.repeat(32),
  username: 'ann',
  namespace: 'team-a',
  scopes: ['compute:read'],
  expires: 2000,
  until: 9000,
};

it('says what was signed, until it ends', () => {
  const token = signPersonToken(CLAIMS, KEY);
  expect(readPersonToken(token, { key: PUBLIC, now: 1999 })).toEqual(CLAIMS);
  expect(readPersonToken(token, { key: PUBLIC, now: 2000 })).toBeUndefined();
});

it('fits a header, however long the name of the user is', () => {
  const token = signPersonToken({ ...CLAIMS, username: 'x'.repeat(10_000) }, KEY);
  expect(token).toMatch(/^[A-Za-z0-9._-]+$/);
  expect(readPersonToken(token, { key: PUBLIC, now: 0 })?.username).toHaveLength(256);
});

it('is the same at all replicas of the dashboard, and not what another one would sign', () => {
  const token = signPersonToken(CLAIMS, personSigningKey(Buffer.alloc(32, 7)));
  expect(token).toBe(signPersonToken(CLAIMS, KEY));
  const other = signPersonToken(CLAIMS, personSigningKey(Buffer.alloc(32, 8)));
  expect(readPersonToken(other, { key: PUBLIC, now: 0 })).toBeUndefined();
});

it('the public part signs nothing', () => {
  expect(publicPart(KEY)).not.toHaveProperty('d');
  expect(() => signPersonToken(CLAIMS, PUBLIC)).toThrow();
});

it('is nothing when a byte of it is another one, or a part is missing', () => {
  const token = signPersonToken(CLAIMS, KEY);
  const [prefix = '', payload = '', signature = ''] = token.split('.');
  const broken = [
    '',
    prefix,
    `${prefix}.`,
    `${prefix}.${payload}`,
    `${prefix}.${payload}.`,
    `${prefix}.${payload.slice(0, -2)}AA.${signature}`,
    `${prefix}.${payload}.${signature.slice(0, -4)}AAAA`,
    `berth_person.${payload}.${signature}`,
    `${token}${'x'.repeat(3000)}`,
  ];
  expect(broken.filter((text) => readPersonToken(text, { key: PUBLIC, now: 0 }) !== undefined)).toEqual([]);
});

it('the caller has one id for a sign-in, which says when that ends', () => {
  const { keyId, vouchedUntil } = personPrincipal(CLAIMS);
  expect(personPrincipal({ ...CLAIMS, expires: 5000 }).keyId).toBe(keyId);
  expect([signInEnd(keyId), vouchedUntil]).toEqual([9000, 2000]);
  expect(signInEnd('0b5e0b1e-7a53-4f7e-8f0e-6c1f6a3d9c11')).toBeUndefined();
});
