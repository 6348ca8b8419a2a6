import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokenOf } from '../../../src/http/auth/middleware.ts';
import { familyOf, relativePath } from '../../../src/http/errors/families.ts';
import { idempotencyKey, requestHash } from '../../../src/http/instances/idempotency.ts';
import { normalizeRuntype, toInstanceSpec } from '../../../src/http/instances/to-spec.ts';
import { parseBody } from '../../../src/http/middleware/validate.ts';
import { createInstanceSchema } from '../../../src/http/schemas/instance.ts';
import { gpuInstanceSpecSchema } from '../../../src/resources/gpu-instance.ts';
import { mintToken } from '../../../src/resources/api-key.ts';

describe('the token of a request', () => {
  it('is what follows the scheme, in any case', () => {
    const { token } = mintToken();
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(tokenOf({ authorization: `${scheme} ${token}` }, '/offers')).toBe(token);
    expect(tokenOf({ 'x-api-key': token }, '/messages')).toBe(token);
    expect(tokenOf({ 'x-api-key': token }, '/offers')).toBeUndefined();
  });

  it.each(['', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', 'Bearer a,Bearer b', 'Bearerabc', 'Bearer "a"'])(
    'is none in %j',
    (authorization) => {
      expect(tokenOf({ authorization, 'x-api-key': 'good' }, '/messages')).toBeUndefined();
    },
  );
});

it('knows the family of each path under either base', () => {
  for (const base of ['/api/v1', '/api/v1/api/v1']) {
    const family = (path: string): string => familyOf(relativePath(`${base}${path}`) ?? '');
    expect(['/models', '/models/a/b', '/chat/completions', '/responses'].map(family)).toEqual(Array(4).fill('openai'));
    expect(['/messages', '/messages/count_tokens'].map(family)).toEqual(Array(2).fill('anthropic'));
    expect(['/offers', '/instances', '/instances/models', '/modelsx', '/'].map(family)).toEqual(
      Array(5).fill('compute'),
    );
  }
});

describe('runtype', () => {
  it.each([
    ['ssh', 'ssh'],
    ['ssh_proxy', 'ssh'],
    ['ssh_direct', 'ssh'],
    ['ssh_direc ssh_proxy', 'ssh'],
    ['jupyter_proxy', 'jupyter'],
    ['jupyter_direc ssh_direc ssh_proxy', 'jupyter'],
    ['args', 'args'],
  ])('%j means %s', (text, expected) => {
    expect(parseBody(createInstanceSchema, { runtype: text })).toEqual({ runtype: text });
    expect(normalizeRuntype(text)).toBe(expected);
  });

  it.each(['telnet', 'args ssh', 'ssh,jupyter', ' ssh', 'SSH', 'toString'])(
    '%j is refused with what is known',
    (runtype) => {
      expect(() => parseBody(createInstanceSchema, { runtype })).toThrow('runtype: expected ssh, jupyter or args');
    },
  );

  it('is none when it is empty', () => {
    expect(normalizeRuntype('')).toBeUndefined();
  });
});

describe('the creation payload', () => {
  const payload = fc.record(
    {
      type: fc.constantFrom(0, 1, null),
      ask_id: fc.option(fc.maxSafeInteger()),
      name: fc.option(fc.string({ maxLength: 128 })),
      stats: fc.option(fc.string({ maxLength: 200 })),
      template_image: fc.constantFrom('', 'debian:12', 'a/b@sha256:' + 'a'.repeat(64), null),
      template_id: fc.option(fc.maxSafeInteger()),
      template_hash_id: fc.option(fc.string({ maxLength: 64 })),
      runtype: fc.constantFrom('ssh', 'jupyter_direct', 'args', '', null),
      disk_gb: fc.option(fc.integer({ min: 1, max: 16_384 })),
      offer_disk_space: fc.option(fc.double({ min: 0, max: 1_048_576, noNaN: true })),
      install_monitoring: fc.option(fc.boolean()),
      ssh_key_ids: fc.option(fc.array(fc.integer({ min: 1, max: 2 ** 48 }), { maxLength: 64 })),
    },
    { requiredKeys: [] },
  );

  it('always makes a spec that the custom resource takes', () => {
    fc.assert(
      fc.property(payload, (body) => {
        const { spec } = toInstanceSpec(parseBody(createInstanceSchema, body));
        expect(gpuInstanceSpecSchema.safeParse(spec).success).toBe(true);
        expect(spec.onNoCapacity).toBe('Fail');
      }),
    );
  });

  it('means the same with nulls left out and fields in another order', () => {
    fc.assert(
      fc.property(payload, (body) => {
        const entries = Object.entries(body).filter(([, value]) => value !== null);
        const other = Object.fromEntries(entries.toReversed());
        expect(requestHash(other)).toBe(requestHash(body));
        expect(toInstanceSpec(parseBody(createInstanceSchema, other))).toEqual(
          toInstanceSpec(parseBody(createInstanceSchema, body)),
        );
      }),
    );
  });

  it('has another hash when it asks for something else', () => {
    expect(requestHash({ ssh_key_ids: [1, 2] })).not.toBe(requestHash({ ssh_key_ids: [2, 1] }));
    expect(requestHash({ name: 'a' })).not.toBe(requestHash({ stats: 'a' }));
  });
});

it('takes only harmless Idempotency-Keys', () => {
  expect(idempotencyKey({})).toBeUndefined();
  expect(idempotencyKey({ 'idempotency-key': 'a b' })).toBe('a b');
  for (const key of ['', ' a', 'a ', 'a\tb', '\u00e9', 'x'.repeat(256)]) {
    expect(() => idempotencyKey({ 'idempotency-key': key })).toThrow('Idempotency-Key');
  }
});
