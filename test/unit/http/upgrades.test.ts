import { once } from 'node:events';
import { createServer, request as httpRequest, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { drain } from '../../../src/http/server/listen.ts';
import { isWebSocket, serveUpgrades, upgradeOf } from '../../../src/http/interface/upgrades.ts';
import { forwardUpgrade, type ForwardDeps } from '../../../src/ports/forward.ts';
import { OpenStreams } from '../../../src/ports/open-streams.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { accessWhile } from '../../support/access.ts';
import { waitFor } from '../../support/wait-for.ts';

const UPGRADE = 'GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';

let server: Server;
let clients: Socket[] = [];

afterEach(async () => {
  for (const client of clients) client.destroy();
  clients = [];
  await new Promise((resolve) => server.close(resolve));
});

async function serve(app: RequestListener): Promise<() => void> {
  server = createServer({ shouldUpgradeCallback: isWebSocket }, app);
  const cut = serveUpgrades(server, app);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return cut;
}

function connections(): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)));
  });
}

/** A client that does not close its side when the server does. */
async function ask(): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => undefined);
  clients.push(socket);
  await once(socket, 'connect');
  socket.write(UPGRADE);
  return socket;
}

it.each<[string, (socket: Socket) => void]>([
  ['never closes', () => undefined],
  ['closes its side', (socket) => socket.end()],
  ['goes on to send', (socket) => socket.write('x')],
  ['sends more and closes its side', (socket) => socket.end('x')],
])('a refused client that %s has its answer and no connection', async (_name, then) => {
  await serve((_request, response) => {
    response.writeHead(401, { 'content-length': 2 });
    response.end('no');
  });
  const socket = await ask();
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(String(answer)).toMatch(/^HTTP\/1\.1 401 [^]*\r\n\r\nno$/);
  then(socket);
  await waitFor('the connection to go', async () => (await connections()) === 0);
});

it.each(['content-length: 5\r\n\r\n', 'content-length: 5\r\n\r\nhello', 'transfer-encoding: chunked\r\n\r\n'])(
  'a switch with a body is answered as a plain request: %j',
  async (rest) => {
    await serve((_request, response) => void response.writeHead(401, { 'content-length': 2 }).end('no'));
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    clients.push(socket);
    socket.write(UPGRADE.slice(0, -2) + rest);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).toContain('401');
  },
);

it.each(['at once', 'never'])(
  'a switch behind a request that is answered %s ends the connection alone',
  async (when) => {
    await serve((_request, response) => void (when === 'at once' && response.end('yes')));
    const { port } = server.address() as AddressInfo;
    const socket = connect(port, '127.0.0.1');
    clients.push(socket);
    const closed = once(socket, 'close');
    socket.on('error', () => undefined).write(`GET / HTTP/1.1\r\nhost: x\r\n\r\n${UPGRADE}`);
    socket.resume();
    await closed;
    await waitFor('the connection to go', async () => (await connections()) === 0);
  },
);

it('a client whose program in the instance refuses has the answer and no connection', async () => {
  const program = createServer((_request, response) => response.writeHead(403).end('not here')).listen(0, '127.0.0.1');
  await once(program, 'listening');
  const { port } = program.address() as AddressInfo;
  const upstream: ForwardDeps['upstream'] = {
    begin: (_target, call) => {
      const stream = connect(port, '127.0.0.1');
      const request = httpRequest({ ...call, createConnection: () => stream });
      return Promise.resolve({ request, stream, isReused: false });
    },
  };
  const deps = { upstream, streams: new OpenStreams(accessWhile().access), activity: { began: () => () => undefined } };
  const target = { namespace: 'a', instance: 'i', pod: 'i-1', podUid: 'u', port, address: undefined, jupyter: false };
  const sender = { address: '127.0.0.1', protocol: 'http' } as const;
  const ended = Promise.withResolvers<void>();
  await serve((request, response) => {
    const upgrade = upgradeOf(request);
    if (upgrade === undefined) throw new Error('The request does not ask to switch.');
    const incoming = {
      request,
      target,
      user: { keyId: 'k', namespace: 'a' },
      path: '/',
      routing: { kind: 'host' },
      sender,
    } as const;
    forwardUpgrade(deps, incoming, { ...upgrade, response }).then(ended.resolve, ended.reject);
  });
  const answer = (await ask()).setEncoding('utf8');
  let got = '';
  answer.on('data', (chunk: string) => (got += chunk));
  await ended.promise;
  await waitFor('the answer', () => got.includes('not here'));
  expect(got).toMatch(/^HTTP\/1\.1 403 /);
  await waitFor('the connection to go', async () => (await connections()) === 0);
  await new Promise((resolve) => program.close(resolve));
});

it('a client that is still connected at the deadline is cut', async () => {
  const asked = Promise.withResolvers<void>();
  const cutUpgraded = await serve(() => asked.resolve());
  const closed = once((await ask()).resume(), 'end');
  await asked.promise;
  const clock = fakeClock();
  const endCalls = vi.fn();
  const drained = drain(server, clock, { lastAnswersMs: 0, endCalls, cutUpgraded });
  await clock.advance(23_000);
  expect(endCalls).not.toHaveBeenCalled();
  await clock.advance(1000);
  expect(endCalls).toHaveBeenCalledOnce();
  expect(await connections()).toBe(1);
  await clock.advance(1000);
  await Promise.all([drained, closed]);
});
