import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { TargetRules } from '../../../src/notifier/addresses.ts';
import { Targets } from '../../../src/notifier/target.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { bodyOf } from '../../support/local-server.ts';
import { waitFor } from '../../support/wait-for.ts';

const LOOPBACK = [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' as const }];
const open: (Server | TcpServer)[] = [];
afterEach(() => {
  for (const server of open.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections();
    server.close();
  }
});

async function listening(server: Server | TcpServer): Promise<number> {
  open.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** The URL of a target on this machine. */
async function target(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listening(createServer(listener))}/hook?x=1`;
}

function world({ networks = LOOPBACK, resolve = () => Promise.resolve<readonly string[]>(['127.0.0.1']) } = {}) {
  const clock = fakeClock();
  const targets = new Targets({ rules: new TargetRules(networks), resolve, clock });
  const never = new AbortController().signal;
  const deliver = (url: string, signal = never) =>
    targets.deliver(
      { url, headers: { 'content-type': 'application/json', 'webhook-id': 'one' }, body: '{"ü":1}' },
      signal,
    );
  return { clock, deliver };
}

describe('a delivery', () => {
  it('is a POST of the body with its headers', async () => {
    const seen: unknown[] = [];
    const url = await target((request, response) => {
      const { method, headers } = request;
      void bodyOf(request).then((body) => {
        seen.push(method, request.url, headers['webhook-id'], headers['content-length'], body);
        return response.writeHead(204).end();
      });
    });
    expect(await world().deliver(url)).toEqual({ kind: 'delivered' });
    expect(seen).toEqual(['POST', '/hook?x=1', 'one', '8', '{"ü":1}']);
  });

  it('to a target that redirects goes no further', async () => {
    let reached = false;
    const inner = await target((_request, response) => {
      reached = true;
      response.end();
    });
    const url = await target((_request, response) => response.writeHead(307, { location: inner }).end());
    expect(await world().deliver(url)).toEqual({ kind: 'refused', status: 307, retryAfterMs: undefined });
    expect(reached).toBe(false);
  });

  it('tells how long a target asks to wait', async () => {
    const url = await target((_request, response) => response.writeHead(503, { 'retry-after': '120' }).end());
    expect(await world().deliver(url)).toEqual({ kind: 'refused', status: 503, retryAfterMs: 120_000 });
  });

  it('to a target that never answers ends after ten seconds', async () => {
    let isAsked = false;
    const url = await target(() => (isAsked = true));
    const { clock, deliver } = world();
    const outcome = deliver(url);
    await waitFor('the request', () => isAsked);
    await clock.advance(10_000);
    expect(await outcome).toEqual({ kind: 'unreachable', why: 'timeout' });
  });

  it('to a target that writes its headers for ever ends after ten seconds', async () => {
    let isAsked = false;
    const port = await listening(
      createTcpServer((socket) => {
        socket.on('error', () => undefined).on('data', () => (isAsked = true));
        const more = (): void => void socket.write('x-more: 1\r\n');
        socket.write('HTTP/1.1 200 OK\r\n', more);
      }),
    );
    const { clock, deliver } = world();
    const outcome = deliver(`http://127.0.0.1:${port}/`);
    await waitFor('the request', () => isAsked);
    await clock.advance(10_000);
    expect(await outcome).toEqual({ kind: 'unreachable', why: 'timeout' });
  });

  it('to a target whose answer comes drop by drop ends after ten seconds, and was taken', async () => {
    let isAsked = false;
    const url = await target((_request, response) => {
      response.writeHead(200).write('drop');
      isAsked = true;
    });
    const { clock, deliver } = world();
    let isOver = false;
    const outcome = deliver(url).finally(() => (isOver = true));
    await waitFor('the request', () => isAsked);
    await clock.advance(9_999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    expect(await outcome).toEqual({ kind: 'delivered' });
  });

  it('reads little of a gigabyte', async () => {
    let sent = 0;
    const chunk = Buffer.alloc(64 * 1024);
    const ended = Promise.withResolvers<void>();
    const url = await target((_request, response) => {
      response.writeHead(200).on('close', () => ended.resolve());
      const more = (): void => {
        while (!response.destroyed && sent < 2 ** 30) {
          sent += chunk.length;
          if (!response.write(chunk)) {
            response.once('drain', more);
            return;
          }
        }
      };
      more();
    });
    expect(await world().deliver(url)).toEqual({ kind: 'delivered' });
    await ended.promise;
    expect(sent).toBeLessThan(64 * 2 ** 20);
  });

  it('to a target that speaks no HTTP, or hangs up, or changes the protocol, fails', async () => {
    const words = [
      'SSH-2.0-OpenSSH\r\n',
      '',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    ];
    for (const text of words) {
      const port = await listening(createTcpServer((socket) => socket.on('error', () => undefined).end(text)));
      expect(await world().deliver(`http://127.0.0.1:${port}/`)).toEqual({ kind: 'unreachable', why: 'connection' });
    }
  });

  it('is cut off by its signal', async () => {
    const cut = new AbortController();
    const url = await target(() => cut.abort(new Error('The lease was lost.')));
    await expect(world().deliver(url, cut.signal)).rejects.toThrow('The lease was lost.');
  });
});

