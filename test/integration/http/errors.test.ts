import { connect as openSocket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { sshKeySchema } from '../../../src/http/features/ssh-keys/schema.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { type Addresses, callsOf } from '../../support/http/replicas.ts';
import { waitFor } from '../../support/wait-for.ts';

const PUBLIC_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop';

let cluster: Cluster;
let api: Addresses;
let mine: string;
let call: Call;
let stranger: Call;
let token: string;
/** What somebody gets who begins a request and never ends it. */
let slow: Promise<string>;

beforeAll(async () => {
  cluster = await openCluster();
  ({ api } = cluster);
  slow = send('GET / HTTP/1.1\r\nhost: x\r\nx-slow: ');
  mine = await cluster.namespace('http-errors');
  token = await cluster.key(mine);
  call = clientOf(api.url, token);
  stranger = clientOf(api.url, await cluster.key(await cluster.namespace('http-stranger')));
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

/** Sends bytes and returns everything that comes back until the server closes. */
function send(text: string): Promise<string> {
  // Past the proxy, which would refuse by itself what is no HTTP.
  const { hostname, port } = new URL(api.replicas[0]);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = openSocket(Number(port), hostname, () => socket.write(text));
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', reject).on('close', () => resolve(answer));
  });
}

describe('errors are JSON', () => {
  it.each([
    ['GET', '/nothing', 404, 'not_found'],
    ['GET', '/instances/a/b', 404, 'not_found'],
    ['PUT', '/offers', 405, 'method_not_allowed'],
    ['DELETE', '/instances', 405, 'method_not_allowed'],
    ['POST', '/instances/x', 405, 'method_not_allowed'],
    ['PATCH', '/ssh-keys/1', 405, 'method_not_allowed'],
    ['DELETE', '/ssh-keys/1', 404, 'ssh_key_not_found'],
    ['DELETE', '/ssh-keys/zero', 404, 'ssh_key_not_found'],
  ])('%s %s: %d %s', async (method, path, status, code) => {
    const answer = await call(method, path);
    expect([answer.status, answer.error['code']]).toEqual([status, code]);
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    if (status === 405) expect(answer.headers.get('allow')).toMatch(/GET|DELETE/);
  });

  it('outside the base path too', async () => {
    const response = await fetch(`${api.url}/elsewhere`);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } });
    expect(response.headers.get('x-powered-by')).toBeNull();
  });

  it('in the shape of the path: OpenAI, Anthropic', async () => {
    const reader = clientOf(api.url, await cluster.key(mine, { scopes: ['compute:read'] }));
    for (const path of ['/models', '/chat/completions', '/messages']) {
      const answer = await reader(path === '/models' ? 'GET' : 'POST', path, path === '/models' ? undefined : {});
      expect(answer.status, answer.text).toBe(403);
      expect(answer.error['type']).toMatch(/permission/);
    }
  });

  it.each([
    ['{', 400, 'malformed_json', {}],
    ['a=b', 415, 'unsupported_media_type', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['{}', 415, 'unsupported_media_type', { 'content-encoding': 'gzip' }],
    ['{}', 415, 'unsupported_media_type', { 'content-type': 'application/json; charset=latin1' }],
  ])('for the body %j: %d %s', async (body, status, code, headers: Record<string, string>) => {
    const answer = await call('POST', '/instances', body, headers);
    expect([answer.status, answer.error['code']], answer.text).toEqual([status, code]);
  });

  it('for bodies over 1 MiB, without reading them', async () => {
    const head = `POST /api/v1/instances HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n`;
    const declared = await send(`${head}content-length: 104857600\r\n\r\n{`);
    expect(declared).toMatch(/^HTTP\/1\.1 413 /);
    expect(declared).toMatch(/payload_too_large/);
    const chunk = 'x'.repeat(70_000);
    const chunked = await send(
      `${head}transfer-encoding: chunked\r\n\r\n${`${chunk.length.toString(16)}\r\n${chunk}\r\n`.repeat(17)}`,
    );
    expect(chunked).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('for JSON that is nested deeply', async () => {
    const deep = `${'['.repeat(400_000)}${']'.repeat(400_000)}`;
    expect((await call('POST', '/instances', deep)).status).toBe(413);
    const inside = await call('POST', '/instances', `{"ssh_key_ids":${deep}}`);
    expect(inside.status).toBe(413);
  });

  it('for what is no HTTP, and for headers without end', async () => {
    expect(await send('GARBAGE\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 [^]*"bad_request"/);
    expect(await send(`GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431 [^]*headers_too_large/,
    );
    const smuggled = `POST /api/v1/instances HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`;
    expect(await send(smuggled)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('what clients ask before their first call', () => {
  it.each([
    ['HEAD', '/', 200],
    ['GET', '/', 200],
    ['HEAD', '/api', 200],
    ['HEAD', '/api/', 200],
    ['HEAD', '/api/v1', 200],
    ['GET', '/api/v1/', 200],
    ['HEAD', '/api/v1/api/v1', 200],
  ])('%s %s is answered', async (method, path, status) => {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`${api.url}${path}`, { method, headers });
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    if (method === 'GET') expect(await response.json()).toMatchObject({ object: 'service', api: '/api/v1' });
  });

  it('leads people to the dashboard', async () => {
    const response = await fetch(api.url, { headers: { accept: 'text/html,*/*;q=0.8' }, redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([302, '/dashboard']);
  });
});

describe('headers', () => {
  it('tell browsers to be strict, and strangers nothing', async () => {
    for (const path of ['/api/v1/offers', '/openapi.json', '/docs', '/dashboard', '/nowhere']) {
      const { headers } = await fetch(`${api.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      expect(headers.get('x-powered-by'), path).toBeNull();
      expect(headers.get('server'), path).toBeNull();
      expect(headers.get('x-content-type-options'), path).toBe('nosniff');
      expect(headers.get('strict-transport-security'), path).toMatch(/max-age/);
      expect(headers.get('content-security-policy'), path).toMatch(/default-src 'none'/);
    }
  });

  it('carry the request id of the client when it is harmless', async () => {
    const answer = await call('GET', '/offers', undefined, { 'x-request-id': 'abc-1' });
    expect(answer.headers.get('x-request-id')).toBe('abc-1');
    const other = await call('GET', '/offers', undefined, { 'x-request-id': 'a b"c' });
    expect(other.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  it('let web pages in', async () => {
    const preflight = await fetch(`${api.url}/api/v1/instances`, {
      method: 'OPTIONS',
      headers: { origin: 'https://example.com', 'access-control-request-method': 'POST' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-headers')).toMatch(/Authorization.*Idempotency-Key/);
    expect((await call('GET', '/offers')).headers.get('access-control-allow-origin')).toBe('*');
  });
});

describe('SSH keys', () => {
  it('are made, listed and deleted', async () => {
    const made = await call('POST', '/ssh-keys', { name: 'laptop', public_key: `${PUBLIC_KEY}\n` });
    expect(made.status, made.text).toBe(201);
    const record = sshKeySchema.parse(made.json);
    expect(record).toMatchObject({ type: 'ssh-ed25519', name: 'laptop', public_key: PUBLIC_KEY });
    expect(record.fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
    await waitFor('the key in the list', async () => (await call('GET', '/ssh-keys')).data.length === 1);
    const deleted = await call('DELETE', `/ssh-keys/${record.id}`);
    expect(deleted.json).toEqual({ id: record.id, object: 'ssh_key', deleted: true });
    await waitFor('an empty list', async () => (await call('GET', '/ssh-keys')).data.length === 0);
  });

  it.each([
    [{ name: 'x' }, 'public_key'],
    [{ public_key: PUBLIC_KEY }, 'name'],
    [{ public_key: null, name: 'x' }, 'public_key'],
    [{ public_key: 'ssh-ed25519 AAAA', name: 'x' }, 'public_key'],
    [{ public_key: `${PUBLIC_KEY}\n${PUBLIC_KEY}`, name: 'x' }, 'public_key'],
    [{ public_key: PUBLIC_KEY, name: 'x'.repeat(129) }, 'name'],
    [{ public_key: PUBLIC_KEY, name: 'x', id: 1 }, 'id'],
    [undefined, 'public_key'],
  ])('refuse %j', async (body, path) => {
    const answer = await call('POST', '/ssh-keys', body);
    expect([answer.status, answer.error['code']], answer.text).toEqual([422, 'validation_failed']);
    expect(answer.error['fields']).toContainEqual({ path, expected: expect.any(String) as string });
  });

  it('are made once per Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'k1' };
    const body = { name: 'a', public_key: PUBLIC_KEY };
    const first = await call('POST', '/ssh-keys', body, headers);
    const second = await call('POST', '/ssh-keys', body, headers);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.json).toEqual(first.json);
    expect((await call('POST', '/ssh-keys', { ...body, name: 'b' }, headers)).status).toBe(409);
    const elsewhere = await stranger('POST', '/ssh-keys', body, headers);
    expect(elsewhere.status).toBe(201);
    expect(elsewhere.json['id']).not.toBe(first.json['id']);
    expect((await stranger('DELETE', `/ssh-keys/${first.id}`)).status).toBe(404);
    const list = await waitFor('the list', async () => {
      const { data } = await stranger('GET', '/ssh-keys');
      return data.length > 0 && data;
    });
    expect(list.map(({ id }) => id)).toEqual([elsewhere.json['id']]);
  });
});

describe('keys', () => {
  it('do what their scopes say', async () => {
    const reader = clientOf(api.url, await cluster.key(mine, { scopes: ['compute:read'] }));
    expect((await reader('GET', '/instances')).status).toBe(200);
    const refused = await reader('POST', '/instances', '{not even JSON');
    expect([refused.status, refused.error['code']]).toEqual([403, 'insufficient_scope']);
    const models = clientOf(api.url, await cluster.key(mine, { scopes: ['models'] }));
    expect((await models('GET', '/offers')).status).toBe(403);
    expect((await models('GET', '/models')).status).toBe(200);
  });

  it('stop at every replica within a second of their revocation', async () => {
    const short = await cluster.key(mine);
    const replicas = callsOf(api, short);
    for (const call of replicas) expect((await call('GET', '/offers')).status).toBe(200);
    const key = cluster.stores.apiKeys.by('namespace', mine).find(({ spec }) => short.startsWith(spec.prefix));
    await cluster.client.patch(
      API_KEYS,
      { namespace: mine, name: key?.metadata.name ?? '' },
      { spec: { revoked: true } },
      { type: 'merge' },
    );
    const refused = replicas.map((call) =>
      waitFor('401', async () => (await call('GET', '/offers')).status === 401, 1000),
    );
    await Promise.all(refused);
  });
});

it('says whether it lives and is ready', async () => {
  expect(await (await fetch(`${api.url}/livez`)).json()).toEqual({ status: 'ok' });
  expect((await fetch(`${api.url}/readyz`)).status).toBe(200);
});

it('waits for the rest of a request no longer than ten seconds or so', async () => {
  expect(await slow).toMatch(/^HTTP\/1\.1 408 [^]*"request_timeout"/);
});
