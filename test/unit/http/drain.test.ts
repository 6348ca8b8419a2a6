import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { Agent, fetch } from 'undici';
import { expect, test } from 'vitest';
import { drain } from '../../../src/http/server/listen.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { startLoneApi } from '../../support/http/lone-api.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { gatewayOn } from '../../support/model-gateway.ts';
import { startEngine } from '../../support/scripted-engine.ts';
import { waitFor } from '../../support/wait-for.ts';

async function replica(): Promise<{ server: Server; port: number }> {
  const server = createServer({ keepAliveTimeout: 65_000 }, (_, response) => {
    setImmediate(() => response.end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

/** A client that calls all the time over one keep-alive connection. */
function startClient(portOf: () => number) {
  const dispatcher = new Agent({
    connections: 1,
    connect: (_, callback) => {
      const socket = connect(portOf(), '127.0.0.1');
      const fail = (error: Error): void => callback(error, null);
      socket.once('error', fail);
      // From here on undici handles errors. A second callback would open a second connection, which nothing closes.
      socket.once('connect', () => callback(null, socket.off('error', fail)));
    },
  });
  const counts = { calls: 0, failures: 0, over: false };
  let waiting: { calls: number; reached: () => void } | undefined;
  async function run(): Promise<void> {
    while (!counts.over) {
      await fetch('http://api/', { dispatcher })
        .then((response) => response.text())
        .catch(() => (counts.failures += 1));
      counts.calls += 1;
      if (waiting !== undefined && counts.calls >= waiting.calls) waiting.reached();
    }
    await dispatcher.close();
  }
  const ended = run();
  return {
    counts,
    /** Resolves after two more calls. */
    twoMore: () => new Promise<void>((reached) => (waiting = { calls: counts.calls + 2, reached })),
    async stop() {
      counts.over = true;
      await ended;
    },
  };
}

// Forty clients without a pause take long on a busy machine.
test('no call fails while one replica ends and another one takes over', { timeout: 60_000 }, async () => {
  const [first, second] = [await replica(), await replica()];
  let { port } = first;
  const clients = Array.from({ length: 40 }, () => startClient(() => port));
  const allCall = () => Promise.all(clients.map((client) => client.twoMore()));
  await allCall();
  // The endpoints change before a pod is told to end.
  port = second.port;
  const asked: number[] = [];
  const clock = systemClock();
  const sleep = async (ms: number): Promise<void> => {
    asked.push(ms);
    await allCall();
  };
  const endCalls = () => undefined;
  const cutUpgraded = () => undefined;
  await drain(first.server, { ...clock, sleep }, { lastAnswersMs: 1000, endCalls, cutUpgraded });
  await allCall();
  await Promise.all(clients.map((client) => client.stop()));
  await drain(second.server, clock, { lastAnswersMs: 0, endCalls, cutUpgraded });
  expect(clients.map(({ counts }) => counts.failures).reduce((sum, count) => sum + count)).toBe(0);
  expect(asked).toEqual([1000]);
});

test('a stream of a model that outlasts the time of a replica ends with one error, and then the replica', async () => {
  const engine = await startEngine({ engine: 'vllm', models: ['tiny'] });
  engine.behave({ kind: 'stall', reply: { text: 'A longer answer than one token' }, events: 3 });
  const cluster = new ModelCluster();
  cluster.serve({ name: 'llm', ports: [engine.port] });
  const clock = fakeClock();
  await using stack = new AsyncDisposableStack();
  const api = await startLoneApi({
    tenants: ['a'],
    keys: { a: { scopes: ['models'] } },
    clock,
    models: (parts) => {
      const gateway = gatewayOn(cluster, { ...parts, clock: systemClock() });
      stack.defer(() => gateway.stop());
      return gateway;
    },
  });
  stack.defer(() => engine.close());
  const base = `http://127.0.0.1:${api.address.port}/api/v1`;
  const headers = { authorization: 'Bearer a', 'content-type': 'application/json' };
  await waitFor('the model', async () =>
    (await (await fetch(`${base}/models`, { headers })).text()).includes('"ready_endpoints":1'),
  );
  const body = JSON.stringify({ model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hi' }] });
  const answer = await fetch(`${base}/chat/completions`, { method: 'POST', headers, body });
  const text = answer.text();
  const closed = api.close();
  await clock.advance(24_000);
  expect(await text).toMatch(
    /^data: \{"id".*data: \{"error":\{"message":"Service unavailable: this replica of the gateway stops[^\n]*\n\n/s,
  );
  await clock.advance(1000);
  await closed;
});
