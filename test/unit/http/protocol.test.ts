import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import { plainUrl } from '../../../src/http/server/plain-url.ts';
import type { ApiKey } from '../../../src/resources/api-key.ts';
import { type LoneApi, post, startLoneApi } from '../../support/http/lone-api.ts';
import { waitFor } from '../../support/wait-for.ts';

// What is refused before a route sees it: by the parser, by authentication, or because it is OPTIONS.

const COMPUTE = '{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}';
const MODEL = '{"error":{"message":"Invalid API key.","type":"invalid_request_error","code":401}}';
const BAD = 'authorization: Bearer unknown';
const GOOD = 'authorization: Bearer alice';

let api: LoneApi;

beforeAll(async () => {
  api = await startLoneApi({ tenants: ['alice'] });
});

afterAll(() => api.close());

interface Answer {
  status: number;
  headers: Map<string, string>;
  body: string;
}

/** Sends a request line and header lines as they are, and reads the last answer until the server closes. */
async function send(line: string, ...headers: string[]): Promise<Answer> {
  const client = api.send(`${[line, ...headers, 'connection: close'].join('\r\n')}\r\n\r\n`);
  await waitFor('the end of the connection', () => client.closed);
  const text = client.got.slice(client.got.lastIndexOf('HTTP/1.1 '));
  const end = text.indexOf('\r\n\r\n');
  const [first = '', ...rest] = text.slice(0, end).split('\r\n');
  const pairs = rest
    .map((one) => one.split(': ', 2))
    .map(([name = '', value = '']) => [name.toLowerCase(), value] as const);
  return { status: Number(first.split(' ')[1]), headers: new Map(pairs), body: text.slice(end + 4) };
}

function isTheUnauthorized(answer: Answer, body: string): void {
  expect([answer.status, answer.body]).toEqual([401, body]);
  expect(answer.headers.get('cache-control')).toBe('no-cache, private');
  expect(answer.headers.get('content-type')).toBe('application/json');
  expect(answer.headers.get('access-control-allow-origin')).toBe('*');
}

describe.each([
  ['/api/v1/offers', COMPUTE],
  ['/api/v1/api/v1/instances/i-1?a=b', COMPUTE],
  ['/api/v1/models', MODEL],
  ['/api/v1/api/v1/messages', MODEL],
])('a bad credential at %s is the 401', (path, body) => {
  const get = `GET ${path} HTTP/1.1`;

  it.each([
    ['of 17,000 characters', `authorization: Bearer ${'a'.repeat(17_000)}`],
    ['of 100,000 characters', `authorization: Bearer ${'a'.repeat(100_000)}`],
    ['with a NUL', 'authorization: Bearer a\0b'],
    ['over two lines', 'authorization: Bearer\r\n alice'],
    ['that is unknown, beside long headers', `${BAD}\r\nx: ${'y'.repeat(20_000)}`],
    ['that is missing, beside a broken header', 'x: a\0b'],
  ])('%s', async (_what, header) => {
    isTheUnauthorized(await send(get, 'host: x', header), body);
  });

  it('in a request that has two, of which one is good', async () => {
    for (const headers of [
      [GOOD, BAD],
      [BAD, GOOD],
      [GOOD, GOOD],
      [GOOD, 'x-api-key: alice', 'x-api-key: alice'],
    ])
      isTheUnauthorized(await send(get, 'host: x', ...headers), body);
  });

  it('without a word before it, of a client that asks whether to send its body', async () => {
    const client = api.send(
      `POST ${path} HTTP/1.1\r\nhost: x\r\n${BAD}\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n`,
    );
    await waitFor('the end of the connection', () => client.closed);
    expect(client.got).toMatch(/^HTTP\/1\.1 401 /);
    expect(client.got.endsWith(body)).toBe(true);
  });

  it('in a request with an unknown method, and in one without Host', async () => {
    isTheUnauthorized(await send(get.replace('GET', 'BREW'), 'host: x', BAD), body);
    isTheUnauthorized(await send(get, BAD), body);
  });
});

