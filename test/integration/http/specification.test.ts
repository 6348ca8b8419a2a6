import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Answer, type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { startGranter } from '../../support/http/granter.ts';
import { openCluster } from '../../support/http/open.ts';
import { CREATION, INVALID, type Line, rowsOf } from '../../support/http/specification.ts';
import { waitFor } from '../../support/wait-for.ts';

// The specification of the HTTP interface, line by line: what a section says, a request, and what must come back.
// The 401 of section 7 has a test of its own, which compares bytes: unauthorized.test.ts.

const PRODUCT = `TEST-GPU-${Math.random().toString(36).slice(2, 8)}`;
const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop';
const NO_INSTANCE = 'instance_not_found';

let cluster: Cluster;
let namespace: string;
let token: string;
let call: Call;
let removeNode: () => Promise<void>;
let stopGranter: () => void;
let instanceId: string;
let sshKeyId: unknown;

async function rent(body?: unknown): Promise<Answer> {
  const answer = await call('POST', '/instances', body);
  if (answer.status === 201) await call('DELETE', `/instances/${answer.id}`);
  return answer;
}

beforeAll(async () => {
  cluster = await openCluster();
  removeNode = await addNode(cluster.client, gpuNode(`node-${PRODUCT.toLowerCase()}`, PRODUCT, 8));
  namespace = await cluster.namespace('http-specification');
  stopGranter = startGranter({ ...cluster, ...cluster.stores, serves: (name) => name === namespace });
  token = await cluster.key(namespace);
  call = clientOf(cluster.api.url, token);
  await waitFor('the offers of the test node', async () => {
    const { data } = await call('GET', '/offers');
    return data.some((offer) => offer['gpu_name'] === PRODUCT && offer['available'] === 8);
  });
  instanceId = (await call('POST', '/instances')).id;
  sshKeyId = (await call('POST', '/ssh-keys', { name: 'laptop', public_key: PUBLIC_KEY })).json['id'];
});

afterAll(async () => {
  stopGranter();
  await removeNode();
  await cluster[Symbol.asyncDispose]();
});

function check(answer: Answer, { status, code }: Pick<Line, 'status' | 'code'>): void {
  expect(answer.status, answer.text.slice(0, 500)).toBe(status);
  if (code !== undefined) expect(answer.error['code']).toBe(code);
}

