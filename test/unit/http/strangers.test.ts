import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate as nextRound } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { TerminalCall, TerminalGateway } from '../../../src/http/features/terminal/pass-on.ts';
import { ApiError } from '../../../src/http/interface/errors/api-error.ts';
import { shareAmongStrangers, Strangers } from '../../../src/http/server/strangers.ts';
import { Turns } from '../../../src/http/server/turns.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type LoneApi, type LoneApiOptions, post, startLoneApi } from '../../support/http/lone-api.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { waitFor } from '../../support/wait-for.ts';

const WEBSOCKET =
  'connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n';

describe('requests without a key', () => {
  function world() {
    const turns = new Turns(fakeClock());
    const strangers = new Strangers(turns);
    const begun: string[] = [];
    return {
      begun,
      tenant: (name: string) => turns.take(name, () => begun.push(name)),
      stranger: (client: string) => strangers.take(client, () => begun.push(client)),
    };
  }

  it('begin at once while nobody else is there', () => {
    const { begun, stranger } = world();
    for (const client of ['1', '1', '2']) stranger(client);
    expect(begun).toEqual(['1', '1', '2']);
  });

  it('have one turn together beside tenants, in which clients take turns', async () => {
    const { begun, stranger, tenant } = world();
    tenant('a');
    for (let network = 0; network < 100; network += 1)
      for (let count = 0; count < 10; count += 1) stranger(`${network}`);
    stranger('last');
    expect(begun).toEqual(['a', '0']);
    const rounds = 60;
    for (let round = 0; round < rounds; round += 1) {
      tenant('a');
      await nextRound();
    }
    const others = begun.filter((one) => one !== 'a');
    expect(begun.length - others.length).toBe(rounds + 1);
    expect(others.length).toBeLessThanOrEqual(rounds + 1);
    // The first one began before there was a line.
    expect(new Set(others).size).toBe(others.length - 1);
  });
});

it('a network has a share of what strangers have under way, and others have theirs', () => {
  const step = shareAmongStrangers(new Turns(fakeClock()), ({ headers }) => String(headers.from));
  /** Never ends. Whether it begins, or is refused with an error. */
  const send = (from: string): unknown => {
    const response = Object.assign(new EventEmitter(), { closed: false }) as unknown as ServerResponse;
    let begun = false;
    try {
      void step({ headers: { from } } as unknown as IncomingMessage, response, () => (begun = true));
    } catch (error) {
      return error;
    }
    return begun;
  };
  for (let network = 0; network < 20; network += 1)
    for (let host = 0; host < 100; host += 1) send(`2001:db8:0:${network}::${host}`);
  expect(send('2001:db8:0:1::ffff')).toMatchObject({ code: 'too_many_at_once' });
  for (let count = 0; count < 5; count += 1) expect(send('192.0.2.1')).toBe(true);
});

describe('an address', () => {
  let api: LoneApi;
  afterEach(() => api.close());

  async function start(options: Partial<LoneApiOptions> = {}): Promise<void> {
    api = await startLoneApi({ tenants: ['a'], ...options });
  }

  it('has its share at the hosts of ports, too', async () => {
    await start({ portHost: 'port' });
    const get = 'GET /never HTTP/1.1\r\nhost: port\r\n\r\n';
    const clients = Array.from({ length: 80 }, () => api.send(get));
    await waitFor('the refusals', () => clients.filter(({ statuses }) => statuses[0] === 429).length >= 80 - 57);
  });

  it('is never one that the client made up, but where proxies connect', async () => {
    await start({ trustProxy: 1, hasIngress: true });
    const attempts = Array.from({ length: 40 }, (_, host) =>
      api.send(
        post('/dashboard/api/session', 2, { 'x-berth-dashboard': '1', 'x-forwarded-for': `192.0.2.${host}` }),
        '{}',
      ),
    );
    await waitFor('the answers', () => attempts.every(({ statuses }) => statuses.length === 1));
    expect(attempts.filter(({ statuses }) => statuses[0] === 429)).toHaveLength(10);
    const proxied = Array.from({ length: 40 }, (_, host) =>
      api.sendProxied(
        post('/dashboard/api/session', 2, { 'x-berth-dashboard': '1', 'x-forwarded-for': `198.51.100.${host}` }),
        '{}',
      ),
    );
    await waitFor('the answers', () => proxied.every(({ statuses }) => statuses.length === 1));
    expect(proxied.some(({ statuses }) => statuses[0] === 429)).toBe(false);
  });

  it.each([
    ['a port of an instance', 'GET / HTTP/1.1\r\nhost: port\r\n'],
    ['a WebSocket of a port', `GET / HTTP/1.1\r\nhost: port\r\n${WEBSOCKET}`],
    [
      'a terminal',
      `GET /api/v1/instances/i-one/terminal HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\r\n${WEBSOCKET}`,
    ],
  ])('is made up by nobody for %s either, but where proxies connect', async (_what, request) => {
    const heard: string[] = [];
    const pass = ({ address }: TerminalCall): Promise<never> => {
      heard.push(address);
      throw new ApiError('terminal_unavailable', 'There is none.');
    };
    const made = gpuInstance('i-one');
    await start({
      trustProxy: 1,
      hasIngress: true,
      portHost: 'port',
      instances: [{ ...made, metadata: { ...made.metadata, namespace: 'a' } }],
      terminals: { pass } as unknown as TerminalGateway,
    });
    const told = `${request}x-forwarded-for: 192.0.2.1\r\nx-forwarded-for: 192.0.2.9\r\n\r\n`;
    const addressOf = async (client: { got: string; statuses: number[] }): Promise<string | undefined> => {
      await waitFor('the answer', () => client.statuses.length === 1);
      return /^x-sender: (.+)$/im.exec(client.got)?.[1]?.trim() ?? heard.pop();
    };
    // The proxy says who came to it, and that one what it likes.
    expect([await addressOf(api.send(told)), await addressOf(api.sendProxied(told))]).toEqual([
      '127.0.0.1',
      '192.0.2.9',
    ]);
  });
});