describe('what is no valid HTTP, with a good key', () => {
  it.each([
    ['long headers', 'GET', ['host: x', GOOD, `x: ${'y'.repeat(20_000)}`], [431, 'headers_too_large']],
    ['too many headers', 'GET', ['host: x', GOOD, ...Array<string>(101).fill('a: b')], [431, 'headers_too_large']],
    ['a NUL', 'GET', ['host: x', GOOD, 'x: a\0b'], [400, 'bad_request']],
    ['a folded header', 'GET', ['host: x', GOOD, 'x: a\r\n b'], [400, 'bad_request']],
    ['an unknown method', 'BREW', ['host: x', GOOD], [400, 'bad_request']],
    ['no Host', 'GET', [GOOD], [400, 'bad_request']],
  ])('%s: an error in the shape of the path', async (_what, method, headers, [status, code]) => {
    const compute = await send(`${method} /api/v1/offers HTTP/1.1`, ...headers);
    expect(JSON.parse(compute.body)).toEqual({ error: { message: expect.any(String) as string, code } });
    const openai = await send(`${method} /api/v1/models HTTP/1.1`, ...headers);
    const error = { message: expect.any(String) as string, type: 'invalid_request_error', param: null, code };
    expect(JSON.parse(openai.body)).toEqual({ error });
    const anthropic = await send(`${method} /api/v1/messages HTTP/1.1`, ...headers);
    expect(JSON.parse(anthropic.body)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    for (const answer of [compute, openai, anthropic]) {
      expect(answer.status).toBe(status);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it('a hundred headers are not too many, and the words name both limits', async () => {
    expect((await send('GET /api/v1/offers HTTP/1.1', 'host: x', GOOD, ...Array<string>(97).fill('a: b'))).status).toBe(
      200,
    );
    const { body } = await send('GET /api/v1/offers HTTP/1.1', 'host: x', GOOD, ...Array<string>(98).fill('a: b'));
    expect(body).toMatch(/16 KiB.*100/);
  });

  it('a client that asks whether to send its body is told so when somebody reads it', async () => {
    const head = [
      'POST /api/v1/ssh-keys HTTP/1.1',
      'host: x',
      GOOD,
      'content-type: application/json',
      'content-length: 2',
    ];
    const client = api.send(`${[...head, 'expect: 100-continue', 'connection: close'].join('\r\n')}\r\n\r\n`);
    await waitFor('100 Continue', () => client.got.startsWith('HTTP/1.1 100 Continue\r\n\r\n'));
    expect(client.statuses.filter((status) => status !== 100)).toEqual([]);
    client.socket.write('{}');
    await waitFor('the end of the connection', () => client.closed);
    expect(client.got).toContain('HTTP/1.1 422 ');
  });

  it('an Expect that no server knows does not count, and CONNECT is answered', async () => {
    expect((await send('GET /api/v1/offers HTTP/1.1', 'host: x', GOOD, 'expect: a miracle')).status).toBe(200);
    expect((await send('CONNECT example.com:443 HTTP/1.1', 'host: x')).body).toContain('"bad_request"');
  });

  it('a request before it on the same connection has no part in it', async () => {
    const first = `GET /livez HTTP/1.1\r\nhost: x\r\n${GOOD}\r\n\r\n`;
    isTheUnauthorized(await send(`${first}GET /api/v1/models HTTP/1.1`, 'host: x', 'x: a\0b'), MODEL);
  });
});

it('a replica that has not read the keys yet calls no key invalid', async () => {
  const { store } = new Cache<ApiKey>({ indexers: INDEXES.apiKeys, onListenerError: () => undefined });
  const starting = await startLoneApi({ tenants: [], apiKeys: store });
  const ask = async (path: string, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${starting.address.port}/api/v1${path}`, { headers });
    await answer.text();
    return [answer.status, answer.headers.get('retry-after')];
  };
  const headers = { authorization: 'Bearer alice' };
  for (const path of ['/offers', '/models']) expect(await ask(path, headers)).toEqual([503, '1']);
  expect(await ask('/offers')).toEqual([401, null]);
  await starting.close();
});

describe('a path with letters in percent signs', () => {
  it.each([
    ['/api/v1/%6fffers', '/api/v1/offers'],
    ['/%61pi/v1/api/v1/%4F%66fers', undefined],
    ['/api/v1/%6D%6f%64els', '/api/v1/models'],
    ['/api/v1/%69nst%61nces', '/api/v1/instances'],
    ['/api/v1/ssh%2Dkeys', '/api/v1/ssh-keys'],
    ['/api/v1/%2e%2e/offers', undefined],
    ['/api/v1/offers%2F', undefined],
    ['/api/v1/%256fffers', undefined],
    ['/api/v1/%%36fffers', undefined],
  ])('%s is %s', async (path, same) => {
    const answer = await send(`GET ${path} HTTP/1.1`, 'host: x', GOOD);
    const plain = same === undefined ? undefined : await send(`GET ${same} HTTP/1.1`, 'host: x', GOOD);
    if (plain === undefined) expect([400, 404]).toContain(answer.status);
    else expect([answer.status, answer.body]).toEqual([plain.status, plain.body]);
    const stranger = await send(`GET ${path} HTTP/1.1`, 'host: x', BAD);
    if (same !== undefined) isTheUnauthorized(stranger, same.endsWith('/models') ? MODEL : COMPUTE);
  });

  it('stays as it is in a query, and in what belongs to a program in an instance', () => {
    for (const url of ['/a?b=%61', '/a#%61', '/api/v1/instances/i/proxy/8000/%61', '/%2e%2E', '/%zz%61'])
      expect(plainUrl(url)).toBe(url);
    expect(plainUrl('/%61?%61')).toBe('/a?%61');
  });
});

describe.each(['x-api-key', 'api-key'])('%s', (name) => {
  it.each(['/offers', '/instances', '/ssh-keys', '/limits', '/', '/nothing'])(
    'opens no endpoint that knows the bearer alone: %s',
    async (path) => {
      expect((await send(`GET /api/v1${path} HTTP/1.1`, 'host: x', `${name}: alice`)).status).toBe(401);
      expect((await send(`GET /api/v1${path} HTTP/1.1`, 'host: x', GOOD)).status).not.toBe(401);
    },
  );

  it.each(['/messages', '/messages/count_tokens', '/models', '/models/a/b', '/chat/completions', '/responses'])(
    'opens what clients of models call: %s',
    async (path) => {
      for (const base of ['/api/v1', '/api/v1/api/v1', '/api/v1/v1']) {
        expect((await send(`GET ${base}${path} HTTP/1.1`, 'host: x', `${name}: alice`)).status).not.toBe(401);
      }
      const other = name === 'api-key' ? 'x-api-key' : 'api-key';
      const both = await send(`GET /api/v1${path} HTTP/1.1`, 'host: x', `${name}: alice`, `${other}: bob`);
      expect(both.status).toBe(401);
    },
  );
});

describe('a path beside the API', () => {
  it.each(['/chat/completions', '/v1/chat/completions', '/v1/messages', '/openai/v1/responses'])(
    'tells the clients of models their base URL: %s',
    async (path) => {
      const answer = await send(`POST ${path} HTTP/1.1`, 'host: x', 'content-length: 0');
      expect([answer.status, answer.body]).toEqual([404, expect.stringContaining('ends in /api/v1 here')]);
    },
  );
});

it('a client that sends a long body with a key that is over sees the 401, and no broken connection', async () => {
  const client = api.send(post('/api/v1/instances', 500_000), Buffer.alloc(500_000, ' '));
  await waitFor('the 401', () => client.statuses.length === 1);
  client.socket.write('GET /api/v1/offers HTTP/1.1\r\nhost: x\r\n\r\n');
  await waitFor('the next answer on this connection', () => client.statuses.length === 2);
  expect(client.statuses).toEqual([401, 401]);
});

describe('OPTIONS', () => {
  const preflight = ['origin: https://example.com', 'access-control-request-method: POST'];
  const known: [path: string, allow: string][] = [
    ['/offers', 'GET, HEAD, OPTIONS'],
    ['/offers/search', 'POST, OPTIONS'],
    ['/instances', 'GET, HEAD, POST, OPTIONS'],
    ['/instances/i-1', 'GET, HEAD, PATCH, DELETE, OPTIONS'],
    ['/instances/i-1/links', 'POST, OPTIONS'],
    ['/templates', 'GET, HEAD, POST, OPTIONS'],
    ['/templates/1', 'GET, HEAD, PUT, DELETE, OPTIONS'],
    ['/ssh-keys/1', 'DELETE, OPTIONS'],
    ['/chat/completions', 'POST, OPTIONS'],
    ['/messages/count_tokens', 'POST, OPTIONS'],
    ['/models', 'GET, HEAD, OPTIONS'],
    ['/models/org/name', 'GET, HEAD, OPTIONS'],
    ['/responses/resp_1', 'GET, HEAD, DELETE, OPTIONS'],
    ['/', 'GET, HEAD, OPTIONS'],
  ];

  it.each(known)('of %s says what is allowed, to who has a key', async (path, allow) => {
    const line = `OPTIONS /api/v1${path} HTTP/1.1`;
    const answer = await send(line, 'host: x', GOOD);
    expect([answer.status, answer.headers.get('allow'), answer.body]).toEqual([200, allow, '']);
    expect((await send(line, 'host: x')).status).toBe(401);
  });

  it.each(known)('of %s as a preflight needs no key', async (path) => {
    const answer = await send(`OPTIONS /api/v1/api/v1${path} HTTP/1.1`, 'host: x', ...preflight);
    expect([answer.status, answer.body]).toEqual([204, '']);
    expect(answer.headers.get('access-control-allow-methods')).toContain('PUT, PATCH');
  });

  it.each(['/nothing', '/instances/a/b', '/OFFERS', '/models-of-mine'])('of %s is 404', async (path) => {
    const line = `OPTIONS /api/v1${path} HTTP/1.1`;
    for (const headers of [[GOOD], preflight]) {
      const answer = await send(line, 'host: x', ...headers);
      expect(answer.status).toBe(404);
      expect(JSON.parse(answer.body)).toMatchObject({ error: { code: 'not_found' } });
    }
  });

  it('outside of the base says what is allowed too, and is 404 for unknown paths', async () => {
    const answer = await send('OPTIONS /docs HTTP/1.1', 'host: x');
    expect([answer.status, answer.headers.get('allow')]).toEqual([200, 'GET, HEAD, OPTIONS']);
    expect((await send('OPTIONS /nowhere HTTP/1.1', 'host: x', ...preflight)).status).toBe(404);
  });
});
