import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import { MemoryStore } from '../../../src/gateway/state/response-store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { CALLER, eventually, gatewayTo, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { startEngine, type Behaviour, type EngineOptions, type ScriptedEngine } from '../../support/scripted-engine.ts';

const MIB = 2 ** 20;
const ATTACKER: Principal = { ...CALLER, namespace: 'attacker', keyId: 'attacker' };
const CHAT = { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }] };
const GOOD: Behaviour = { kind: 'answer', reply: { text: 'Hello there' } };
const CHAT_ONLY: EngineOptions = { engine: 'tgi' };

/** Sends all but the last byte of a body. Resolves when the gateway has taken it, or has answered. */
function stall(gateway: TestGateway, body: Buffer): Promise<() => void> {
  return new Promise((resolve) => {
    const call = httpRequest(`${gateway.base}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-length': body.length + 1 },
    });
    const done = (): void => resolve(() => call.destroy());
    call.on('error', done);
    call.on('response', (response) => {
      response.resume();
      done();
    });
    call.write(body, done);
  });
}

describe('an attacker and an honest tenant', () => {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  async function setup(...options: EngineOptions[]) {
    const started = await gatewayTo(...options);
    ends.push(started.close);
    return started;
  }

  it('16 stalled uploads of 32 MiB leave room for a call of another', async () => {
    const { gateway } = await setup(CHAT_ONLY);
    const body = Buffer.alloc(32 * MIB - 1, 'x');
    for (let count = 0; count < 16; count += 1) {
      gateway.callAs({ ...ATTACKER, keyId: `attacker-${count}` });
      ends.unshift(await stall(gateway, body));
    }
    gateway.callAs(CALLER);
    // The last bytes of the uploads may still be on their way.
    for (let count = 0; count < 30; count += 1)
      expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(200);
  });

  it('nine keys that fill the store leave the answers of another', async () => {
    const engine = await startEngine(CHAT_ONLY);
    ends.push(() => engine.close());
    const bounds = { ttlMs: 3_600_000, maxSizePerTenant: 20_000, maxSize: 80_000 };
    const gateway = await startGateway(undefined, { store: new MemoryStore(systemClock(), bounds) });
    ends.unshift(() => gateway.close());
    gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
    await gateway.ready('tiny');
    const create = async (): Promise<string> => {
      const body = { model: 'tiny', input: 'x'.repeat(5000) };
      return ((await (await post(gateway, 'responses', body)).json()) as { id: string }).id;
    };
    const mine = await create();
    for (let key = 0; key < 9; key += 1) {
      gateway.callAs({ ...ATTACKER, keyId: `attacker-${key}` });
      for (let count = 0; count < 4; count += 1) await create();
    }
    gateway.callAs(CALLER);
    expect((await fetch(`${gateway.base}/v1/responses/${mine}`)).status).toBe(200);
  });

  it('a retry storm on one model leaves the retries of another tenant, and of another model', async () => {
    const { gateway, engines } = await setup(CHAT_ONLY, CHAT_ONLY);
    const broken = await Promise.all([1, 2, 3].map(() => startEngine({ ...CHAT_ONLY, models: ['broken'] })));
    for (const engine of broken) engine.behave({ kind: 'status', status: 500 });
    ends.push(() => Promise.all(broken.map((engine) => engine.close())));
    gateway.cluster.serve({ name: 'broken-server', ports: broken.map(({ port }) => port) });
    await gateway.ready('broken', 3);
    gateway.callAs(ATTACKER);
    for (let count = 0; count < 7; count += 1) await post(gateway, 'chat/completions', { ...CHAT, model: 'broken' });
    for (const caller of [CALLER, ATTACKER]) {
      gateway.callAs(caller);
      for (const engine of engines) engine.received.length = 0;
      await post(gateway, 'chat/completions', CHAT);
      const home = engines.find(({ received }) => received.length > 0);
      home?.behave({ kind: 'status', status: 500 }, GOOD);
      expect((await post(gateway, 'chat/completions', CHAT)).headers.get('x-berth-route')).toContain('attempt=2');
    }
  });

  it.each([
    ['resets of its connections', { kind: 'reset' }],
    ['errors of the engine', { kind: 'status', status: 500 }],
    ['nonsense', { kind: 'raw', contentType: 'application/json', chunks: ['<html>'] }],
    ['timeouts of the engine', { kind: 'status', status: 504 }],
    ['refusals with a Retry-After', { kind: 'status', status: 429, headers: { 'retry-after': '60' } }],
  ] as [string, Behaviour][])('what one tenant causes opens no breaker for another: %s', async (_name, bad) => {
    const { gateway, engines } = await setup(CHAT_ONLY);
    const [engine] = engines as [ScriptedEngine];
    engine.behave(bad);
    gateway.callAs(ATTACKER);
    for (let count = 0; count < 15; count += 1) await post(gateway, 'chat/completions', CHAT);
    expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(503);
    engine.behave(GOOD);
    gateway.callAs(CALLER);
    expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(200);
  });

  it('a query of death is tried on one more server at most', async () => {
    const { gateway, engines } = await setup(CHAT_ONLY, CHAT_ONLY, CHAT_ONLY, CHAT_ONLY);
    for (const engine of engines) engine.behave({ kind: 'reset' });
    const response = await post(gateway, 'chat/completions', CHAT);
    expect(response.status).toBe(502);
    expect(engines.filter(({ received }) => received.length > 0)).toHaveLength(2);
  });

  it('a fake of a shared model gets no call of others', async () => {
    const [real, fake] = await Promise.all([startEngine(CHAT_ONLY), startEngine(CHAT_ONLY)]);
    ends.push(() => Promise.all([real.close(), fake.close()]));
    const gateway = await startGateway();
    ends.unshift(() => gateway.close());
    gateway.cluster.letShare('platform');
    const annotations = { 'berth.dev/shared': 'true' };
    // By every order that a tenant can choose, its Service comes first.
    gateway.cluster.serve({ name: 'a-fake', namespace: 'attacker', annotations, ports: [fake.port] });
    gateway.cluster.serve({ name: 'real', namespace: 'platform', annotations, ports: [real.port] });
    gateway.callAs(ATTACKER);
    await gateway.ready('tiny');
    gateway.callAs(CALLER);
    await gateway.ready('tiny');
    for (let count = 0; count < 5; count += 1) await post(gateway, 'chat/completions', CHAT);
    expect([real.received.length, fake.received.length]).toEqual([5, 0]);
    // For its own calls the tenant's model comes first.
    gateway.callAs(ATTACKER);
    await post(gateway, 'chat/completions', CHAT);
    expect(fake.received).toHaveLength(1);
  });

  it('a new server is found beside 200 of another tenant that hang', async () => {
    const hanging = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    ends.push(() => hanging.close().closeAllConnections());
    const { port } = hanging.address() as AddressInfo;
    const { gateway } = await setup(CHAT_ONLY);
    for (let count = 0; count < 200; count += 1)
      gateway.cluster.serve({ name: `hang-${count}`, namespace: 'attacker', ports: [port] });
    await once(hanging, 'request');
    const engine = await startEngine({ ...CHAT_ONLY, models: ['new'] });
    ends.push(() => engine.close());
    gateway.cluster.serve({ name: 'new-server', namespace: CALLER.namespace, ports: [engine.port] });
    await gateway.ready('new');
  });

  it('of one tenant 256 servers are followed', async () => {
    const { gateway } = await setup(CHAT_ONLY);
    const engine = await startEngine({ ...CHAT_ONLY, models: ['many'] });
    ends.push(() => engine.close());
    for (let count = 0; count < 270; count += 1)
      gateway.cluster.serve({ name: `many-${count}`, namespace: 'attacker', ports: [engine.port] });
    gateway.callAs(ATTACKER);
    await gateway.ready('many');
    const asked = () => engine.probes.filter((probe) => probe === 'GET /v1/models').length;
    await eventually(() => expect(asked()).toBeGreaterThanOrEqual(256));
    const other = await startEngine({ ...CHAT_ONLY, models: ['other'] });
    ends.push(() => other.close());
    gateway.cluster.serve({ name: 'other-server', ports: [other.port] });
    await gateway.ready('other');
    expect(asked()).toBe(256);
  });

  it('servers of a namespace that is no tenant get no question, until it is one', async () => {
    const engine = await startEngine({ ...CHAT_ONLY, models: ['own'] });
    ends.push(() => engine.close());
    const tenants = new Set<string>();
    let changed = (): void => undefined;
    const gateway = await startGateway(undefined, {
      tenants: {
        has: (namespace) => tenants.has(namespace),
        onChange: (listener) => {
          changed = listener;
          return () => undefined;
        },
      },
    });
    ends.unshift(() => gateway.close());
    const shared = await startEngine(CHAT_ONLY);
    ends.push(() => shared.close());
    gateway.cluster.serve({ name: 'own-server', namespace: CALLER.namespace, ports: [engine.port] });
    gateway.cluster.serve({ name: 'tiny-server', ports: [shared.port] });
    await gateway.ready('tiny');
    expect((await fetch(`${gateway.base}/v1/models/own`)).status).toBe(404);
    expect(engine.probes).toEqual([]);
    tenants.add(CALLER.namespace);
    changed();
    await gateway.ready('own');
  });

  it.each([
    ['chat/completions', { dialects: ['chat'] }],
    ['messages', { dialects: ['chat', 'messages'] }],
    ['messages', CHAT_ONLY],
  ] as [string, EngineOptions][])('an error about the request in a 200 is a 400: %s', async (path, options) => {
    const { gateway, engines } = await setup(options, options);
    const chunks = [JSON.stringify({ error: { message: 'bad schema', type: 'BadRequestError', code: 400 } })];
    for (const engine of engines) engine.behave({ kind: 'raw', contentType: 'application/json', chunks });
    for (const stream of [false, true, false, false]) {
      const response = await post(gateway, path, { ...CHAT, max_tokens: 9, stream });
      expect(response.status).toBe(400);
      expect(await response.text()).toContain('bad schema');
    }
    expect(engines.flatMap(({ received }) => received)).toHaveLength(4);
    for (const engine of engines) engine.behave(GOOD);
    expect((await post(gateway, path, { ...CHAT, max_tokens: 9 })).status).toBe(200);
  });

  it('a stream gives its place for its body back with its first byte', async () => {
    const engine = await startEngine();
    ends.push(() => engine.close());
    const ceilings = () => ({ ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, bodyMib: 1 } });
    const gateway = await startGateway(undefined, { ceilings });
    ends.unshift(() => gateway.close());
    gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
    await gateway.ready('tiny');
    const body = { ...CHAT, stream: true, messages: [{ role: 'user', content: 'x'.repeat(600_000) }] };
    engine.behave({ kind: 'stall', reply: { text: 'Hello there' }, events: 2 });
    for (let count = 0; count < 5; count += 1) {
      const response = await post(gateway, 'chat/completions', body);
      expect(response.status).toBe(200);
      const reader = response.body?.getReader();
      expect((await reader?.read())?.value?.length).toBeGreaterThan(0);
      ends.unshift(() => reader?.cancel());
    }
    engine.behave({ kind: 'hang' });
    const first = new AbortController();
    const waiting = post(gateway, 'chat/completions', body, { signal: first.signal }).catch(() => undefined);
    await eventually(() => expect(engine.received).toHaveLength(6));
    const refused = await post(gateway, 'chat/completions', body);
    expect(refused.status).toBe(429);
    expect(await refused.text()).toMatch(/share.*operator.*http\.bodyMib/);
    first.abort();
    await waiting;
  });

  it('short calls that continue a long stored response hold as much as long calls', async () => {
    const engine = await startEngine(CHAT_ONLY);
    ends.push(() => engine.close());
    const ceilings = () => ({ ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, bodyMib: 8 } });
    const gateway = await startGateway(undefined, { ceilings });
    ends.unshift(() => gateway.close());
    gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
    await gateway.ready('tiny');
    gateway.callAs(ATTACKER);
    const item = { id: 'msg_long', role: 'assistant', content: [{ type: 'output_text', text: 'x'.repeat(2 * MIB) }] };
    const create = { model: 'tiny', input: [item, { role: 'user', content: 'Go on' }] };
    const { id } = (await (await post(gateway, 'responses', create)).json()) as { id: string };
    engine.received.length = 0;
    engine.behave({ kind: 'hang' });
    const leave = new AbortController();
    const bodies = [
      { model: 'tiny', input: 'hi', previous_response_id: id, store: false },
      { model: 'tiny', input: [{ type: 'item_reference', id: 'msg_long' }], store: false },
    ];
    for (const body of bodies) {
      const calls = Array.from({ length: 20 }, () =>
        post(gateway, 'responses', body, { signal: leave.signal }).then(
          ({ status }) => status,
          () => 'under way',
        ),
      );
      const refused: (number | string)[] = [];
      for (const call of calls) void call.then((status) => refused.push(status));
      await eventually(() => expect(refused.length).toBeGreaterThanOrEqual(17));
      expect(new Set(refused)).toEqual(new Set([429]));
      gateway.callAs(CALLER);
      engine.behave(GOOD);
      expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(200);
      engine.behave({ kind: 'hang' });
      gateway.callAs(ATTACKER);
    }
    leave.abort();
  });

  it('stored responses that nobody reads hold the share of their tenant', async () => {
    const engine = await startEngine(CHAT_ONLY);
    ends.push(() => engine.close());
    const ceilings = () => ({ ...DEFAULT_CEILINGS, http: { ...DEFAULT_CEILINGS.http, bodyMib: 32 } });
    const gateway = await startGateway(undefined, { ceilings });
    ends.unshift(() => gateway.close());
    gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
    await gateway.ready('tiny');
    const create = { model: 'tiny', input: 'x'.repeat(12 * MIB) };
    const { id } = (await (await post(gateway, 'responses', create)).json()) as { id: string };
    const statuses: (number | undefined)[] = [];
    for (let count = 0; count < 4; count += 1) {
      const call = httpRequest(`${gateway.base}/v1/responses/${id}/input_items`);
      ends.unshift(() => call.destroy());
      call.on('error', () => undefined).on('response', ({ statusCode }) => statuses.push(statusCode));
      call.end();
    }
    await eventually(() => expect(statuses).toHaveLength(4));
    expect(statuses.filter((status) => status === 200)).toHaveLength(2);
  });

  it('readings of stored responses are calls, and count in the limits of the key', async () => {
    const { gateway } = await setup(CHAT_ONLY);
    const create = { model: 'tiny', input: 'Keep it' };
    const { id } = (await (await post(gateway, 'responses', create)).json()) as { id: string };
    gateway.callAs({ ...CALLER, limits: { requestsPerMinute: 2 } });
    const read = async (path: string) => (await fetch(`${gateway.base}/v1/responses/${id}${path}`)).status;
    expect([await read(''), await read('/input_items'), await read('')]).toEqual([200, 200, 429]);
  });

  it('what a call continues counts in its tokens', async () => {
    const { gateway } = await setup(CHAT_ONLY);
    const create = { model: 'tiny', input: 'word '.repeat(2000) };
    const { id } = (await (await post(gateway, 'responses', create)).json()) as { id: string };
    gateway.callAs({ ...CALLER, limits: { tokensPerMinute: 1000 } });
    const short = { model: 'tiny', input: 'hi', max_output_tokens: 5 };
    expect(
      (await post(gateway, 'responses', { ...short, previous_response_id: id, stream: true })).headers.get(
        'x-ratelimit-remaining-tokens',
      ),
    ).toBe('0');
  });

  it('a large body reaches the next endpoint whole when one fails', async () => {
    const { gateway, engines } = await setup({}, {});
    const content = 'x'.repeat(3 * MIB);
    for (const engine of engines) engine.behave({ kind: 'status', status: 500 }, GOOD);
    const body = { ...CHAT, messages: [{ role: 'user', content }], stream: true };
    await (await post(gateway, 'chat/completions', body)).text();
    const sent = engines.flatMap(({ received }) => received.map((one) => JSON.stringify(one.body.messages)));
    expect(sent).toEqual([JSON.stringify(body.messages), JSON.stringify(body.messages)]);
  });

  it('the ceilings of a tenant hold for all its keys, in calls and token counts', async () => {
    const engine = await startEngine(CHAT_ONLY);
    ends.push(() => engine.close());
    const models = { ...DEFAULT_CEILINGS.models, callsPerMinute: 3 };
    const gateway = await startGateway(undefined, {
      ceilings: (tenant) => (tenant === ATTACKER.namespace ? { ...DEFAULT_CEILINGS, models } : DEFAULT_CEILINGS),
    });
    ends.unshift(() => gateway.close());
    gateway.cluster.serve({ name: 'tiny-server', ports: [engine.port] });
    await gateway.ready('tiny');
    const statuses: number[] = [];
    for (const [key, path] of ['chat/completions', 'messages/count_tokens', 'chat/completions', 'messages'].entries()) {
      gateway.callAs({ ...ATTACKER, keyId: `attacker-${key}` });
      statuses.push((await post(gateway, path, { ...CHAT, max_tokens: 9 })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 429]);
    gateway.callAs(CALLER);
    expect((await post(gateway, 'chat/completions', CHAT)).status).toBe(200);
  });
});
