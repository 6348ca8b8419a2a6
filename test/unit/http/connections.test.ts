import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { type ConnectionBounds, Connections } from '../../../src/http/server/connections.ts';
import { clientNetwork } from '../../../src/lib/client-network.ts';
import { Client, type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { waitFor } from '../../support/wait-for.ts';

const ASK = 'GET /api/v1/offers HTTP/1.1\r\nhost: x\r\n\r\n';
const EVENTS =
  'GET /api/v1/instances HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\nauthorization: Bearer a\r\n\r\n';

describe('the API', () => {
  let api: LoneApi;

  afterEach(() => api.close());

  it('answers a newcomer however many connections of strangers rest, and keeps the streams of tenants', async () => {
    api = await startLoneApi({ tenants: ['a'], maxConnections: 40 });
    const stream = api.send(EVENTS);
    await waitFor('the snapshot', () => stream.got.includes('event: snapshot'));
    const idle = Array.from({ length: 60 }, () => api.send(ASK));
    await waitFor('the answers', () => idle.filter(({ statuses }) => statuses[0] === 401).length >= 39);
    await waitFor('the oldest to be closed', () => idle.filter(({ closed }) => closed).length >= 21);
    const silent = Array.from({ length: 60 }, () => api.send());
    await waitFor('the oldest to be closed', () => silent.filter(({ closed }) => closed).length >= 21);
    const newcomer = api.send(ASK.replace('\r\n\r\n', '\r\nauthorization: Bearer a\r\n\r\n'));
    await waitFor('the answer', () => newcomer.statuses[0] === 200);
    expect(stream.closed).toBe(false);
  });

  it('takes only its share of requests under way from a tenant', async () => {
    api = await startLoneApi({ tenants: ['a', 'b'], maxConnections: 10 });
    const streams = Array.from({ length: 8 }, () => api.send(EVENTS));
    await waitFor('the answers', () => streams.every(({ statuses }) => statuses.length === 1));
    expect(streams.filter(({ statuses }) => statuses[0] === 200)).toHaveLength(5);
    expect(streams.filter(({ statuses }) => statuses[0] === 503)).toHaveLength(3);
    const other = api.send(EVENTS.replace('Bearer a', 'Bearer b'));
    await waitFor('the other tenant', () => other.statuses[0] === 200);
    streams.find(({ statuses }) => statuses[0] === 200)?.socket.destroy();
    await waitFor('room', async () => {
      const again = api.send(EVENTS);
      await waitFor('an answer', () => again.statuses.length === 1);
      return again.statuses[0] === 200;
    });
  });
});

describe('the connections of a server', () => {
  let server: Server;
  let clients: Client[] = [];
  let kept = 0;

  afterEach(() => {
    for (const { socket } of clients) socket.destroy();
    clients = [];
    kept = 0;
    server.close();
  });

  async function serve(bounds: ConnectionBounds, isProxied = false): Promise<void> {
    server = createServer((request, response) => {
      if (request.url === '/kept') {
        connections.keep(response);
        kept += 1;
      } else {
        response.end('yes');
      }
    });
    const connections = new Connections(bounds);
    connections.guard(server, isProxied);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }

  async function ask(path = '/'): Promise<Client> {
    const client = new Client((server.address() as AddressInfo).port);
    clients.push(client);
    await once(client.socket, 'connect');
    client.socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    const before = kept;
    await waitFor('the server', () => client.statuses.length === 1 || client.closed || kept > before);
    return client;
  }

  it('are closed within one address when that has too many, the longest unused first', async () => {
    await serve({ most: 100, perAddress: 3 });
    const [first, second, third] = [await ask(), await ask(), await ask()];
    first.socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await waitFor('the second answer', () => first.statuses.length === 2);
    const fourth = await ask();
    await waitFor('the second client to be out', () => second.closed);
    expect([first.closed, third.closed, fourth.closed]).toEqual([false, false, false]);
  });

  it('that are kept count for no address, and a newcomer is refused only when all are kept', async () => {
    await serve({ most: 4, perAddress: 1 });
    const streams = [await ask('/kept'), await ask('/kept'), await ask('/kept')];
    const resting = await ask();
    const next = await ask();
    expect(next.statuses).toEqual([200]);
    await waitFor('the resting client to be out', () => resting.closed);
    await ask('/kept');
    await waitFor('the next to be out', () => next.closed);
    expect((await ask()).statuses).toEqual([]);
    expect(streams.map(({ closed }) => closed)).toEqual([false, false, false]);
  });

  it('that come from proxies have a bound for all, and none for an address', async () => {
    await serve({ most: 4, perAddress: 1 }, true);
    const all = [await ask(), await ask(), await ask(), await ask()];
    expect(all.map(({ closed }) => closed)).toEqual([false, false, false, false]);
    await ask();
    await waitFor('the oldest to be out', () => all[0]?.closed);
  });

  it('rest for a shorter time while many are open', async () => {
    await serve({ most: 4, perAddress: 4 });
    const all = [await ask(), await ask(), await ask()];
    const rests = all.map(({ got }) => /keep-alive: timeout=(\d+)/i.exec(got)?.[1]);
    expect(rests).toEqual(['65', '65', '5']);
    for (const { socket } of all) socket.destroy();
    await waitFor('a long rest', async () => (await ask()).got.includes('timeout=65'));
  });
});

it('one client is an IPv4 address or an IPv6 /64', () => {
  const of = clientNetwork;
  expect(of('::ffff:192.0.2.1')).toBe(of('192.0.2.1'));
  expect(of('192.0.2.1')).not.toBe(of('192.0.2.2'));
  expect(of('2001:db8:1:2:aaaa::1')).toBe(of('2001:db8:1:2::'));
  expect(of('2001:db8:1:2::1')).not.toBe(of('2001:db8:1:3::1'));
  expect(of('2001:db8::1')).toBe(of('2001:db8::2:0:0:1'));
  expect(of('::1')).toBe('0:0:0:0::/64');
  expect(of(undefined)).toBe('');
  expect(of('x'.repeat(1000))).toHaveLength(64);
});
