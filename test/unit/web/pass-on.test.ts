import { once } from 'node:events';
import { createServer, type IncomingMessage, request as send, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { errorHandler } from '../../../src/http/interface/errors/handler.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { DashboardProxy, NO_DASHBOARD } from '../../../src/web/pass-on.ts';
import { waitFor } from '../../support/wait-for.ts';

/** The next replica believes what its clients say of their addresses. */
let trustProxy = false;
const LOG = pino({ level: 'silent' });
const open: Server[] = [];
const proxies: DashboardProxy[] = [];

async function listen(server: Server): Promise<URL> {
  open.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** A server with the dashboard at `answer`, behind an api replica. */
async function replica(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<URL> {
  const proxy = new DashboardProxy(await listen(createServer(answer)), systemClock());
  proxies.push(proxy);
  const app = express();
  app.set('trust proxy', trustProxy);
  app.use('/dashboard', proxy.handle);
  app.use(errorHandler(LOG));
  return listen(createServer(app));
}

afterEach(async () => {
  trustProxy = false;
  for (const proxy of proxies.splice(0)) await proxy.close();
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

describe('what the dashboard gets', () => {
  it('is the path, the body and the cookie of the page, and who the client is', async () => {
    const seen: { url?: string | undefined; headers: IncomingMessage['headers']; body: string }[] = [];
    const base = await replica((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (part: string) => (body += part));
      request.once('end', () => {
        seen.push({ url: request.url, headers: request.headers, body });
        response.writeHead(201, { 'set-cookie': ['a=1', 'b=2'], 'x-frame-options': 'DENY' }).end('made');
      });
    });
    const answer = await fetch(new URL('/dashboard/api/keys?namespace=a', base), {
      method: 'POST',
      headers: {
        cookie: 'berth_session=sealed',
        'content-type': 'application/json',
        'x-berth-dashboard': '1',
        'sec-fetch-site': 'same-origin',
      },
      body: '{"a":1}',
    });
    expect([answer.status, await answer.text()]).toEqual([201, 'made']);
    expect(answer.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(answer.headers.get('x-frame-options')).toBe('DENY');
    expect(seen[0]?.url).toBe('/dashboard/api/keys?namespace=a');
    expect(seen[0]?.body).toBe('{"a":1}');
    expect(seen[0]?.headers).toMatchObject({
      host: base.host,
      cookie: 'berth_session=sealed',
      'content-length': '7',
      'sec-fetch-site': 'same-origin',
      'x-berth-dashboard': '1',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
    });
  });

  it('has no API key in it, and no address that the client made up', async () => {
    const seen: IncomingMessage['headers'][] = [];
    const base = await replica((request, response) => {
      seen.push(request.headers);
      response.end();
    });
    const headers = { authorization: 'Bearer berth_x', 'x-api-key': 'berth_x', 'x-forwarded-for': '203.0.113.9' };
    await fetch(new URL('/dashboard', base), { headers });
    expect(seen[0]).not.toHaveProperty('authorization');
    expect(seen[0]).not.toHaveProperty('x-api-key');
    expect(seen[0]?.['x-forwarded-for']).toBe('127.0.0.1');
  });

  it('goes to the dashboard alone, whatever URL the request line names', async () => {
    let asked = 0;
    const base = await replica((_request, response) => {
      asked += 1;
      response.end();
    });
    const request = send(base, { path: 'http://elsewhere.example/dashboard' });
    const [answer] = (await once(request.end(), 'response')) as [IncomingMessage];
    expect([answer.statusCode, asked]).toEqual([400, 0]);
    answer.resume();
  });
});

describe('what is refused', () => {
  it('is a body that is too long, with and without its length', async () => {
    const base = await replica((request, response) => {
      request.resume().once('end', () => response.end());
    });
    const long = 'x'.repeat(70_000);
    const known = await fetch(new URL('/dashboard/api/session', base), { method: 'POST', body: long });
    expect(known.status).toBe(413);
    const stream = new Blob([long]).stream();
    const unknown = await fetch(new URL('/dashboard/api/session', base), {
      method: 'POST',
      body: stream,
      duplex: 'half',
    });
    expect(unknown.status).toBe(413);
  });

  it('is no sign-in of an honest person, whatever calls the addresses of others have under way', async () => {
    trustProxy = true;
    let held = 0;
    const base = await replica((request, response) => {
      if (request.url === '/dashboard/honest') response.end();
      else held += 1;
    });
    const page = new URL('/dashboard', base);
    const gone = new AbortController();
    const statuses: number[] = [];
    for (const network of ['2001:db8:0:1', '2001:db8:0:2', '2001:db8:0:3', '2001:db8:0:4', '2001:db8:0:5'])
      for (let host = 1; host <= 20; host += 1)
        void fetch(page, { signal: gone.signal, headers: { 'x-forwarded-for': `${network}::${host}` } }).then(
          ({ status }) => statuses.push(status),
          () => undefined,
        );
    await waitFor('the others', () => held + statuses.length === 100);
    expect(new Set(statuses)).toEqual(new Set([429]));
    const headers = { 'x-forwarded-for': '192.0.2.1' };
    expect((await fetch(new URL('/dashboard/honest', base), { headers })).status).toBe(200);
    gone.abort();
  });

  it('is no call beside bodies that stall: they hold no place', async () => {
    let asked = 0;
    const base = await replica((_request, response) => {
      asked += 1;
      response.end();
    });
    const stalled = Array.from({ length: 80 }, () => {
      const call = send(new URL('/dashboard/api/session', base), {
        method: 'POST',
        headers: { 'content-length': '10' },
      });
      call.on('error', () => undefined).write('x');
      return call;
    });
    await Promise.all(stalled.slice(0, 16).map((call) => once(call, 'socket')));
    expect((await fetch(new URL('/dashboard', base))).status).toBe(200);
    expect(asked).toBe(1);
    for (const call of stalled) call.destroy();
  });

  it('is the seventeenth call of an address while sixteen are under way', async () => {
    const waiting: ServerResponse[] = [];
    const base = await replica((_request, response) => void waiting.push(response));
    const page = new URL('/dashboard', base);
    const calls = Array.from({ length: 16 }, () => fetch(page));
    await waitFor('all sixteen', () => waiting.length === 16);
    const refused = await fetch(page);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
    for (const response of waiting.splice(0)) response.end();
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(16).fill(200));
    const next = fetch(page);
    await waitFor('the next call', () => waiting.length === 1);
    waiting[0]?.end();
    expect((await next).status).toBe(200);
  });
});

it('a client that goes away takes its call with it', async () => {
  let cut = false;
  let begun = false;
  const base = await replica((request) => {
    begun = true;
    request.socket.once('close', () => (cut = true));
  });
  const gone = new AbortController();
  const call = fetch(new URL('/dashboard', base), { signal: gone.signal });
  await waitFor('the call', () => begun);
  gone.abort();
  await expect(call).rejects.toThrow(/abort/i);
  await waitFor('the end of the call', () => cut);
});

it('without an answer of the dashboard the client is told to try again', async () => {
  const base = await replica((request) => request.socket.destroy());
  const answer = await fetch(new URL('/dashboard', base));
  expect(answer.status).toBe(503);
  expect(await answer.json()).toMatchObject({ error: { code: 'dashboard_unavailable' } });
});

it('where no dashboard is configured the answer says how to make keys', () => {
  const call = (): unknown => NO_DASHBOARD({} as never, {} as never, () => undefined);
  expect(call).toThrow(/berth keys create/);
});
