import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ModelGateway } from '../../../src/gateway/gateway.ts';
import { openApiDocument } from '../../../src/http/server/openapi/document.ts';
import { isKnown, methodsAt } from '../../../src/http/server/methods.ts';
import { allowOf } from '../../../src/lib/allow.ts';
import { MODEL_ENDPOINTS, type ModelEndpoint } from '../../../src/wire/model-endpoints.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { gatewayOn } from '../../support/model-gateway.ts';
import { type ScriptedEngine, startEngine } from '../../support/scripted-engine.ts';
import { waitFor } from '../../support/wait-for.ts';

// Rows of endpoints that Berth does not have. All that is expected of the others is expected of them: no other list names
// an endpoint.
vi.mock(import('../../../src/wire/model-endpoints.ts'), async (importActual) => {
  const actual = await importActual();
  const success = { schema: 'ModelResponse', description: 'What was found.' } as const;
  const more: ModelEndpoint[] = [
    {
      method: 'post',
      path: '/moderations',
      id: 'createModeration',
      errors: 'openai',
      call: { plain: 'moderations', upstream: ['/v1/moderations'], operation: 'moderation' },
      openApi: { summary: "OpenAI's Moderations API", request: 'WholeModelRequest', success },
    },
    {
      method: 'post',
      path: '/tokens/count',
      id: 'countTokensElsewhere',
      errors: 'anthropic',
      call: { counts: 'messages' },
    },
  ];
  return { ...actual, MODEL_ENDPOINTS: [...actual.MODEL_ENDPOINTS, ...more] } as unknown as typeof actual;
});

const ROWS: readonly ModelEndpoint[] = MODEL_ENDPOINTS;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];
const KEY = { authorization: 'Bearer models' };
const NAMED = ROWS.map((row) => [`${row.method.toUpperCase()} ${row.path}`, row] as const);
const CALLS = ROWS.filter(({ call }) => call !== undefined);

/** A path that a client may send. */
function pathAt({ path }: ModelEndpoint): string {
  return path.replace('{id...}', 'org/name').replace('{id}', 'resp_1');
}

function methodsOf({ path }: ModelEndpoint): ModelEndpoint['method'][] {
  return ROWS.filter((row) => row.path === path).map(({ method }) => method);
}

let engine: ScriptedEngine;
let api: LoneApi;
let gateway: ModelGateway;

beforeAll(async () => {
  engine = await startEngine({
    models: ['tiny'],
    plain: { '/v1/moderations': { contentType: 'application/json', body: '{"results":[]}' } },
  });
  const cluster = new ModelCluster();
  cluster.serve({ name: 'tiny-server', ports: [engine.port] });
  api = await startLoneApi({
    tenants: ['models'],
    keys: { models: { scopes: ['models'] } },
    log: pino({ level: 'silent' }),
    models: (process) => (gateway = gatewayOn(cluster, process)),
  });
  await waitFor('the engine to be ready', async () => (await (await ask('GET', '/models')).text()).includes('"tiny"'));
});

afterAll(async () => {
  await api.close();
  await gateway.stop();
  await engine.close();
});

function ask(method: string, path: string, headers: Record<string, string> = KEY, body?: string): Promise<Response> {
  const url = `http://127.0.0.1:${api.address.port}/api/v1${path}`;
  return fetch(url, { method, headers, ...(body !== undefined && { body }) });
}

/** The fields of an error in the shape of its clients. */
function fieldsOf({ errors }: ModelEndpoint): object {
  const message: unknown = expect.any(String);
  const type: unknown = expect.any(String);
  if (errors === 'anthropic') return { type: 'error', error: { type, message }, request_id: expect.any(String) };
  return { error: { message, type, param: null, code: expect.any(String) } };
}

