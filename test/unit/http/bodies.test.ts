import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type BodyRules, readBody } from '../../../src/http/interface/bodies/read-body.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { type Client, type LoneApi, type LoneApiOptions, post, startLoneApi } from '../../support/http/lone-api.ts';
import { waitFor } from '../../support/wait-for.ts';

const MIB = 1024 * 1024;
const ALMOST = Buffer.alloc(MIB - 10, ' ');
const PAGE = { 'x-berth-dashboard': '1' };
const KEY = (tenant: string) => ({ authorization: `Bearer ${tenant}` });

let api: LoneApi;
const clock = fakeClock();

async function start(options: Partial<LoneApiOptions> = {}): Promise<void> {
  api = await startLoneApi({ tenants: ['a', 'b'], clock, ...options });
}

afterEach(async () => {
  const closed = api.close();
  await clock.advance(1000);
  await closed;
});

function underWay(): Promise<number> {
  return api.metric('berth_http_requests_under_way');
}

function stalled(clients: readonly Client[]): Client[] {
  return clients.filter(({ got }) => got === '');
}

describe('bodies of strangers', () => {
  it('longer than a token are refused before they are read', async () => {
    await start();
    const announced = api.send(post('/dashboard/api/session', MIB, PAGE));
    await waitFor('413', () => announced.statuses.includes(413));
    const chunked = api.send(post('/dashboard/api/session', 'chunked', PAGE), '5000\r\n', Buffer.alloc(0x5000));
    await waitFor('413', () => chunked.statuses.includes(413) && chunked.closed);
  });

  it('that stall hold little, and are cut', async () => {
    await start();
    const bytes = Buffer.alloc(15_000, ' ');
    const all = Array.from({ length: 29 }, () => api.send(post('/dashboard/api/session', 16_000, PAGE), bytes));
    // 256 KiB are the share of an address.
    await waitFor('the refusals', () => stalled(all).length <= 16);
    expect(all.filter(({ statuses }) => statuses[0] === 429).length).toBeGreaterThanOrEqual(12);
    const left = stalled(all);
    await clock.advance(9000);
    expect(left.every(({ got }) => got === '')).toBe(true);
    await clock.advance(1000);
    await waitFor('408', () => left.every(({ statuses, closed }) => statuses[0] === 408 && closed));
    expect(left[0]?.got).toContain('"code":"request_timeout"');
    await waitFor('nothing to be held', async () => (await underWay()) === 0);
  });

  it('are counted as attempts before they are read', async () => {
    await start();
    const all = Array.from({ length: 40 }, () => api.send(post('/dashboard/api/session', 2, PAGE)));
    await waitFor('the refusals', () => all.filter(({ got }) => got.includes('rate_limit_exceeded')).length === 10);
  });
});

describe('bodies of tenants', () => {
  it.each([
    ['names', `{"env":{${Array.from({ length: 80_000 }, (_, at) => `"${at}":0`).join()}}}`, 413],
    ['fields', `{${Array.from({ length: 80_000 }, (_, at) => `"${at}":0`).join()}}`, 413],
    ['objects', `{"command":[${Array.from({ length: 300_000 }, () => '{}').join()}]}`, 413],
    ['levels', `{"args":${'['.repeat(1000)}${']'.repeat(1000)}}`, 400],
    ['commas in a text, which count nothing', `{"stats":"${','.repeat(500_000)}","ask_id":"x"}`, 422],
  ])('with too many %s are refused before a schema looks at them', async (_what, body, status) => {
    await start();
    const sent = api.send(post('/api/v1/instances', body.length, KEY('a')), body);
    await waitFor(`${status}`, () => sent.statuses.includes(status));
  });

  it('that stall use up the share of the tenant and no more, and are cut', async () => {
    await start();
    const all = Array.from({ length: 40 }, () => api.send(post('/api/v1/instances', MIB, KEY('a')), ALMOST));
    await waitFor('the refusals', () => stalled(all).length <= 4);
    expect(all.filter(({ statuses }) => statuses[0] === 503).length).toBeGreaterThanOrEqual(36);
    const other = api.send(post('/api/v1/ssh-keys', 2, KEY('b')), '{}');
    await waitFor('the other tenant', () => other.statuses.includes(422));
    const left = stalled(all);
    expect(left.length).toBeGreaterThan(0);
    await clock.advance(10_000);
    await waitFor('408', () => left.every(({ statuses, closed }) => statuses[0] === 408 && closed));
  });

  it('are bounded by the ceiling of the operator, and the answer says who can lift it', async () => {
    await start({ http: { a: { bodyMib: 1 } } });
    const both = [1, 2].map(() => api.send(post('/api/v1/instances', MIB, KEY('a')), ALMOST));
    const refused = await waitFor('429', () => both.find(({ statuses }) => statuses.includes(429)));
    expect(refused.got).toContain('too_many_at_once');
    expect(refused.got).toContain('The operator can change http.bodyMib in TenantPolicy gold.');
    expect(stalled(both)).toHaveLength(1);
    const other = api.send(post('/api/v1/ssh-keys', 2, KEY('b')), '{}');
    await waitFor('the other tenant', () => other.statuses.includes(422));
  });
});

describe('a body', () => {
  function read(
    held: { most: number },
    headers: Record<string, string> = {},
  ): { body: PassThrough; done: Promise<number> } {
    const body = new PassThrough();
    let now = 0;
    const take = (bytes: number): void => {
      now += bytes;
      held.most = Math.max(held.most, now);
    };
    const rules: BodyRules = { limit: MIB, take, give: (bytes) => void (now -= bytes) };
    const request = Object.assign(body, { headers }) as unknown as IncomingMessage;
    const done = readBody(request, rules, clock, ({ length }) => length).finally(() => expect(now).toBe(0));
    return { body, done };
  }

  it('that comes byte by byte holds no more than its bytes', async () => {
    await start();
    const held = { most: 0 };
    const { body, done } = read(held);
    for (let byte = 0; byte < 20_000; byte += 1) body.write('x');
    body.end();
    expect(await done).toBe(20_000);
    expect(held.most).toBe(32_768);
  });

  it('that announces its length takes room for it once more than its first bytes came', async () => {
    await start();
    const held = { most: 0 };
    const { body, done } = read(held, { 'content-length': '100000' });
    body.write(Buffer.alloc(4000));
    await waitFor('the first bytes', () => body.readableLength === 0);
    expect(held.most).toBe(4096);
    body.write(Buffer.alloc(200));
    await waitFor('the room', () => held.most === 100_000);
    body.end(Buffer.alloc(95_800));
    expect(await done).toBe(100_000);
    expect(held.most).toBe(100_000);
  });

  it('that drips is cut after ten seconds', async () => {
    await start();
    const { body, done } = read({ most: 0 });
    const outcome = done.catch((error: unknown) => String(error));
    for (let count = 0; count < 3; count += 1) {
      body.write('x');
      await clock.advance(4000);
    }
    expect(await outcome).toContain('64 KiB per second');
  });

  it('that keeps to the pace is cut after thirty seconds all the same', async () => {
    await start();
    const { body, done } = read({ most: 0 });
    const outcome = done.catch((error: unknown) => String(error));
    body.write(Buffer.alloc(MIB - 1000));
    for (let count = 0; count < 5; count += 1) {
      await clock.advance(5000);
      body.write('x');
    }
    const cut = vi.fn<() => void>();
    void outcome.then(cut);
    await clock.advance(900);
    expect(cut).not.toHaveBeenCalled();
    await clock.advance(4100);
    expect(await outcome).toContain('did not arrive in time');
  });
});
