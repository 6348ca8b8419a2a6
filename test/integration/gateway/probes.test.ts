import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Cluster } from '../../support/http/api.ts';
import { openCluster } from '../../support/http/open.ts';

/** What agents ask before and beside their calls, of the whole HTTP interface and with no model in the cluster. */
let cluster: Cluster;
let url: string;
let key: string;

beforeAll(async () => {
  cluster = await openCluster();
  ({ url } = cluster.api);
  key = await cluster.key(await cluster.namespace('probes'), { scopes: ['models'] });
});
afterAll(() => cluster[Symbol.asyncDispose]());

it.each(['/', '/api', '/api/'])('Claude Code finds a server: HEAD %s without a key', async (path) => {
  const response = await fetch(`${url}${path}`, { method: 'HEAD' });
  expect([response.status, await response.text()]).toEqual([200, '']);
  expect(await (await fetch(`${url}${path}`)).json()).toMatchObject({ docs: '/docs' });
});

it.each([
  ['Codex', '/models?client_version=0.150.0', () => ({ authorization: `Bearer ${key}` })],
  ['Claude Code', '/models?limit=1000', () => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' })],
] as const)('%s lists the models: GET %s', async (_name, path, headers) => {
  const response = await fetch(`${url}/api/v1${path}`, { headers: headers() });
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ object: 'list', data: expect.any(Array) as unknown[] });
});

it.each(['/messages?beta=true', '/messages/count_tokens?beta=true'])(
  'the beta of Anthropic is a route like any other: POST %s',
  async (path) => {
    const response = await fetch(`${url}/api/v1${path}`, {
      method: 'POST',
      headers: {
        'x-api-key': key,
        'anthropic-version': '2023-06-01',
        'anthropic-beta': 'fine-grained-tool-streaming-2025-05-14',
      },
      body: JSON.stringify({ model: 'none', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] }),
    });
    expect(await response.json()).toMatchObject({
      type: 'error',
      error: { type: 'not_found_error', message: expect.stringContaining("The model 'none' does not exist") as string },
      request_id: response.headers.get('request-id'),
    });
  },
);

it('the clients of Anthropic come with Bearer too, as ANTHROPIC_AUTH_TOKEN makes them', async () => {
  const anthropic = new Anthropic({ authToken: key, apiKey: null, baseURL: `${url}/api`, maxRetries: 0 });
  const models = await anthropic.models.list();
  expect(models.has_more).toBe(false);
});
