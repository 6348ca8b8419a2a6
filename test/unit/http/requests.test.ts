import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokenOf, tokenOfRequest } from '../../../src/http/interface/auth/middleware.ts';
import { familyOf, relativePath } from '../../../src/http/interface/errors/families.ts';
import { idempotencyKey, requestHash } from '../../../src/http/interface/idempotency.ts';
import { runtypeOf, toInstanceSpec } from '../../../src/http/features/instances/to-spec.ts';
import { parseBody } from '../../../src/http/interface/validate.ts';
import { createInstanceSchema, updateInstanceSchema } from '../../../src/http/features/instances/schema.ts';
import { offerSearchSchema } from '../../../src/http/features/offers/schema.ts';
import { templateContentSchema } from '../../../src/http/features/templates/schema.ts';
import { createSshKeySchema } from '../../../src/http/features/ssh-keys/schema.ts';
import { createKeySchema } from '../../../src/web/key-record.ts';
import { gpuInstanceSpecSchema } from '../../../src/resources/instances/gpu-instance.ts';
import { mintToken } from '../../../src/resources/api-key.ts';

describe('the token of a request', () => {
  it('is what follows the scheme, in any case', () => {
    const { token } = mintToken();
    for (const scheme of ['Bearer', 'bearer', 'BEARER'])
      expect(tokenOf({ authorization: `${scheme} ${token}` }, '/offers')).toBe(token);
    for (const path of ['/messages', '/chat/completions']) {
      expect(tokenOf({ 'x-api-key': token }, path)).toBe(token);
      expect(tokenOf({ 'api-key': token }, path)).toBe(token);
      expect(tokenOf({ 'api-key': token, 'x-api-key': token }, path)).toBe(token);
      expect(tokenOf({ 'api-key': token, 'x-api-key': 'other' }, path)).toBeUndefined();
    }
    expect(tokenOf({ 'x-api-key': token, 'api-key': token }, '/offers')).toBeUndefined();
  });

  it.each(['', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', 'Bearer a,Bearer b', 'Bearerabc', 'Bearer "a"'])(
    'is none in %j',
    (authorization) => {
      expect(tokenOf({ authorization, 'x-api-key': 'good' }, '/messages')).toBeUndefined();
    },
  );
});

it('is none where there are two, of which a proxy may have seen the other one', () => {
  const { token } = mintToken();
  const request = (...given: string[]) => {
    const headers = { authorization: given[0] };
    return tokenOfRequest({ headers, headersDistinct: { authorization: given }, url: '/api/v1/offers' } as never);
  };
  expect(request(`Bearer ${token}`)).toBe(token);
  expect(request(`Bearer ${token}`, 'Bearer other')).toBeUndefined();
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
  ])('%j means %s', (text, runtype) => {
    expect(parseBody(createInstanceSchema, { runtype: text })).toEqual({ runtype: text });
    expect(runtypeOf(text)).toEqual({ runtype });
  });

  it.each(['telnet', 'args ssh', 'ssh,jupyter', ' ssh', 'SSH', 'toString', '\0', '\u{1F680}', 'x'.repeat(100_000)])(
    '%j is kept word for word and runs as ssh',
    (text) => {
      expect(parseBody(createInstanceSchema, { runtype: text })).toEqual({ runtype: text });
      expect(runtypeOf(text)).toEqual({ runtype: 'ssh', requestedRuntype: text });
    },
  );

  it('is none when it is empty', () => {
    expect(runtypeOf('')).toEqual({});
  });
});

describe('integers', () => {
  it.each([-0, 2 ** 53, 2 ** 53 + 2, -(2 ** 63), 1e300, Infinity, -Infinity])(
    'may be any: %d is one that no offer and no template has',
    (number) => {
      const body = { ask_id: number, template_id: number };
      expect(parseBody(createInstanceSchema, body)).toEqual(body);
      expect(toInstanceSpec({ ask_id: number }).offerPossible).toBe(false);
    },
  );

  it.each(['1', true, 1.5, [1], {}, 1e-9])('are no %j', (ask_id) => {
    expect(() => parseBody(createInstanceSchema, { ask_id })).toThrow('ask_id: expected an integer.');
  });

  it('that are too large are told so once', () => {
    for (const disk_gb of [1e20, -1e20])
      expect(() => parseBody(createInstanceSchema, { disk_gb })).toThrow(
        expect.objectContaining({ extra: { fields: [expect.objectContaining({ path: 'disk_gb' })] } }),
      );
  });
});

