import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ModelGateway } from '../../../src/gateway/gateway.ts';
import { type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { gatewayOn } from '../../support/model-gateway.ts';
import { startEngine, type ScriptedEngine } from '../../support/scripted-engine.ts';
import { waitFor } from '../../support/wait-for.ts';

// Model calls are served without Express where that is safe. Two servers with the same keys and models get the same
// requests, and one of them sends everything through Express: answers, log lines and metrics must be the same.

interface Side {
  api: LoneApi;
  gateway: ModelGateway;
  lines: string[];
  /** Requests that were served without Express. */
  direct: number;
}

let engine: ScriptedEngine;
let fast: Side;
let plain: Side;

async function start(cluster: ModelCluster, isDirect: boolean): Promise<Side> {
  const lines: string[] = [];
  const side: Partial<Side> & Pick<Side, 'direct'> = { lines, direct: 0 };
  side.api = await startLoneApi({
    tenants: ['models', 'compute', 'slow'],
    keys: { models: { scopes: ['models'] }, slow: { scopes: ['models'], limits: { requestsPerMinute: 1 } } },
    log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }),
    portHost: 'port.example',
    models: (process) => {
      const gateway = gatewayOn(cluster, process);
      side.gateway = gateway;
      const calls = [...gateway.calls].map(([path, serve]): [string, typeof serve] => [
        path,
        (request, response) => {
          side.direct += 1;
          return serve(request, response);
        },
      ]);
      return { router: gateway.router, calls: new Map(isDirect ? calls : []), endCalls: gateway.endCalls };
    },
  });
  return side as Side;
}

beforeAll(async () => {
  engine = await startEngine({ engine: 'vllm', models: ['tiny'], countTokens: true });
  const cluster = new ModelCluster();
  cluster.serve({ name: 'tiny-server', ports: [engine.port] });
  [fast, plain] = [await start(cluster, true), await start(cluster, false)];
  for (const { api } of [fast, plain])
    await waitFor('the engine to be ready', async () => {
      const headers = { authorization: 'Bearer models' };
      const answer = await fetch(`http://127.0.0.1:${api.address.port}/api/v1/models`, { headers });
      return (await answer.text()).includes('"ready_endpoints":1');
    });
});

afterAll(async () => {
  for (const { api, gateway } of [fast, plain]) {
    await api.close();
    await gateway.stop();
  }
  await engine.close();
});

const MESSAGES = [{ role: 'user', content: 'Say hello' }];
const BODIES = {
  chat: { model: 'tiny', messages: MESSAGES },
  stream: { model: 'tiny', messages: MESSAGES, stream: true },
  messages: { model: 'tiny', messages: MESSAGES, max_tokens: 50 },
  responses: { model: 'tiny', input: 'Say hello', store: false },
  embeddings: { model: 'tiny', input: 'Say hello' },
  unknown: { model: 'huge', messages: MESSAGES },
};

interface Sent {
  line?: string;
  path?: string;
  host?: string | undefined;
  key?: string;
  headers?: readonly string[];
  body?: keyof typeof BODIES;
  text?: string;
}

function bytesOf({ path = '/api/v1/chat/completions', line = `POST ${path} HTTP/1.1`, ...sent }: Sent): string {
  const { host = 'x', key = 'models', headers = [], body = 'chat', text = JSON.stringify(BODIES[body]) } = sent;
  const framing = headers.some((header) => header.startsWith('content-length'))
    ? []
    : [`content-length: ${text.length}`];
  const own = [host === '' ? '' : `host: ${host}`, key === '' ? '' : `authorization: Bearer ${key}`].filter(Boolean);
  const all = [line, ...own, 'x-request-id: test-1', 'content-type: application/json', ...framing, ...headers];
  return `${[...all, 'connection: close'].join('\r\n')}\r\n\r\n${text}`;
}

/** Call ids and times differ from call to call. */
function same(text: string): string {
  return text
    .replaceAll(/\r\nDate: [^\r]*/g, '')
    .replaceAll(/(ratelimit[a-z-]*-reset(?:-requests|-tokens)?): [^\r]*/g, '$1: SOON')
    .replaceAll(/\r\nretry-after: \d+/g, '\r\nretry-after: SOON')
    .replaceAll(/[0-9a-f]{32}/g, 'ID')
    .replaceAll(/"created(_at)?":\d+/g, '"created":0')
    .replaceAll(/"completed_at":\d+/g, '"completed_at":0');
}

/** Counts of calls, without what time they took. */
async function countsOf({ api }: Side): Promise<string[]> {
  const lines = (await api.registry.metrics()).split('\n');
  const isCount = /^(?:berth|gen_ai)_\w+(?:_total|_count|_under_way|_in_flight)\b/;
  // How often the test asked for the models does not matter.
  return lines.filter((line) => isCount.test(line) && !line.includes('route="/models"')).toSorted();
}

async function ask(side: Side, sent: Sent) {
  const { api, lines } = side;
  const before = { lines: lines.length, direct: side.direct };
  const client = api.send(bytesOf(sent));
  await waitFor('the end of the connection', () => client.closed);
  // The line and the counts come when the connection has closed.
  await waitFor('the log line', () => lines.length > before.lines);
  const fields = lines.slice(before.lines).map((line) => {
    const { time, pid, hostname, ms, ...rest } = JSON.parse(line) as Record<string, unknown>;
    expect([typeof time, typeof pid, typeof hostname, typeof ms]).toEqual(['number', 'number', 'string', 'number']);
    return rest;
  });
  return { answer: same(client.got), fields, counts: await countsOf(side), direct: side.direct - before.direct };
}