describe('the table of model endpoints', () => {
  it('has each endpoint and each id once', () => {
    expect(new Set(NAMED.map(([name]) => name)).size).toBe(ROWS.length);
    expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length);
  });

  it('says of all paths with the same first part who calls them', () => {
    for (const rows of Map.groupBy(ROWS, ({ path }) => path.split('/', 2)[1]).values())
      expect(new Set(rows.map(({ errors }) => errors)).size).toBe(1);
  });

  it('has calls at paths without parameters, where one look-up finds what serves them', () => {
    expect(CALLS.map(({ method, path }) => [method, path.includes('{')])).toEqual(CALLS.map(() => ['post', false]));
    expect([...gateway.calls.keys()].toSorted()).toEqual(CALLS.map(({ path }) => path).toSorted());
  });
});

describe.each(NAMED)('%s', (_name, row) => {
  const path = pathAt(row);
  const allow = allowOf(methodsOf(row));

  it('is known with its methods, to OPTIONS and to preflights', async () => {
    expect([isKnown(path), methodsAt(path)]).toEqual([true, methodsOf(row)]);
    const asked = await ask('OPTIONS', path);
    expect([asked.status, asked.headers.get('allow')]).toEqual([200, allow]);
    const preflight = await ask('OPTIONS', path, {
      origin: 'https://a.example',
      'access-control-request-method': 'POST',
    });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
  });

  it('refuses other methods, in the shape of its clients', async () => {
    const others = METHODS.filter((method) => !allow.split(', ').includes(method));
    expect(others).not.toEqual([]);
    for (const method of others) {
      const answer = await ask(method, path);
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, allow]);
      const text = await answer.text();
      if (method !== 'HEAD') expect(JSON.parse(text)).toEqual(fieldsOf(row));
    }
  });

  it('takes the key from the headers of its clients', async () => {
    const refusal = { error: { message: 'Invalid API key.', type: 'invalid_request_error', code: 401 } };
    const wrong: Record<string, string>[] = [{}, { authorization: 'Bearer wrong', 'x-api-key': 'models' }];
    for (const headers of wrong) {
      const answer = await ask(row.method.toUpperCase(), path, headers);
      expect([answer.status, await answer.json()]).toEqual([401, refusal]);
    }
    for (const name of ['x-api-key', 'api-key'])
      expect((await ask(row.method.toUpperCase(), path, { [name]: 'models' })).status).not.toBe(401);
  });

  it('is served', async () => {
    const before = await ask(row.method.toUpperCase(), path, KEY, row.method === 'get' ? undefined : '{');
    const text = await before.text();
    const { error } = JSON.parse(text) as { error?: { code?: string } };
    if (row.call === undefined) {
      const code =
        path === '/models' ? undefined : path.startsWith('/models') ? 'model_not_found' : 'response_not_found';
      expect(error?.code).toBe(code);
    } else {
      expect([before.status, JSON.parse(text)]).toEqual([400, fieldsOf(row)]);
    }
  });

  it('is in the document as the table says', () => {
    const { paths } = openApiDocument() as { paths: Record<string, Record<string, unknown>> };
    const operation = paths[row.path]?.[row.method];
    if (row.openApi === undefined) return expect(operation).toBeUndefined();
    const schema = row.errors === 'anthropic' ? 'AnthropicError' : 'OpenAIError';
    expect(operation).toMatchObject({
      operationId: row.id,
      tags: ['Models'],
      summary: row.openApi.summary,
      responses: {
        default: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } } },
      },
    });
    const { security } = operation as { security?: unknown };
    expect(security).toEqual([{ key: [] }, { anthropicKey: [] }, { azureKey: [] }]);
    const media = row.call !== undefined && 'form' in row.call ? 'multipart/form-data' : 'application/json';
    if (row.openApi.request !== undefined)
      expect(operation).toHaveProperty(
        ['requestBody', 'content', media, 'schema', '$ref'],
        `#/components/schemas/${row.openApi.request}`,
      );
  });
});

it('brings calls of a new row to the servers that have its route, and lists it', async () => {
  const answer = await ask('POST', '/moderations', KEY, '{"model":"tiny","input":"x"}');
  expect([answer.status, await answer.json()]).toEqual([200, { results: [] }]);
  const { data } = (await (await ask('GET', '/models')).json()) as { data: { endpoints: string[] }[] };
  expect(data.map(({ endpoints }) => endpoints)).toEqual([['/moderations']]);
});
