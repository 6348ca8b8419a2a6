/** On a server that several tenants share, none sees by its cache what another asked. */
import { afterEach, describe, expect, it } from 'vitest';
import { CALLER, eventually, post, startGateway, type TestGateway } from '../../support/model-gateway.ts';
import { ModelCluster } from '../../support/model-cluster.ts';
import { startEngine, type EngineOptions, type ScriptedEngine } from '../../support/scripted-engine.ts';

type Body = Record<string, unknown>;
const SECRET = 'The code word of the merger is Bluebird.';
const ANSWER = { contentType: 'application/json', body: '{"choices":[],"data":[],"results":[]}' };
const PLAIN = { '/v1/completions': ANSWER, '/v1/embeddings': ANSWER, '/v1/rerank': ANSWER };
const CALLS: readonly [path: string, body: Body][] = [
  ['chat/completions', { messages: [{ role: 'user', content: SECRET }] }],
  ['responses', { input: SECRET }],
  ['messages', { max_tokens: 5, messages: [{ role: 'user', content: SECRET }] }],
  ['completions', { prompt: SECRET }],
  ['embeddings', { input: SECRET }],
  ['rerank', { query: SECRET, documents: ['a'] }],
];
const VLLM = { engine: 'vllm', version: '0.27.1' } as const;
const SGLANG = { engine: 'sglang', version: '0.5.17' } as const;
const B = { ...CALLER, namespace: 'tenant-b', keyId: 'key-2' };

