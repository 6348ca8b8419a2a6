/** A tenant whose servers name thousands of models costs the others nothing when it asks for their list. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Principal } from '../../../src/access/principal.ts';
import { Model } from '../../../src/gateway/balance/model.ts';
import { buildCatalog, ModelCache } from '../../../src/gateway/discovery/catalog.ts';
import { LongLists } from '../../../src/gateway/long-lists.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { CALLER, gatewayTo, post, startGateway } from '../../support/model-gateway.ts';
import { startEngine } from '../../support/scripted-engine.ts';
import { probeOf } from '../../support/probe.ts';

afterEach(() => vi.restoreAllMocks());

const NAMES = Array.from({ length: 400 }, (_, index) => `model-${String(index).padStart(3, '0')}`);

describe('a long list', () => {
  it('is written once for many callers, and anew for each kind of caller', async () => {
    const { gateway, close } = await gatewayTo({ models: [...NAMES, 'tiny'] });
    const records = vi.spyOn(Model.prototype, 'readyCount', 'get');
    const list = async (headers = {}): Promise<string[]> => {
      const answer = await fetch(`${gateway.base}/v1/models`, { headers });
      expect(answer.headers.get('content-type')).toContain('application/json');
      const { data } = (await answer.json()) as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    const lists = await Promise.all(Array.from({ length: 30 }, () => list()));
    for (const one of lists) expect(one).toEqual([...NAMES, 'tiny']);
    // A second may end between two of them.
    expect(records.mock.calls.length).toBeLessThanOrEqual(3 * (NAMES.length + 1));
    expect(await list({ 'anthropic-version': '2023-06-01' })).toEqual([...NAMES, 'tiny']);
    gateway.callAs({ ...CALLER, models: ['model-00*'] });
    expect(await list()).toEqual(NAMES.slice(0, 10));
    const wrong = await post(gateway, 'chat/completions', { model: 'x', messages: [{ role: 'user', content: 'a' }] });
    expect(await wrong.text()).toContain("'model-000', 'model-001'");
    await close();
  });

  it('is not for a key that was revoked while it waited', async () => {
    let isRevoked = false;
    const caller = (principal: Principal) => (isRevoked ? undefined : principal);
    const engine = await startEngine({ models: NAMES });
    const gateway = await startGateway(undefined, { caller });
    gateway.cluster.serve({ name: 'llm', ports: [engine.port] });
    await gateway.ready('model-000');
    isRevoked = true;
    const answer = await fetch(`${gateway.base}/v1/models`);
    expect([answer.status, await answer.text()]).toEqual([401, expect.stringContaining('revoked')]);
    await gateway.close();
    await engine.close();
  });

  it('of a catalogue is sorted once, for a tenant and for a key', () => {
    const server = { namespace: 'a', name: 's', uid: 'u', aliases: [], problems: [] };
    const probe = probeOf({ models: NAMES.map((id) => ({ id })) });
    const full = buildCatalog([{ server, endpoints: [], lastProbe: probe }], new ModelCache(fakeClock()));
    expect(full.list('a')).toHaveLength(400);
    expect(full.list('a')).toBe(full.list('a'));
    expect(full.list('b')).toBe(full.list('c'));
    const models = ['model-1*', 'model-20*'];
    expect(full.listFor({ namespace: 'a', models })).toHaveLength(110);
    expect(full.listFor({ namespace: 'a', models })).toBe(full.listFor({ namespace: 'a', models }));
    expect(full.listFor({ namespace: 'b', models })).toHaveLength(0);
  });
});

describe('the lists of one tenant', () => {
  const of = {};
  const asked = (tenant: string, variant: string, models = 8192) => ({ tenant, variant, of, models });

  it('are written in turn and at its pace, those of another at once', async () => {
    const clock = fakeClock();
    const lists = new LongLists(clock);
    const written: string[] = [];
    const ask = (tenant: string, variant: string): void => {
      void lists.body(asked(tenant, variant), () => {
        written.push(`${tenant} ${variant}`);
        return Buffer.from(variant);
      });
    };
    for (let key = 0; key < 100; key += 1) ask('hostile', `key ${key}`);
    await settle();
    const first = written.length;
    expect(first).toBeLessThanOrEqual(4);
    ask('honest', 'all');
    await settle();
    expect(written.at(-1)).toBe('honest all');
    await clock.advance(10_000);
    expect(written.filter((one) => one.startsWith('hostile')).length - first).toBeLessThanOrEqual(21);
    await clock.advance(60_000);
    expect(written).toHaveLength(101);
  });

  it('are kept for a second, until the models are others', async () => {
    const clock = fakeClock();
    const lists = new LongLists(clock);
    const write = vi.fn<() => Buffer>(() => Buffer.from('x'));
    const one = { ...asked('a', 'all', 300) };
    const [first, second] = await Promise.all([lists.body(one, write), lists.body(one, write)]);
    expect(first).toBe(second);
    await lists.body(one, write);
    expect(write).toHaveBeenCalledTimes(1);
    await lists.body({ ...one, of: {} }, write);
    expect(write).toHaveBeenCalledTimes(2);
    await clock.advance(1000);
    await lists.body({ ...one, of: {} }, write);
    expect(write).toHaveBeenCalledTimes(3);
  });

  it('that could not be written are written by the next call', async () => {
    const lists = new LongLists(fakeClock());
    const fail = (): Buffer => {
      throw new Error('broken');
    };
    await expect(lists.body(asked('a', 'all', 300), fail)).rejects.toThrow('broken');
    expect((await lists.body(asked('a', 'all', 300), () => Buffer.from('x'))).bytes.toString()).toBe('x');
  });
});