async function compare(sent: Sent, status: number, isDirect: boolean): Promise<void> {
  const [one, other] = [await ask(fast, sent), await ask(plain, sent)];
  expect(one.answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect({ ...one, direct: 0 }).toEqual(other);
  expect(one.direct).toBe(isDirect ? 1 : 0);
}

it.each<[string, Sent, number]>([
  ['a chat completion', {}, 200],
  ['at the doubled base path', { path: '/api/v1/api/v1/chat/completions' }, 200],
  ['a stream', { body: 'stream' }, 200],
  ['a message, with a query', { path: '/api/v1/messages?beta=true', body: 'messages' }, 200],
  ['a message at the doubled base path', { path: '/api/v1/api/v1/messages?a=/b?c#d', body: 'messages' }, 200],
  ['with one more /v1', { path: '/api/v1/v1/chat/completions' }, 200],
  ['a message below the base of OpenAI', { path: '/api/v1/v1/messages', body: 'messages' }, 200],
  ['a double slash', { path: '/api/v1//chat/completions' }, 200],
  ['a double slash in front', { path: '//api/v1/chat/completions' }, 200],
  ['the key header of Azure', { key: '', headers: ['api-key: models'] }, 200],
  ['a message with its own key header', { path: '/api/v1/messages', key: '', headers: ['x-api-key: models'] }, 400],
  ['a response', { path: '/api/v1/responses', body: 'responses' }, 200],
  ['a count of tokens', { path: '/api/v1/messages/count_tokens', body: 'messages' }, 200],
  ['input tokens', { path: '/api/v1/responses/input_tokens', body: 'responses' }, 200],
  ['embeddings of a model without', { path: '/api/v1/embeddings', body: 'embeddings' }, 400],
  ['a page of another origin', { headers: ['origin: https://page.example'] }, 200],
  ['HTTP/1.0', { line: 'POST /api/v1/chat/completions HTTP/1.0' }, 200],
  ['HTTP/1.0 without Host', { line: 'POST /api/v1/chat/completions HTTP/1.0', host: '' }, 200],
  ['a key without the scope', { key: 'compute' }, 403],
  ['a model that is not there', { body: 'unknown' }, 404],
  ['no JSON', { text: '{"model": ' }, 400],
  ['a body that is announced as too long', { headers: ['content-length: 99999999'], text: '' }, 413],
  ['a compressed body', { headers: ['content-encoding: gzip'] }, 415],
  ['the call that a key may make', { key: 'slow' }, 200],
  ['and the one that it may not', { key: 'slow' }, 429],
  ['a message that it may not', { key: 'slow', path: '/api/v1/messages', body: 'messages' }, 429],
])('%s: the same without Express', (_what, sent, status) => compare(sent, status, true));

it.each<[string, Sent, number]>([
  ['no key', { key: '' }, 401],
  ['a bad key', { key: 'nobody' }, 401],
  ['a bad key of a message', { key: 'nobody', path: '/api/v1/api/v1/messages', body: 'messages' }, 401],
  ['the key in the headers of two other APIs', { key: '', headers: ['x-api-key: models', 'api-key: nobody'] }, 401],
  ['no Host', { host: '' }, 400],
  ['no Host of a message', { host: '', path: '/api/v1/messages', body: 'messages' }, 400],
])('%s: refused by the same step, before the call', (_what, sent, status) => compare(sent, status, false));

it.each<[string, Sent, number]>([
  ['GET', { line: 'GET /api/v1/chat/completions HTTP/1.1' }, 405],
  ['PUT', { line: 'PUT /api/v1/messages HTTP/1.1' }, 405],
  ['HEAD', { line: 'HEAD /api/v1/chat/completions HTTP/1.1', text: '' }, 405],
  ['OPTIONS', { line: 'OPTIONS /api/v1/responses HTTP/1.1' }, 200],
  [
    'a preflight',
    {
      line: 'OPTIONS /api/v1/chat/completions HTTP/1.1',
      key: '',
      headers: ['origin: https://page.example', 'access-control-request-method: POST'],
    },
    204,
  ],
  ['the host of a port', { host: 'port.example' }, 204],
  ['a slash at the end', { path: '/api/v1/chat/completions/' }, 200],
  ['a double slash within', { path: '/api/v1/chat//completions' }, 404],
  ['an escaped letter', { path: '/api/v1/%63hat/completions' }, 200],
  ['an escaped slash', { path: '/api/v1/chat%2Fcompletions' }, 404],
  ['an escape that is none', { path: '/api/v1/chat/completions%' }, 404],
  ['a fragment', { path: '/api/v1/messages#part', body: 'messages' }, 200],
  ['dots', { path: '/api/v1/models/../chat/completions' }, 405],
  ['capitals', { path: '/api/v1/Chat/completions' }, 200],
  ['three base paths', { path: '/api/v1/api/v1/api/v1/chat/completions' }, 404],
  ['no base path', { path: '/chat/completions' }, 404],
  ['a URL of absolute form', { path: 'http://x/api/v1/messages', body: 'messages' }, 200],
  ['what is no call', { path: '/api/v1/instances' }, 403],
])('%s: left to Express', (_what, sent, status) => compare(sent, status, false));
