import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { forwardHttp } from '../../../src/ports/forward.ts';
import { OpenStreams } from '../../../src/ports/open-streams.ts';
import { Upstream } from '../../../src/ports/upstream.ts';
import { type FakeClock, fakeClock } from '../../support/fake-clock.ts';
import { accessWhile } from '../../support/access.ts';
import { waitFor } from '../../support/wait-for.ts';

/** Users who have lost access. */
const lost = new Set<string>();
const access = accessWhile(({ keyId }) => (lost.has(keyId) ? 'It is over.' : undefined));
let clock: FakeClock;
let upstream: Upstream;
/** The program in the pod, and its connections in their order. */
let program: Server;
let sockets: Socket[];
/** What a new connection to the program goes through before a request has it. */
let prepare: (socket: Socket) => Promise<unknown>;
let onRequest: (request: IncomingMessage, response: ServerResponse) => void;
/** What clients call. */
let front: Server;

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

beforeEach(async () => {
  clock = fakeClock();
  sockets = [];
  prepare = () => Promise.resolve();
  onRequest = (request, response) => response.end(`${request.method} on ${sockets.indexOf(request.socket)}`);
  program = createServer({ keepAliveTimeout: 60_000 }, (request, response) => onRequest(request, response));
  program.on('connection', (socket) => sockets.push(socket));
  const port = await listening(program);
  lost.clear();
  upstream = new Upstream({
    clock,
    access: access.access,
    connect: async (target) => {
      const socket = connect(target.port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      await prepare(socket);
      return socket;
    },
  });
  const deps = { upstream, streams: new OpenStreams(access.access), activity: { began: () => () => undefined } };
  const target = { namespace: 'a', instance: 'i', pod: 'i-1', podUid: 'u', port, address: undefined, jupyter: false };
  const sender = { address: '127.0.0.1', protocol: 'http' } as const;
  front = createServer((request, response) => {
    const user = { keyId: String(request.headers['x-user'] ?? 'ann'), namespace: 'a' };
    const asked = { request, target, user, path: request.url ?? '/', routing: { kind: 'host' }, sender } as const;
    forwardHttp(deps, asked, response).catch((error: unknown) => response.writeHead(502).end(String(error)));
  });
  await listening(front);
});
afterEach(() => {
  upstream.close();
  for (const server of [front, program]) {
    server.close();
    server.closeAllConnections();
  }
});

async function ask(init: RequestInit = {}): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${(front.address() as AddressInfo).port}/`, init);
  return await answer.text();
}

const as = (user: string): RequestInit => ({ headers: { 'x-user': user } });

it('requests of one user to one port go over one connection, one after the other', async () => {
  expect([await ask(), await ask(), await ask()]).toEqual(['GET on 0', 'GET on 0', 'GET on 0']);
});

it('requests at once have a connection each, and more do not wait than a browser opens', async () => {
  let arrived = 0;
  const all = Promise.withResolvers<void>();
  onRequest = (_request, response) => {
    arrived += 1;
    if (arrived === 8) all.resolve();
    void all.promise.then(() => response.end('yes'));
  };
  await Promise.all(Array.from({ length: 8 }, () => ask()));
  expect(sockets).toHaveLength(8);
  await waitFor('two to end', () => sockets.filter(({ destroyed }) => destroyed).length === 2);
});

it('another user gets another connection', async () => {
  expect([await ask(as('ann')), await ask(as('bob')), await ask(as('ann'))]).toEqual([
    'GET on 0',
    'GET on 1',
    'GET on 0',
  ]);
});

it('a request that may do something has a connection of its own, and leaves none', async () => {
  expect(await ask()).toBe('GET on 0');
  expect(await ask({ method: 'POST', body: 'x' })).toBe('POST on 1');
  expect(await ask()).toBe('GET on 0');
  await waitFor('the end of the other', () => sockets[1]?.destroyed);
});

it('a connection that the pod closes under a request costs another one, and no error', async () => {
  expect(await ask()).toBe('GET on 0');
  onRequest = (request, response) => {
    if (sockets.indexOf(request.socket) === 0) request.socket.destroy();
    else response.end('the second');
  };
  expect(await ask()).toBe('the second');
});

it('a connection that is over before the request has it is an error at once, in the words of the kubelet', async () => {
  prepare = async (socket) => {
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.destroy(new Error('connection refused'));
    await closed;
  };
  expect(await ask()).toMatch(/^PortError: Port \d+ of the instance does not answer: connection refused$/);
});

it('an answer that ends its connection leaves none', async () => {
  onRequest = (request, response) =>
    response.writeHead(200, { connection: 'close' }).end(`on ${sockets.indexOf(request.socket)}`);
  expect([await ask(), await ask()]).toEqual(['on 0', 'on 1']);
});

it('a connection on which the pod speaks unasked answers nobody', async () => {
  expect(await ask()).toBe('GET on 0');
  await waitFor('the connection to wait', () => clock.pending === 1);
  sockets[0]?.write('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlies');
  await waitFor('its end', () => sockets[0]?.destroyed);
  expect(await ask()).toBe('GET on 1');
});

it('a connection waits four seconds, and no longer than its user may use the port', async () => {
  await ask(as('ann'));
  await ask(as('bob'));
  await waitFor('both to wait', () => clock.pending === 2);
  lost.add('bob');
  await access.recheck();
  await waitFor('the end of one', () => sockets[1]?.destroyed);
  expect(sockets[0]?.destroyed).toBe(false);
  await clock.advance(4000);
  await waitFor('the end of the other', () => sockets[0]?.destroyed);
});

it('the head of an answer is there before its body begins', async () => {
  onRequest = (_request, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  const over = new AbortController();
  const answer = await fetch(`http://127.0.0.1:${(front.address() as AddressInfo).port}/`, { signal: over.signal });
  expect(answer.headers.get('content-type')).toBe('text/event-stream');
  over.abort();
  await waitFor('the end of the connection to the pod', () => sockets[0]?.destroyed);
});

it('an answer that breaks off does so for the client too', async () => {
  onRequest = (request, response) =>
    void response.writeHead(200, { 'content-length': 9 }).write('four', () => request.socket.destroy());
  await expect(ask()).rejects.toThrow('terminated');
});

it('an answer that cannot be passed on is an error, and leaves no connection that nobody counts', async () => {
  onRequest = (request) => request.socket.write('HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\nno');
  expect(await ask()).toContain('does not answer');
  await waitFor('the end of the connection', () => sockets[0]?.destroyed);
});
