import { createPublicKey, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose/jwt/sign';
import { describe, expect, it } from 'vitest';
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
  session: 'sealed',
};

it('says what was signed, until it ends', async () => {
  const token = await signPersonToken(CLAIMS, KEY);
  expect(await readPersonToken(token, { key: PUBLIC, now: 1999 })).toEqual(CLAIMS);
  expect(await readPersonToken(token, { key: PUBLIC, now: 2000 })).toBeUndefined();
});

it('fits a header, however long the name of the user is', async () => {
  const token = await signPersonToken({ ...CLAIMS, username: 'x'.repeat(10_000) }, KEY);
  expect(token).toMatch(/^[A-Za-z0-9._-]+$/);
  expect((await readPersonToken(token, { key: PUBLIC, now: 0 }))?.username).toHaveLength(256);
});

it('is the same at all replicas of the dashboard, and not what another one would sign', async () => {
  const token = await signPersonToken(CLAIMS, personSigningKey(Buffer.alloc(32, 7)));
  expect(token).toBe(await signPersonToken(CLAIMS, KEY));
  const other = await signPersonToken(CLAIMS, personSigningKey(Buffer.alloc(32, 8)));
  expect(await readPersonToken(other, { key: PUBLIC, now: 0 })).toBeUndefined();
});

it('the public part signs nothing', async () => {
  expect(publicPart(KEY)).not.toHaveProperty('d');
  await expect(signPersonToken(CLAIMS, PUBLIC)).rejects.toThrow();
});

it('is nothing when a byte of it is another one, or a part is missing', async () => {
  const token = await signPersonToken(CLAIMS, KEY);
  const [prefix = '', payload = '', signature = ''] = token.split('.');
  const broken = [
    '',
    prefix,
    `${prefix}.`,
    `${prefix}.${payload}`,
    `${prefix}.${payload}.`,
    `${prefix}.${payload.slice(0, -2)}AA.${signature}`,
    `${prefix}.${payload}.${signature.slice(0, -4)}AAAA`,
    `x${prefix}.${payload}.${signature}`,
    `berth-person.${payload}.${signature}`,
    `${token}${'x'.repeat(3000)}`,
  ];
  const read = await Promise.all(broken.map((text) => readPersonToken(text, { key: PUBLIC, now: 0 })));
  expect(read.filter((claims) => claims !== undefined)).toEqual([]);
});

describe('another JWT of the same key', () => {
  const payload = {
    iss: 'berth-dashboard',
    aud: 'berth-api',
    sub: CLAIMS.id,
    exp: 2,
    username: 'ann',
    namespace: 'team-a',
    scopes: ['compute:read'],
    until: 9000,
    session: 'sealed',
  };
  const header = { alg: 'EdDSA', typ: 'berth-person+jwt' };
  const sign = (given: object, head: object = header, key: KeyObject | Uint8Array = KEY) =>
    new SignJWT({ ...payload, ...given }).setProtectedHeader({ ...header, ...head }).sign(key);
  const read = (token: string) => readPersonToken(token, { key: PUBLIC, now: 1999 });

  it('is one with the same words', async () => {
    expect(await read(await sign({}))).toEqual(CLAIMS);
    expect(await sign({})).toHaveLength((await signPersonToken(CLAIMS, KEY)).length);
  });

  it.each<[string, object, object?]>([
    ['for somebody else', { aud: 'other' }],
    ['for others too', { aud: ['berth-api', 'other'] }],
    ['of another issuer', { iss: 'other' }],
    ['that does not end', { exp: undefined }],
    ['that is not good yet', { nbf: 3 }],
    ['that says more', { more: true }],
    ['of another type', {}, { typ: 'JWT' }],
    ['with a key of its own', {}, { jwk: publicPart(KEY) }],
  ])('%s is none', async (_name, given, head) => {
    expect(await read(await sign(given, head))).toBeUndefined();
  });

  it('with another algorithm is none, also under a header that says EdDSA', async () => {
    const secret = new Uint8Array(PUBLIC.export({ type: 'spki', format: 'der' }));
    const forged = await sign({}, { alg: 'HS256' }, secret);
    const [, said = '', signature = ''] = forged.split('.');
    const start = (await sign({})).split('.', 1)[0];
    const none = Buffer.from(JSON.stringify({ ...header, alg: 'none' })).toString('base64url');
    for (const token of [forged, `${start}.${said}.${signature}`, `${none}.${said}.`]) {
      expect(await read(token)).toBeUndefined();
    }
  });
});

it('the caller has one id for a sign-in, which says when that ends', () => {
  const { keyId, vouchedUntil } = personPrincipal(CLAIMS);
  expect(personPrincipal({ ...CLAIMS, expires: 5000 }).keyId).toBe(keyId);
  expect([signInEnd(keyId), vouchedUntil]).toEqual([9000, 2000]);
  expect(signInEnd('0b5e0b1e-7a53-4f7e-8f0e-6c1f6a3d9c11')).toBeUndefined();
});