describe('section 1 and 4: base address and endpoints', () => {
  const ENDPOINTS = [
    ['GET', '/models', undefined, 200],
    ['GET', '/offers', undefined, 200],
    ['GET', '/instances', undefined, 200],
    ['POST', '/instances', {}, 201],
    ['GET', '/instances/ID', undefined, 200],
    ['PATCH', '/instances/ID', {}, 200],
    ['GET', '/ssh-keys', undefined, 200],
    ['POST', '/ssh-keys', { name: '', public_key: PUBLIC_KEY }, 201],
    ['DELETE', '/instances/nothing', undefined, 404],
    ['DELETE', '/ssh-keys/nothing', undefined, 404],
    // No model is there: section 4, note 1 leaves the payload open.
    ['POST', '/chat/completions', { model: 'none', messages: [{ role: 'user', content: 'x' }] }, 404],
    ['POST', '/responses', { model: 'none', input: 'x' }, 404],
    ['POST', '/messages', { model: 'none', max_tokens: 1, messages: [{ role: 'user', content: 'x' }] }, 404],
  ] as const;

  it.each(ENDPOINTS)('%s %s is at {base_url}/api/v1 with a base that ends in /api/v1', async (...endpoint) => {
    const [method, path, body, status] = endpoint;
    for (const base of ['/api/v1', '/api/v1/api/v1']) {
      const response = await fetch(`${cluster.api.url}${base}${path.replace('ID', instanceId)}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'application/json',
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      expect([base, response.status]).toEqual([base, status]);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      const answer = (await response.json()) as { id?: unknown };
      if (path === '/instances' && status === 201) await call('DELETE', `/instances/${String(answer.id)}`);
    }
  });

  it.each(['/api/v1', '/api/v1/api/v1'])(
    'a client creates, lists, reads, renames and deletes an instance, and registers and deletes a key, at %s',
    async (base) => {
      const at = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
        const response = await fetch(`${cluster.api.url}${base}${path}`, {
          method,
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
          ...(body !== undefined && { body: JSON.stringify(body) }),
        });
        expect([method, path, response.ok]).toEqual([method, path, true]);
        expect(response.headers.get('content-type')).toMatch(/^application\/json/);
        return (await response.json()) as Record<string, unknown>;
      };
      const listed = async (path: string): Promise<unknown[]> => {
        return ((await at('GET', path))['data'] as Record<string, unknown>[]).map(({ id }) => id);
      };
      const { id } = await at('POST', '/instances', { name: 'before' });
      const path = `/instances/${String(id)}`;
      await waitFor('the instance in the list', async () => (await listed('/instances')).includes(id));
      expect(await at('PATCH', path, { name: 'after', label: 'mine' })).toMatchObject({ id, name: 'after' });
      await waitFor('the new name', async () => (await at('GET', path))['name'] === 'after');
      expect(await at('DELETE', path)).toEqual({ id, object: 'instance', deleted: true });
      await waitFor('the end of the instance', async () => !(await listed('/instances')).includes(id));
      const key = await at('POST', '/ssh-keys', { name: 'laptop', public_key: PUBLIC_KEY });
      await waitFor('the key in the list', async () => (await listed('/ssh-keys')).includes(key['id']));
      const deleted = { id: key['id'], object: 'ssh_key', deleted: true };
      expect(await at('DELETE', `/ssh-keys/${String(key['id'])}`)).toEqual(deleted);
      await waitFor('the end of the key', async () => !(await listed('/ssh-keys')).includes(key['id']));
    },
  );

  it.each(['/models', '/offers', '/instances', '/ssh-keys'])('GET %s answers a list', async (path) => {
    expect((await call('GET', path)).json).toMatchObject({ object: 'list', data: expect.any(Array) as unknown });
  });

  it('no endpoint declares query parameters: they change nothing', async () => {
    const plain = await call('GET', '/ssh-keys');
    for (const query of ['?limit=1', '?%zz', '?a[b]=c&a=d']) {
      const response = await fetch(`${cluster.api.url}/api/v1/ssh-keys${query}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      expect([response.status, await response.text()]).toEqual([200, plain.text]);
    }
  });
});

describe('section 2.1: POST /instances', () => {
  it('the pattern of template_image is that of the specification, to the letter', async () => {
    const { components } = (await (await fetch(`${cluster.api.url}/openapi.json`)).json()) as {
      components: { schemas: Record<string, { properties: Record<string, { anyOf: { pattern?: string }[] }> }> };
    };
    const { template_image: field } = components.schemas['CreateInstance']?.properties ?? {};
    const image = field?.anyOf.find(({ pattern }) => pattern !== undefined);
    const written = String.raw`^$|^([a-z0-9][a-z0-9._\/-]*)(?::[@a-zA-Z0-9][@a-zA-Z0-9._-]*|@sha256:[a-fA-F0-9]{64})?$`;
    // In a class the slash needs no escape; a regular expression of JSON has none.
    expect(image?.pattern?.replaceAll(String.raw`\/`, '/')).toBe(written.replaceAll(String.raw`\/`, '/'));
  });

  it.each(rowsOf(CREATION))('$says: $short is $status', async ({ body, ...expected }) => {
    check(await rent(body), expected);
  });

  it.each([
    '',
    'telnet',
    'SSH',
    'args ssh',
    ' ssh ',
    'a\0b',
    '\u{1F680} \u202e',
    '{"json":[1]}',
    '<&>',
    'x'.repeat(5000),
    'x'.repeat(1_000_000),
  ])('stats and runtype are any string: %.20j comes back word for word', async (text) => {
    expect((await rent({ stats: text })).json).toMatchObject({ stats: text, warnings: [] });
    const answer = await rent({ runtype: text });
    expect(answer.json['runtype']).toBe(text === '' ? 'ssh' : text);
    expect(answer.json['warnings']).toHaveLength(text === '' ? 0 : 1);
  });

  it('text that Kubernetes cannot store is too long, and no failure', async () => {
    // The API server writes each of these characters as six.
    check(await rent({ stats: '<'.repeat(500_000) }), { status: 413, code: 'payload_too_large' });
  });

  it.each(['name', 'stats', 'runtype'])(
    'half a surrogate pair in %s is no character, and is refused',
    async (field) => {
      check(await rent(`{"${field}":"a\\ud800"}`), { status: 422, code: INVALID });
      expect((await rent(`{"${field}":"\\ud83d\\ude80"}`)).json[field]).toBe('\u{1F680}');
    },
  );

  it('each element of ssh_key_ids matches a stored SSH key', async () => {
    const answer = await rent({ ssh_key_ids: [sshKeyId, sshKeyId] });
    expect([answer.status, answer.json['ssh_key_ids']]).toEqual([201, [sshKeyId]]);
  });
});

describe('section 2.1, what a request may say and nothing can run', () => {
  it.each(['a:@x', `a:${'t'.repeat(129)}`, `a@sha256:${'A'.repeat(64)}`, 'a-'])(
    'an image named %.20s is taken, and a warning says that it cannot start',
    async (image) => {
      const answer = await rent({ template_image: image });
      expect(answer.status).toBe(201);
      expect(answer.json['warnings']).toContainEqual(expect.stringContaining('No container runtime takes the name'));
    },
  );

  it.each(['a//b', 'a/', 'a/../b'])('an image named %s is refused with the reason', async (image) => {
    const answer = await rent({ template_image: image });
    check(answer, { status: 422, code: INVALID });
    expect(answer.error['message']).toContain('without .. and //');
  });

  it('with type 1 the instance is interruptible, and its record says so', async () => {
    const [on, off] = [(await rent({ type: 1 })).json, (await rent({ type: 0 })).json];
    expect([on['type'], off['type']]).toEqual([1, 0]);
  });
});

describe('section 2.2: PATCH /instances/{instanceId}', () => {
  it.each(
    rowsOf([
      { says: 'the body is optional', bodies: [undefined, {}, '', 'null'], status: 200 },
      {
        says: 'label and name are optional and nullable',
        bodies: [{ label: 'l' }, { name: 'n' }, { label: null, name: null }, { label: '', name: '' }],
        status: 200,
      },
      {
        says: 'a maximum length applies',
        bodies: [{ label: 'l'.repeat(255) }, { name: 'n'.repeat(128) }],
        status: 200,
      },
      {
        says: 'a maximum length applies',
        bodies: [{ label: 'l'.repeat(256) }, { name: 'n'.repeat(129) }],
        status: 422,
        code: INVALID,
      },
      { says: 'label and name are strings', bodies: [{ label: 1 }, { name: [] }], status: 422, code: INVALID },
      { says: 'half a pair is no character', bodies: ['{"label":"\\ud800"}', '{"name":"\\udc00"}'], status: 422 },
      { says: 'the body is a JSON object', bodies: ['[]', '"x"'], status: 422, code: INVALID },
    ]),
  )('$says: $short is $status', async ({ body, ...expected }) => {
    check(await call('PATCH', `/instances/${instanceId}`, body), expected);
  });

  it('a field that is absent stays, and null clears it', async () => {
    const patch = (body: unknown) => call('PATCH', `/instances/${instanceId}`, body);
    expect((await patch({ label: 'l', name: 'n' })).json).toMatchObject({ label: 'l', name: 'n' });
    expect((await patch({ label: null })).json).toMatchObject({ label: null, name: 'n' });
  });
});

describe('section 2.3: POST /ssh-keys', () => {
  const key = { public_key: PUBLIC_KEY, name: 'n' };

  it.each(
    rowsOf([
      { says: 'the body is required', bodies: [undefined, '', 'null', {}], status: 422, code: INVALID },
      {
        says: 'public_key is required',
        bodies: [{ name: 'n' }, { ...key, public_key: null }],
        status: 422,
        code: INVALID,
      },
      {
        says: 'name is required',
        bodies: [{ public_key: PUBLIC_KEY }, { ...key, name: null }],
        status: 422,
        code: INVALID,
      },
      {
        says: 'both are strings',
        bodies: [
          { ...key, name: 1 },
          { ...key, public_key: {} },
        ],
        status: 422,
        code: INVALID,
      },
      { says: 'both are strings', bodies: [key, { ...key, name: '' }, { ...key, name: 'n'.repeat(128) }], status: 201 },
      { says: 'half a pair is no character', bodies: [JSON.stringify(key).replace('"n"', '"\\ud800"')], status: 422 },
    ]),
  )('$says: $short is $status', async ({ body, ...expected }) => {
    check(await call('POST', '/ssh-keys', body), expected);
  });
});

describe('section 2.4: path identifiers are strings', () => {
  it.each(['nothing', '0', '-1', '1e3', '9007199254740993', 'A%20b', '%F0%9F%9A%80', 'x'.repeat(1000)])(
    '%.30s is the id of nothing',
    async (id) => {
      for (const method of ['GET', 'PATCH', 'DELETE'])
        check(await call(method, `/instances/${id}`), { status: 404, code: NO_INSTANCE });
      check(await call('DELETE', `/ssh-keys/${id}`), { status: 404, code: 'ssh_key_not_found' });
    },
  );
});

describe('section 4: the headers of a request', () => {
  const ask = (path: string, headers: Record<string, string>, body?: string) =>
    fetch(`${cluster.api.url}/api/v1${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, ...headers },
      ...(body !== undefined && { body }),
    });

  it.each([
    'application/json',
    'application/json, text/event-stream',
    'application/json;q=0.9, text/event-stream;q=0.5',
    'text/event-stream;q=0, application/json',
    'application/*',
    '*/*',
    'text/html, */*;q=0.1',
    '',
  ])('Accept: %j is answered with JSON, which ends', async (accept) => {
    for (const path of ['/offers', '/instances', `/instances/${instanceId}`, '/ssh-keys', '/models']) {
      const response = await ask(path, { accept });
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      await response.json();
    }
  });

  it.each([
    ['application/json', 201],
    ['application/json; charset=utf-8', 201],
    ['APPLICATION/JSON;charset="UTF-8"', 201],
    ['application/json ;', 201],
    ['application/vnd.example+json', 201],
    ['application/json; charset=latin1', 415],
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['json', 415],
  ])('Content-Type: %s is %d', async (type, status) => {
    const response = await ask(
      '/ssh-keys',
      { 'content-type': type },
      JSON.stringify({ name: 'n', public_key: PUBLIC_KEY }),
    );
    expect(response.status).toBe(status);
    await response.text();
  });

  it.each([
    ['/%6fffers', '/offers'],
    ['/%69nstances', '/instances'],
    ['/ssh%2Dkeys', '/ssh-keys'],
  ])('%s is the same path as %s', async (path, same) => {
    const [one, other] = await Promise.all([ask(path, {}), ask(same, {})]);
    expect([one.status, Object.keys((await one.json()) as object)]).toEqual([
      200,
      Object.keys((await other.json()) as object),
    ]);
  });
});

describe('section 5: authentication', () => {
  const ALL = ['/offers', '/instances', '/instances/i', '/ssh-keys', '/models', '/chat/completions', '/responses'];

  it.each([...ALL, '/messages'])('%s takes the key as a bearer token alone', async (path) => {
    const status = async (headers: Record<string, string>): Promise<number> => {
      return (await fetch(`${cluster.api.url}/api/v1${path}`, { headers })).status;
    };
    expect(await status({ authorization: `Bearer ${token}` })).not.toBe(401);
    expect(await status({ authorization: `Basic ${Buffer.from(`${token}:`).toString('base64')}` })).toBe(401);
    expect(await status({ cookie: `key=${token}` })).toBe(401);
    // An extension for clients of Anthropic and Azure, at what clients of models call.
    const isTaken = ['/messages', '/models', '/chat/completions', '/responses'].includes(path);
    for (const header of ['x-api-key', 'api-key']) expect((await status({ [header]: token })) !== 401).toBe(isTaken);
  });

  it('the raw token is stored nowhere', async () => {
    const { items } = await cluster.client.list(API_KEYS, { namespace });
    expect(items.length).toBeGreaterThan(0);
    expect(JSON.stringify(items)).not.toContain(token);
  });
});

describe('section 9: versioning', () => {
  it('the version of the description is 1.0.0, and part of every path', async () => {
    const response = await fetch(`${cluster.api.url}/openapi.json`);
    const { info, servers } = (await response.json()) as { info: { version: string }; servers: { url: string }[] };
    expect(info.version).toBe('1.0.0');
    expect(servers.map(({ url }) => url)).toEqual(['/api/v1', '/api/v1/api/v1']);
    for (const path of ['/offers', '/v1/offers', '/api/offers', '/api/v2/offers']) {
      const elsewhere = await fetch(`${cluster.api.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      expect([path, elsewhere.status]).toEqual([path, 404]);
    }
  });
});
