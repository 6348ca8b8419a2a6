import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { API_KEYS } from '../../../src/resources/api-key.ts';
import { mintToken } from '../../../src/resources/api-key.ts';
import { waitFor } from '../../support/wait-for.ts';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';
import { type Addresses, callsOf } from '../../support/http/replicas.ts';

const PAIRS = [
  ['POST', '/chat/completions'],
  ['POST', '/responses'],
  ['POST', '/messages'],
  ['POST', '/completions'],
  ['POST', '/embeddings'],
  ['POST', '/rerank'],
  ['POST', '/audio/transcriptions'],
  ['GET', '/models'],
  ['GET', '/offers'],
  ['GET', '/instances'],
  ['POST', '/instances'],
  ['GET', '/instances/i-abc'],
  ['PATCH', '/instances/i-abc'],
  ['DELETE', '/instances/i-abc'],
  ['GET', '/ssh-keys'],
  ['POST', '/ssh-keys'],
  ['DELETE', '/ssh-keys/1'],
] as const;
const BASES = ['/api/v1', '/api/v1/api/v1'];
const MODEL_BODY = '{"error":{"message":"Invalid API key.","type":"invalid_request_error","code":401}}';
const COMPUTE_BODY = '{"error":{"message":"Invalid API key.","code":"invalid_api_key"}}';
const MODEL_PATHS = new Set([
  '/chat/completions',
  '/responses',
  '/messages',
  '/completions',
  '/embeddings',
  '/rerank',
  '/audio/transcriptions',
  '/models',
]);

let cluster: Cluster;
let api: Addresses;
let tokens: Record<string, string | undefined>;

beforeAll(async () => {
  cluster = await openCluster();
  ({ api } = cluster);
  const namespace = await cluster.namespace('http-401');
  const expired = await cluster.key(namespace, { expiresAt: '2020-01-01T00:00:00Z' });
  const revoked = await cluster.key(namespace);
  const key = cluster.stores.apiKeys.by('namespace', namespace).find(({ spec }) => revoked.startsWith(spec.prefix));
  const name = key?.metadata.name ?? '';
  await cluster.client.patch(API_KEYS, { namespace, name }, { spec: { revoked: true } }, { type: 'merge' });
  for (const call of callsOf(api, revoked)) {
    await waitFor('the revocation', async () => (await call('GET', '/offers')).status === 401);
  }
  const good = await cluster.key(namespace);
  tokens = {
    missing: undefined,
    empty: '',
    malformed: 'Bearer not a token',
    'wrong scheme': `Basic ${Buffer.from(`x:${good}`).toString('base64')}`,
    'no scheme': good,
    unknown: `Bearer ${mintToken().token}`,
    expired: `Bearer ${expired}`,
    revoked: `Bearer ${revoked}`,
    'one character wrong': `Bearer ${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}`,
  };
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

let turn: 0 | 1 = 0;

/** Past fetch, which hides the raw headers, and past the proxy: to each replica in turns. */
function raw(method: string, path: string, authorization: string | undefined) {
  turn = turn === 0 ? 1 : 0;
  return new Promise<{ status: number; headers: string[]; body: string }>((resolve, reject) => {
    const body = method === 'POST' || method === 'PATCH' ? 'this is {not JSON' : undefined;
    const call = request(
      `${api.replicas[turn]}${path}`,
      {
        method,
        headers: {
          ...(authorization !== undefined && { authorization }),
          ...(body !== undefined && { 'content-type': 'application/json', 'content-length': body.length }),
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.rawHeaders, body: text }),
        );
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

function pairsOf(headers: string[]): string[] {
  return headers.flatMap((name, index) => (index % 2 === 0 ? [`${name}: ${headers[index + 1]}`] : []));
}

describe.each(BASES)('without a good key, under %s', (base) => {
  it.each(PAIRS)('%s %s answers the 401 of the specification, byte for byte', async (method, path) => {
    const expected = MODEL_PATHS.has(path) ? MODEL_BODY : COMPUTE_BODY;
    for (const [name, authorization] of Object.entries(tokens)) {
      const answer = await raw(method, `${base}${path}`, authorization);
      expect(answer.status, name).toBe(401);
      expect(answer.body, name).toBe(expected);
      const transport = /^(?:date|connection|keep-alive|content-length): /i;
      expect(
        pairsOf(answer.headers).filter((header) => !transport.test(header)),
        name,
      ).toEqual([
        'cache-control: no-cache, private',
        'content-type: application/json',
        'access-control-allow-origin: *',
      ]);
    }
  });
});

it('answers nothing else to a stranger under the base path', async () => {
  for (const path of ['/api/v1/nothing', '/api/v1/api/v1/instances/a/b', '/api/v1/INSTANCES']) {
    expect((await raw('GET', path, undefined)).status).toBe(401);
  }
  expect((await raw('PUT', '/api/v1/offers', undefined)).status).toBe(401);
});
