import { Registry } from 'prom-client';
import { describe, expect, test } from 'vitest';
import { createClientMetrics } from '../../../src/kube/client/client-metrics.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { connectTo } from '../../../src/kube/config/connection.ts';
import {
  AlreadyExistsError,
  ConflictError,
  KubeError,
  NotFoundError,
  NotSentError,
  TimeoutError,
  TooManyRequestsError,
  TransportError,
  UnauthorizedError,
} from '../../../src/kube/errors.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NODES, type Pod, PODS } from '../../../src/kube/types.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import {
  bodyOf,
  type Handler,
  json,
  localServer,
  type LocalServerOptions,
  status,
} from '../../support/local-server.ts';
import { waitFor } from '../../support/wait-for.ts';

const POD = { metadata: { name: 'a', namespace: 'ns' } } satisfies Pod;
const REF = { namespace: 'ns', name: 'a' };

function secret() {
  return Promise.resolve({ authorization: 'Bearer s3cret' });
}

/** A client whose waits take no time and are written down. */
async function quickClient(handler: Handler, options: LocalServerOptions = {}) {
  const server = await localServer(handler, options);
  const waits: number[] = [];
  const clock = {
    ...systemClock(),
    sleep: (ms: number) => {
      waits.push(ms);
      return Promise.resolve();
    },
  };
  const client = createKubeClient(server.connection, { clock, random: () => 0 });
  return { client, waits, server, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe('retries', () => {
  test('a write whose check fails when it is about to be sent again is not sent', async () => {
    await using setup = await quickClient((_request, response) => {
      json(response, 429, status(429, 'TooManyRequests'), { 'retry-after': '3' });
    });
    const once = () => {
      let asked = 0;
      return (): void => {
        asked += 1;
        if (asked > 1) throw new NotSentError('The lease is lost.');
      };
    };
    const writes = [
      setup.client.create(PODS, POD, { check: once() }),
      setup.client.patch(PODS, REF, {}, { type: 'merge', check: once() }),
      setup.client.delete(PODS, REF, { check: once() }),
    ];
    for (const write of writes) await expect(write).rejects.toMatchObject({ message: 'The lease is lost.' });
    expect(setup.server.requests).toHaveLength(writes.length);
  });

  test('429 waits as long as the server asks, also for a create', async () => {
    await using setup = await quickClient((_request, response, attempt) => {
      if (attempt === 1) json(response, 429, status(429, 'TooManyRequests'), { 'retry-after': '3' });
      else json(response, 201, POD);
    });
    expect(await setup.client.create(PODS, POD)).toEqual(POD);
    expect(setup.waits).toEqual([3000]);
  });

  test('an API server that starts and asks for five seconds is asked each second, and for as long in all', async () => {
    await using setup = await quickClient((_request, response, attempt) => {
      if (attempt <= 8) json(response, 503, status(503, 'ServiceUnavailable'), { 'retry-after': '5' });
      else json(response, 201, POD);
    });
    expect(await setup.client.create(PODS, POD)).toEqual(POD);
    expect(setup.waits).toEqual(Array.from({ length: 8 }, () => 1000));
  });

  test('503 of a safe call is tried again with growing waits, five times at most', async () => {
    await using setup = await quickClient((_request, response) =>
      json(response, 503, status(503, 'ServiceUnavailable')),
    );
    await expect(setup.client.get(PODS, REF)).rejects.toBeInstanceOf(KubeError);
    expect(setup.waits).toEqual([100, 200, 400, 800]);
    expect(setup.server.requests).toHaveLength(5);
  });

  test('a create whose connection broke is not sent twice', async () => {
    await using setup = await quickClient((request) => void request.socket.destroy());
    await expect(setup.client.create(PODS, POD)).rejects.toBeInstanceOf(TransportError);
    expect(setup.server.requests).toHaveLength(1);
  });

  test('a create that found no server is tried again: nobody has seen it', async () => {
    const server = await localServer(() => undefined);
    await server[Symbol.asyncDispose]();
    const connection = connectTo(server.connection);
    const waits: number[] = [];
    const sleep = async (ms: number) => void waits.push(ms);
    const client = createKubeClient(connection, { clock: { ...systemClock(), sleep }, random: () => 0 });
    await expect(client.create(PODS, POD)).rejects.toMatchObject({ reason: 'ECONNREFUSED' });
    expect(waits).toEqual([100, 200, 400, 800]);
    await client.close();
  });

  test('an apply whose connection broke is sent again', async () => {
    await using setup = await quickClient((request, response, attempt) => {
      if (attempt === 1) request.socket.destroy();
      else json(response, 200, POD);
    });
    await setup.client.apply(PODS, POD, { fieldManager: 'berth' });
    expect(setup.server.requests).toHaveLength(2);
  });

  test('a merge patch with a resource version is not sent twice: the second would be a false conflict', async () => {
    await using setup = await quickClient((request) => void request.socket.destroy());
    const body = { metadata: { resourceVersion: '1', finalizers: [] } };
    await expect(setup.client.patch(PODS, REF, body, { type: 'merge' })).rejects.toBeInstanceOf(TransportError);
    expect(setup.server.requests).toHaveLength(1);
  });

  test('a wait longer than half a minute is left to the caller', async () => {
    await using setup = await quickClient((_request, response) =>
      json(response, 429, status(429, 'TooManyRequests'), { 'retry-after': '3600' }),
    );
    const error = await setup.client.get(PODS, REF).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(TooManyRequestsError);
    expect(error).toMatchObject({ retryAfterMs: 3_600_000 });
    expect(setup.waits).toEqual([]);
  });

  test('401 reads the credential anew, once', async () => {
    let token = 'old';
    const headers = (options?: { refresh: boolean }) => {
      if (options?.refresh) token = 'new';
      return Promise.resolve({ authorization: `Bearer ${token}` });
    };
    const handler: Handler = (request, response) => {
      if (request.headers.authorization === 'Bearer new') json(response, 200, POD);
      else json(response, 401, status(401, 'Unauthorized'));
    };
    await using setup = await quickClient(handler, { headers });
    expect(await setup.client.get(PODS, REF)).toEqual(POD);
    expect(setup.server.requests).toHaveLength(2);
  });

  test('a credential that stays refused is an error after two requests', async () => {
    await using setup = await quickClient((_request, response) => json(response, 401, status(401, 'Unauthorized')));
    await expect(setup.client.get(PODS, REF)).rejects.toBeInstanceOf(UnauthorizedError);
    expect(setup.server.requests).toHaveLength(2);
  });
});

describe('requests', () => {
  test('carry what each call needs', async () => {
    const seen: unknown[] = [];
    await using setup = await quickClient(async (request, response) => {
      const body = await bodyOf(request);
      seen.push([request.method, request.url, request.headers['content-type'], body === '' ? '' : JSON.parse(body)]);
      json(response, 200, POD);
    });
    const { client } = setup;
    await client.apply(PODS, POD, { fieldManager: 'berth', force: true, subresource: 'status' });
    await client.patch(PODS, REF, { a: 1 }, { type: 'merge' });
    await client.replace(PODS, POD);
    await client.delete(PODS, REF, { uid: 'u', resourceVersion: '7', gracePeriodSeconds: 1 });
    await client.raw('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: {} });
    expect(seen).toEqual([
      [
        'PATCH',
        '/api/v1/namespaces/ns/pods/a/status?fieldManager=berth&force=true',
        'application/apply-patch+yaml',
        { apiVersion: 'v1', kind: 'Pod', ...POD },
      ],
      ['PATCH', '/api/v1/namespaces/ns/pods/a', 'application/merge-patch+json', { a: 1 }],
      ['PUT', '/api/v1/namespaces/ns/pods/a', 'application/json', { apiVersion: 'v1', kind: 'Pod', ...POD }],
      [
        'DELETE',
        '/api/v1/namespaces/ns/pods/a',
        'application/json',
        {
          apiVersion: 'v1',
          kind: 'DeleteOptions',
          preconditions: { uid: 'u', resourceVersion: '7' },
          gracePeriodSeconds: 1,
        },
      ],
      ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', 'application/json', { spec: {} }],
    ]);
  });

  test('a path prefix of the server URL and encoded query values are kept', async () => {
    await using setup = await quickClient(
      (_request, response) => json(response, 200, { metadata: { resourceVersion: '5', continue: '' }, items: null }),
      { prefix: '/k8s/clusters/c-1' },
    );
    const page = await setup.client.list(NODES, { labelSelector: 'a in (b,c)', limit: 2 });
    expect(page).toEqual({ items: [], resourceVersion: '5' });
    expect(setup.server.requests).toEqual([
      'GET /k8s/clusters/c-1/api/v1/nodes?limit=2&labelSelector=a+in+%28b%2Cc%29',
    ]);
  });

  test('deletes one after the other take no connection each', async () => {
    await using setup = await quickClient(async (request, response) => {
      await bodyOf(request);
      json(response, 200, POD);
    });
    for (let count = 0; count < 10; count += 1) await setup.client.delete(PODS, REF, { uid: 'u' });
    // The pool opens a second one when the first has not quite let go of its last call.
    expect(setup.server.sockets).toBeLessThanOrEqual(2);
  });

  test('a delete of what is gone succeeds; one whose precondition fails is a conflict', async () => {
    const answers = [status(404, 'NotFound'), status(409, 'Conflict', 'the UID in the precondition does not match')];
    await using setup = await quickClient((_request, response, attempt) => {
      const answer = answers[attempt - 1];
      json(response, answer?.code ?? 500, answer);
    });
    await setup.client.delete(PODS, REF);
    await expect(setup.client.delete(PODS, REF, { uid: 'u' })).rejects.toBeInstanceOf(ConflictError);
  });

  test('errors name the call without its query or credentials', async () => {
    await using setup = await quickClient(
      (_request, response) => json(response, 404, status(404, 'NotFound', 'pods "a" not found')),
      { headers: secret },
    );
    const error = await setup.client.get(PODS, REF).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(NotFoundError);
    expect(String(error)).toBe('NotFoundError: GET /api/v1/namespaces/ns/pods/a: 404 NotFound: pods "a" not found');
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain('s3cret');
  });
});

describe('bounds', () => {
  test('an answer that never comes ends at the time limit', async () => {
    await using server = await localServer(() => undefined);
    const clock = fakeClock();
    const client = createKubeClient(server.connection, { clock });
    const outcome = client.create(PODS, POD).catch((caught: unknown) => caught);
    await waitFor('the request', () => server.requests.length === 1);
    await clock.advance(30_000);
    expect(await outcome).toBeInstanceOf(TimeoutError);
    expect(clock.pending).toBe(0);
  });

  test('an answer larger than the bound is cut off and not asked for again', async () => {
    await using setup = await quickClient((_request, response) => {
      response.writeHead(200);
      response.end('x'.repeat(9 * 1024 * 1024));
    });
    await expect(setup.client.get(PODS, REF)).rejects.toMatchObject({ reason: 'TooLarge' });
    expect(setup.server.requests).toHaveLength(1);
  });

  test('an answer that is not JSON is a broken connection', async () => {
    await using setup = await quickClient((_request, response) => void response.end('{"half":'));
    await expect(setup.client.create(PODS, POD)).rejects.toBeInstanceOf(TransportError);
  });

  test("the caller's signal ends a call with the caller's reason, while it waits for a retry too", async () => {
    await using server = await localServer((_request, response) => json(response, 503, status(503, 'Unavailable')));
    const clock = fakeClock();
    const client = createKubeClient(server.connection, { clock });
    const controller = new AbortController();
    const outcome = client.get(PODS, REF, { signal: controller.signal }).catch((caught: unknown) => caught);
    await waitFor('the wait between attempts', () => server.requests.length === 1 && clock.pending === 1);
    const reason = new Error('shutting down');
    controller.abort(reason);
    expect(await outcome).toBe(reason);
  });

  test('a create of what exists says so', async () => {
    await using setup = await quickClient((_request, response) => json(response, 409, status(409, 'AlreadyExists')));
    await expect(setup.client.create(PODS, POD)).rejects.toBeInstanceOf(AlreadyExistsError);
  });

  test('a stream may take longer than others to begin where its caller says so', async () => {
    const clock = fakeClock();
    const begin = Promise.withResolvers<void>();
    await using server = await localServer(async (_request, response) => {
      await begin.promise;
      response.end('a line');
    });
    const client = createKubeClient(server.connection, { clock });
    const usual = client.stream('/logs', {}, {}).catch((error: unknown) => error);
    const patient = client.stream('/logs', {}, { headTimeoutMs: 3_600_000 });
    await waitFor('both calls', () => server.requests.length === 2);
    await clock.advance(60_000);
    expect(await usual).toBeInstanceOf(TimeoutError);
    begin.resolve();
    expect(await (await patient).toArray()).toEqual([Buffer.from('a line')]);
    await client.close();
  });

  test('parallel calls share a bounded number of connections, and streams do not take them away', async () => {
    await using setup = await quickClient((request, response) => {
      if (request.url?.startsWith('/logs')) response.write('x');
      else setImmediate(() => json(response, 200, POD));
    });
    const stop = new AbortController();
    const streams = await Promise.all(
      Array.from({ length: 40 }, () => setup.client.stream('/logs', {}, { signal: stop.signal })),
    );
    for (const stream of streams) stream.on('error', () => undefined);
    await Promise.all(Array.from({ length: 200 }, () => setup.client.get(PODS, REF)));
    expect(setup.server.sockets).toBeLessThanOrEqual(40 + 32);
    stop.abort();
  });
});

test('requests are counted under the names that client-go dashboards know', async () => {
  await using server = await localServer((_request, response, attempt) =>
    attempt === 1 ? json(response, 200, POD) : json(response, 404, status(404, 'NotFound')),
  );
  const registry = new Registry();
  const metrics = createClientMetrics(registry, 'api.example');
  const client = createKubeClient(server.connection, { clock: systemClock(), metrics });
  await client.get(PODS, REF);
  await client.get(PODS, REF).catch(() => undefined);
  const text = await registry.metrics();
  expect(text).toContain('rest_client_requests_total{code="200",method="GET",host="api.example"} 1');
  expect(text).toContain('rest_client_requests_total{code="404",method="GET",host="api.example"} 1');
  expect(text).toContain('rest_client_request_duration_seconds_count{verb="GET",host="api.example"} 2');
});