describe('the prefix cache of a shared server', () => {
  const running: { close: () => Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of running.splice(0).toReversed()) await each.close();
  });

  async function start(options: EngineOptions, settings: Parameters<typeof startGateway>[1] = {}, namespace?: string) {
    const cluster = new ModelCluster();
    for (const name of ['tenant-a', 'tenant-b']) cluster.namespaces.put({ metadata: { name, uid: `uid-of-${name}` } });
    const gateway = await startGateway(cluster, settings);
    const engine = await startEngine({ dialects: ['chat', 'responses', 'messages'], plain: PLAIN, ...options });
    running.push(gateway, engine);
    cluster.serve({ name: 'tiny-server', ports: [engine.port], ...(namespace !== undefined && { namespace }) });
    await gateway.ready('tiny');
    return { gateway, engine, cluster };
  }

  /** Asks, and returns where the engine keeps the prompt: a cache that goes by the salt finds it again by the same one. */
  async function slotOf(gateway: TestGateway, engine: ScriptedEngine, path: string, body: Body): Promise<unknown> {
    const response = await post(gateway, path, { model: 'tiny', ...body });
    expect(response.status).toBe(200);
    return engine.received.at(-1)?.body.cache_salt;
  }

  it.each([
    ['vLLM', VLLM],
    ['SGLang', SGLANG],
  ])('of %s is found again by the same tenant alone, in every dialect and route', async (_name, options) => {
    const { gateway, engine } = await start(options);
    const slots = { a: new Set<unknown>(), b: new Set<unknown>() };
    for (const [path, body] of CALLS)
      for (const stream of [false, true]) {
        gateway.callAs(CALLER);
        slots.a.add(await slotOf(gateway, engine, path, { ...body, stream }));
        gateway.callAs(B);
        slots.b.add(await slotOf(gateway, engine, path, { ...body, stream }));
      }
    // The cache of a tenant is one for all ways of a prompt.
    expect([slots.a.size, slots.b.size]).toEqual([1, 1]);
    const [a, b] = [[...slots.a][0], [...slots.b][0]];
    expect(a).not.toBe(b);
    // Longer than anybody guesses, and no name of the tenant.
    for (const salt of [a, b]) expect(salt).toMatch(/^[\w-]{43}$/);
    expect(engine.received.filter(({ path }) => path === '/v1/messages')).toEqual([]);
  });

  it('is not opened by a salt, a session or a key that the client sends', async () => {
    const { gateway, engine } = await start(VLLM);
    for (const [path, body] of CALLS) {
      const own = await slotOf(gateway, engine, path, body);
      gateway.callAs(B);
      for (const cache_salt of [own, '', 'uid-of-tenant-a', `${String(own)}x`, null]) {
        const slot = await slotOf(gateway, engine, path, {
          ...body,
          cache_salt,
          extra_key: own,
          prompt_cache_key: own,
        });
        expect(slot).not.toBe(own);
        expect(slot).toMatch(/^[\w-]{43}$/);
      }
      gateway.callAs(CALLER);
      const [one, two] = [
        { ...body, cache_salt: '1' },
        { ...body, cache_salt: '2' },
      ];
      const slots = [await slotOf(gateway, engine, path, one), await slotOf(gateway, engine, path, two)];
      expect(new Set([own, ...slots]).size).toBe(3);
      expect(await slotOf(gateway, engine, path, one)).toBe(slots[0]);
      expect((await post(gateway, path, { model: 'tiny', ...body, cache_salt: [own] })).status).toBe(400);
    }
  });

  it('costs a body no digit, also where the client sent a salt', async () => {
    const { gateway, engine } = await start(VLLM);
    const rest = '"id":12345678901234567890,"messages":[{"role":"user","content":"Hi"}], "top_p":1.0}';
    await post(gateway, 'chat/completions', `{"model":"tiny", "cache_salt":"mine",${rest}`);
    expect(engine.received.at(-1)?.text.replace(/"cache_salt":"[\w-]{43}"/, '"cache_salt":"mine"')).toBe(
      `{"model":"tiny", "cache_salt":"mine",${rest}`,
    );
  });

  it('is the same at every replica, and another for a namespace that is made anew', async () => {
    const [path, body] = CALLS[0] ?? ['', {}];
    const first = await start(VLLM);
    const second = await start(VLLM);
    const slot = await slotOf(first.gateway, first.engine, path, body);
    expect(await slotOf(second.gateway, second.engine, path, body)).toBe(slot);
    second.cluster.namespaces.put({ metadata: { name: 'tenant-a', uid: 'another' } });
    expect(await slotOf(second.gateway, second.engine, path, body)).not.toBe(slot);
  });

  it('stays apart while the shared key cannot be read, and no call waits for it', async () => {
    const reads: PromiseWithResolvers<Buffer>[] = [];
    const saltKey = (): Promise<Buffer> => {
      reads.push(Promise.withResolvers<Buffer>());
      return reads.at(-1)?.promise ?? Promise.reject(new Error('none'));
    };
    const { gateway, engine } = await start(VLLM, { saltKey });
    const [path, body] = CALLS[0] ?? ['', {}];
    const a = await slotOf(gateway, engine, path, body);
    gateway.callAs(B);
    expect(await slotOf(gateway, engine, path, body)).not.toBe(a);
    expect(reads).toHaveLength(1);
    reads[0]?.reject(new Error('The API server is away.'));
    gateway.callAs(CALLER);
    await eventually(async () => {
      expect(await slotOf(gateway, engine, path, body)).toBe(a);
      expect(reads).toHaveLength(2);
    });
    reads[1]?.resolve(Buffer.from('of all replicas'));
    await eventually(async () => expect(await slotOf(gateway, engine, path, body)).not.toBe(a));
  });

  it('leaves a server of the tenant itself, and engines without salts, as the client asks', async () => {
    const own = await start(VLLM, {}, CALLER.namespace);
    const [path, body] = CALLS[0] ?? ['', {}];
    expect(await slotOf(own.gateway, own.engine, path, body)).toBeUndefined();
    expect(await slotOf(own.gateway, own.engine, path, { ...body, cache_salt: 'mine' })).toBe('mine');
    for (const options of [
      { engine: 'unknown' },
      { engine: 'llama.cpp', version: 'b9000' },
      { engine: 'vllm', version: '0.10.2' },
    ] as const) {
      const other = await start(options);
      expect(await slotOf(other.gateway, other.engine, path, body)).toBeUndefined();
    }
  });

  it('is reached by a session of the same name only by chance', async () => {
    const { gateway, engine, cluster } = await start(VLLM);
    const second = await startEngine({ ...VLLM, dialects: ['chat'] });
    running.push(second);
    cluster.serve({ name: 'tiny-server', ports: [engine.port, second.port] });
    await gateway.ready('tiny', 2);
    const [path, body] = CALLS[0] ?? ['', {}];
    const homes: string[] = [];
    for (const caller of [CALLER, CALLER, B]) {
      gateway.callAs(caller);
      const own: number[] = [];
      for (let session = 0; session < 20; session += 1) {
        const before = second.received.length;
        await post(gateway, path, { model: 'tiny', ...body }, { headers: { 'session-id': `session-${session}` } });
        own.push(second.received.length - before);
      }
      homes.push(own.join(''));
    }
    expect(homes[0]).toBe(homes[1]);
    expect(homes[0]).not.toBe(homes[2]);
  });
});