describe('half surrogate pairs', () => {
  const half = 'a\ud83d';

  it.each([
    ['name', createInstanceSchema, { name: half }],
    ['stats', createInstanceSchema, { stats: half }],
    ['runtype', createInstanceSchema, { runtype: half }],
    ['label', updateInstanceSchema, { label: half }],
    ['name', updateInstanceSchema, { name: half }],
    ['name', createSshKeySchema, { name: half, public_key: 'x' }],
    ['public_key', createSshKeySchema, { name: 'x', public_key: half }],
    ['name', createKeySchema, { namespace: 'a', name: half, scopes: ['models'] }],
  ])('are refused in %s', (path, schema, body) => {
    expect(() => parseBody<unknown>(schema, body)).toThrow(`${path}: expected text without half surrogate pairs.`);
    expect(() =>
      parseBody<unknown>(schema, JSON.parse(JSON.stringify(body).replace('d83d', 'd83d\\udc00'))),
    ).not.toThrow();
  });
});

describe('images', () => {
  const DIGEST = `@sha256:${'a'.repeat(64)}`;
  const schemas: readonly [string, (image: string) => boolean][] = [
    ['rent', (image) => createInstanceSchema.safeParse({ template_image: image }).success],
    ['search', (image) => offerSearchSchema.safeParse({ image }).success],
    ['template', (image) => templateContentSchema.safeParse({ name: 't', image }).success],
    ['kind', (image) => gpuInstanceSpecSchema.safeParse({ image }).success],
  ];

  it.each(schemas)('name no way up: %s', (_name, takes) => {
    for (const image of ['ok/../evil', 'ok/..', '..', 'docker.io//evil', 'a/./b', 'a./b', 'a:1..2', 'docker.io/a/../b'])
      expect([image, takes(image)]).toEqual([image, false]);
    for (const image of ['', 'debian:12', 'ghcr.io/a/b.c_d-e:v1.2', `r.example/a/b${DIGEST}`, 'a/b/c'])
      expect([image, takes(image)]).toEqual([image, true]);
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
      runtype: fc.oneof(fc.constantFrom('ssh', 'jupyter_direct', 'args', '', null), fc.string()),
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

describe('a field of another form', () => {
  const expected = (body: object): Record<string, string> => {
    try {
      parseBody(createInstanceSchema, body);
      return {};
    } catch (error) {
      const { fields } = (error as { extra: { fields: { path: string; expected: string }[] } }).extra;
      return Object.fromEntries(fields.map(({ path, expected: text }) => [path, text]));
    }
  };

  it('is refused with the form that it should have', () => {
    const env = 'expected an object of texts by name, such as {"HF_TOKEN": "hf_x"}';
    const ports = 'expected an array such as [{"container_port": 8888}]';
    expect(expected({ env: '-e A=B' })).toEqual({ env });
    expect(expected({ env: [{ key: 'A', value: 'b' }] })).toEqual({ env });
    expect(expected({ ports: '8888/http,22/tcp' })).toEqual({ ports });
    expect(expected({ ports: [8000] })).toEqual({
      'ports[0]': 'expected an object such as {"container_port": 8888, "protocol": "tcp"}',
    });
    expect(expected({ args: 'python train.py' })).toEqual({
      args: 'expected an array with a text for each word, such as ["python", "train.py"]',
    });
  });

  it.each([
    [{ gpu: 'l4' }, { gpu: 'expected an object such as {"name": "NVIDIA-L4", "count": 1}' }],
    [{ ssh_key_ids: 7 }, { ssh_key_ids: 'expected an array of ids such as [1234567890]' }],
    [{ ssh_key_ids: ['laptop'] }, { 'ssh_key_ids[0]': 'expected an id, which is an integer' }],
    [{ ssh_key_ids: [1.5] }, { 'ssh_key_ids[0]': 'expected an id, which is an integer' }],
    [{ command: 'bash' }, { command: 'expected an array with a text for each word, such as ["python", "train.py"]' }],
    [{ max_duration: 3600 }, { max_duration: 'expected a text such as "12h"' }],
    [{ idle_timeout: { minutes: 30 } }, { idle_timeout: 'expected a text such as "12h"' }],
    [{ max_price_per_hour: 1.5 }, { max_price_per_hour: 'expected a text such as "2.49"' }],
  ])('has its form said too: %j', (body, fields) => {
    expect(expected(body)).toEqual(fields);
  });

  it('is named as JSON names it where it has no form of its own', () => {
    expect(expected({ run_as_root: 'true', disk_gb: 1.5 })).toEqual({
      run_as_root: 'expected boolean',
      disk_gb: 'expected integer',
    });
  });

  it('says that a port and a name of one come once', () => {
    const ports = [
      { container_port: 1, name: 'a' },
      { container_port: 2, name: 'a' },
    ];
    expect(expected({ ports })).toEqual({ 'ports[1].name': 'expected each name once' });
  });
});