describe('a target that is not allowed', () => {
  it.each([
    'https://127.0.0.1/',
    'https://[::1]/',
    'https://[::ffff:127.0.0.1]/',
    'https://0x7f.1/',
    'https://2130706433/',
    'https://127.1/',
    'https://169.254.169.254/latest/meta-data/',
    'http://8.8.8.8/',
    'https://8.8.8.8:8443/',
    'https://:443',
  ])('is never connected to: %s', async (url) => {
    expect(await world({ networks: [] }).deliver(url)).toEqual({ kind: 'not_allowed' });
  });

  it('gains nothing by a name that leads elsewhere when the connection is made', async () => {
    let reached = 0;
    const port = await listening(
      createServer((_request, response) => response.writeHead(204).end()).on('connection', () => (reached += 1)),
    );
    const answers = [['127.0.0.1'], ['169.254.169.254'], ['127.0.0.1']];
    let lookups = 0;
    const resolve = () => Promise.resolve(answers[lookups++] ?? []);
    const { deliver } = world({ resolve });
    const url = `http://rebinding.example.com:${port}/`;
    expect(await deliver(url)).toEqual({ kind: 'delivered' });
    expect(await deliver(url)).toEqual({ kind: 'not_allowed' });
    expect(await deliver(url)).toEqual({ kind: 'delivered' });
    // Each connection had one look-up, whose answer it used: none is kept, and none is asked for twice.
    expect([lookups, reached]).toEqual([3, 2]);
  });

  it('is left out where a name has allowed addresses too', async () => {
    const port = await listening(createServer((_request, response) => response.writeHead(204).end()));
    const { deliver } = world({ resolve: () => Promise.resolve(['10.0.0.1', '127.0.0.1', '::1']) });
    expect(await deliver(`http://both.example.com:${port}/`)).toEqual({ kind: 'delivered' });
  });

  it('looks the same as a name that does not exist', async () => {
    const { deliver } = world({ resolve: () => Promise.reject(new Error('ENOTFOUND')) });
    expect(await deliver('https://kubernetes.default.svc/')).toEqual({ kind: 'not_allowed' });
  });
});

it('no proxy of the environment sees a delivery', async () => {
  let isAsked = false;
  const proxy = await target((_request, response) => {
    isAsked = true;
    response.end();
  });
  const url = await target((_request, response) => response.writeHead(204).end());
  const before = { ...process.env };
  Object.assign(process.env, { HTTP_PROXY: proxy, http_proxy: proxy, NODE_USE_ENV_PROXY: '1' });
  try {
    expect(await world().deliver(url)).toEqual({ kind: 'delivered' });
  } finally {
    process.env = before;
  }
  expect(isAsked).toBe(false);
});
