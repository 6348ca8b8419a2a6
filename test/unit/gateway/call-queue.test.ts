import { describe, expect, it } from 'vitest';
import { Model } from '../../../src/gateway/balance/model.ts';
import type { Prompt } from '../../../src/gateway/balance/prefill.ts';
import type { Target } from '../../../src/gateway/discovery/types.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import type { Priority } from '../../../src/resources/api-key.ts';
import { CallQueue, type Turn } from '../../../src/gateway/queue/call-queue.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

const PRICES = { input: '1', cachedInput: '1', output: '1', currency: 'USD' };

interface Asked {
  tokens?: number;
  bytes?: number;
  unable?: Endpoint[];
  prompt?: Prompt;
  priority?: Priority;
}

function setup(count = 1) {
  const clock = fakeClock();
  clock.stall(1000);
  const stopping = new AbortController();
  const endpoints = Array.from({ length: count }, (_, index) => endpointOf(`pod-${index}`));
  function endpointOf(key: string, uid = 'u'): Endpoint {
    const server = { namespace: 'a', name: 's', uid, aliases: [], problems: [] };
    const target: Target = { key, place: key, origin: '', restarts: '', server, available: true };
    const endpoint = new Endpoint(target, clock);
    endpoint.window.size = 1;
    return endpoint;
  }
  const modelOf = (...own: Endpoint[]): Model =>
    new Model(
      'tiny',
      own.map((endpoint) => ({ endpoint, upstreamModel: 'tiny' })),
      clock,
    );
  const world = { model: modelOf(...endpoints) as Model | undefined };
  const first = world.model as Model;
  const waited: number[] = [];
  const queue = new CallQueue({
    find: () => world.model,
    read: () => undefined,
    waited: (_model, seconds) => waited.push(seconds),
    stopping: stopping.signal,
    clock,
  });
  const leaves: ((error: Error) => void)[] = [];
  const wait = (
    tenant: string,
    { tokens = 100, bytes = 1, unable = [], prompt = promptOf(tokens), priority = 'normal' }: Asked = {},
  ) =>
    queue.wait({
      tenant,
      priority,
      model: first,
      servers: new Map([['u', 'tiny']]),
      isShared: false,
      prices: first.prices,
      key: undefined,
      unable: () => unable,
      prompt,
      tokens,
      bytes,
      onLeave: (leave) => leaves.push(leave),
    });
  const free = (endpoint = endpoints[0] as Endpoint): void => {
    endpoint.inFlight -= 1;
    queue.freed(endpoint);
  };
  return { clock, queue, stopping, endpoints, endpointOf, modelOf, first, world, wait, leaves, free, waited };
}

function promptOf(promptTokens: number, stream = true): Prompt {
  return { promptTokens, inspection: { stream } };
}

/** What came of calls, as far as it has. */
function outcomes(calls: readonly Promise<Turn | undefined>[]): (string | undefined)[] {
  const found: (string | undefined)[] = calls.map(() => undefined);
  for (const [index, call] of calls.entries()) {
    void call.then(
      (turn) => (found[index] = turn?.member.endpoint.key ?? 'none'),
      (error: unknown) => (found[index] = String(error)),
    );
  }
  return found;
}

describe('calls to a busy server', () => {
  it('wait until one has ended, and the place counts as taken at once', async () => {
    const { queue, endpoints, first, wait, free, clock, waited } = setup();
    const found = outcomes([wait('a'), wait('a'), wait('b')]);
    await settle();
    expect(found).toEqual(['pod-0', undefined, undefined]);
    expect([endpoints[0]?.inFlight, queue.isWaitedFor(first), queue.models.length]).toEqual([1, true, 2]);
    await clock.advance(3000);
    free();
    await settle();
    // The first call of the one tenant was served: now the other has had the least.
    expect(found).toEqual(['pod-0', undefined, 'pod-0']);
    free();
    await settle();
    expect(found[1]).toBe('pod-0');
    expect([queue.isWaitedFor(first), queue.models.length, clock.pending]).toEqual([false, 0, 0]);
    expect(waited).toEqual([0, 3, 3]);
  });

  it('wait while an engine reads a long prompt, so that another tenant waits for one at most', async () => {
    const { endpoints, queue, wait, clock } = setup();
    const [engine] = endpoints as [Endpoint];
    engine.window.size = 100;
    engine.measured({ waiting: 0, running: 0, ranks: 1, kvUsage: 0, at: clock.monotonic() });
    const flood = Array.from({ length: 4 }, () => promptOf(10_000));
    const begins = (prompt: Prompt): void => {
      engine.begun(prompt);
      queue.freed(engine);
    };
    const found = outcomes(flood.map((prompt) => wait('a', { tokens: 10_000, prompt })));
    const honest = outcomes([wait('b', { tokens: 10_000 })]);
    await settle();
    expect(found).toEqual(['pod-0', undefined, undefined, undefined]);
    await clock.advance(100);
    begins(flood[0] as Prompt);
    await settle();
    expect([...honest, ...found]).toEqual(['pod-0', 'pod-0', undefined, undefined, undefined]);
    // It reads 100 tokens in a millisecond: the next one goes there before it has read that of the other tenant.
    await clock.advance(69);
    expect(found[1]).toBeUndefined();
    await clock.advance(1);
    expect(found).toEqual(['pod-0', 'pod-0', undefined, undefined]);
  });

  it.each([
    ['says nothing of what it does', undefined],
    ['has several ranks', 2],
  ])('do not wait for the prompts of an engine that %s', async (_what, ranks) => {
    const { endpoints, wait, clock } = setup();
    const [engine] = endpoints as [Endpoint];
    engine.window.size = 3;
    if (ranks !== undefined) engine.measured({ waiting: 0, running: 0, ranks, kvUsage: 0, at: clock.monotonic() });
    const found = outcomes(Array.from({ length: 4 }, () => wait('a', { tokens: 10_000 })));
    await settle();
    expect(found).toEqual(['pod-0', 'pod-0', 'pod-0', undefined]);
  });

  it('go to whichever server of the model has room, unless it cannot take them', async () => {
    const { endpoints, wait, free } = setup(2);
    const found = outcomes([wait('a'), wait('a'), wait('b', { unable: [endpoints[1] as Endpoint] }), wait('c')]);
    await settle();
    expect(found.filter((one) => one !== undefined)).toHaveLength(2);
    free(endpoints[1]);
    await settle();
    expect(found.slice(2)).toEqual([undefined, 'pod-1']);
    free(endpoints[0]);
    await settle();
    expect(found[2]).toBe('pod-0');
  });

  it('are let through when a server turns out to have more room, without an answer that ends', async () => {
    const { endpoints, wait, clock } = setup();
    const found = outcomes([wait('a'), wait('a'), wait('a')]);
    await settle();
    (endpoints[0] as Endpoint).window.size = 2;
    await clock.advance(250);
    expect(found).toEqual(['pod-0', 'pod-0', undefined]);
  });

  it('give up their place when they leave', async () => {
    const { queue, wait, leaves, free } = setup();
    const found = outcomes([wait('a'), wait('b'), wait('c')]);
    await settle();
    leaves[1]?.(new Error('gone'));
    await settle();
    expect(found).toEqual(['pod-0', 'Error: gone', undefined]);
    free();
    await settle();
    expect(found[2]).toBe('pod-0');
    expect(queue.models).toEqual([]);
  });

  it('wait for two minutes, and are told how long the line is', async () => {
    const { queue, first, wait, free, clock } = setup();
    void wait('a');
    const late = wait('b');
    const found = outcomes([late]);
    for (let count = 0; count < 3; count += 1) {
      void wait('a').catch(() => undefined);
      await clock.advance(10_000);
    }
    expect(queue.lineOf(first, 'c')).toMatchObject({ waiting: 4 });
    await clock.advance(91_000);
    await settle();
    expect(found[0]).toContain('were busy for 120 s');
    await late.catch((error: unknown) => expect(error).toMatchObject({ status: 429 }));
    free();
  });

  it('are refused at once when the line is longer than they may wait, with the time until it is not', async () => {
    const { wait, free, clock, queue, first } = setup();
    for (let count = 0; count < 8; count += 1) void wait('a').catch(() => undefined);
    await settle();
    for (let count = 0; count < 2; count += 1) {
      await clock.advance(30_000);
      free();
      await settle();
    }
    // Three were served in a minute, and five wait.
    expect(queue.lineOf(first, 'a')).toMatchObject({ waiting: 5 });
    const refused = await wait('a').catch((error: unknown) => error);
    expect(refused).toMatchObject({ status: 429, message: expect.stringContaining('take about') as string });
    expect((refused as { retryAfterMs: number }).retryAfterMs).toBeLessThan(60_000);
    // One of high priority goes before those of its own tenant.
    const urgent = outcomes([wait('a', { priority: 'high' })]);
    await settle();
    expect(urgent).toEqual([undefined]);
    // A tenant that has none there is served after the next of the other.
    const other = outcomes([wait('b')]);
    await settle();
    expect(other).toEqual([undefined]);
  });

  it('have 256 places for a tenant, and there is room for another', async () => {
    const { wait, free } = setup();
    const held = outcomes([wait('a')]);
    await settle();
    const more = outcomes(Array.from({ length: 256 }, () => wait('a')));
    await expect(wait('a')).rejects.toMatchObject({
      status: 429,
      message: expect.stringContaining('256 calls') as string,
    });
    await expect(wait('a', { bytes: 65 * 2 ** 20 })).rejects.toMatchObject({ status: 429 });
    const honest = outcomes([wait('b')]);
    for (let count = 0; count < 2; count += 1) {
      free();
      await settle();
    }
    expect([held[0], honest[0], more.filter((one) => one !== undefined)]).toEqual(['pod-0', 'pod-0', ['pod-0']]);
  });
});

describe('calls of higher priority that find no place', () => {
  const MIB = 2 ** 20;

  async function full(priority: Priority, bytes = 1, count = 256) {
    const world = setup();
    void world.wait('a', { priority });
    await settle();
    return { ...world, held: outcomes(Array.from({ length: count }, () => world.wait('a', { priority, bytes }))) };
  }
  const placesOf = (held: readonly unknown[], what: string): number[] =>
    held.flatMap((one, index) => (String(one).includes(what) ? [index] : []));

  it('get that of the youngest of lower priority of their tenant, which hears how long the line is', async () => {
    const { wait, held, free, clock } = await full('low');
    await clock.advance(200);
    free();
    await settle();
    const other = outcomes([wait('b', { priority: 'low' })]);
    const late = wait('a', { priority: 'low' });
    const urgent = outcomes([wait('a', { priority: 'high' })]);
    await expect(late).rejects.toMatchObject({
      status: 429,
      message: expect.stringContaining('a call of higher priority of your namespace') as string,
      retryAfterMs: expect.toSatisfy((ms: number) => ms > 10_000 && ms < 120_000) as number,
    });
    free();
    await settle();
    free();
    await settle();
    expect([other[0], urgent[0]]).toEqual(['pod-0', 'pod-0']);
    expect(placesOf(held, 'Error')).toEqual([]);
  });

  it('take the place of low before normal, and no place of their own priority or of another tenant', async () => {
    const { wait, held, queue } = await full('low', 1, 255);
    const normal = outcomes([wait('a')]);
    const other = outcomes(Array.from({ length: 64 }, () => wait('b', { priority: 'low' })));
    const urgent = outcomes(Array.from({ length: 256 }, () => wait('a', { priority: 'high' })));
    await settle();
    expect(placesOf(held, 'higher priority')).toHaveLength(255);
    expect(normal[0]).toContain('higher priority');
    expect([...placesOf(other, 'Error'), ...placesOf(urgent, 'Error')]).toEqual([]);
    expect(queue.models).toHaveLength(256 + 64);
    await expect(wait('a', { priority: 'high' })).rejects.toThrow('at most 256 calls of your namespace');
  });

  it('take as many places as have their bytes, and none when all together have too few', async () => {
    const { wait, held, queue } = await full('low', 6 * MIB, 10);
    await expect(wait('a', { priority: 'high', bytes: 65 * MIB })).rejects.toThrow('at most 64 MiB');
    expect(queue.models).toHaveLength(10);
    const urgent = outcomes([wait('a', { priority: 'high', bytes: 16 * MIB })]);
    await settle();
    expect([placesOf(held, 'higher priority'), urgent[0]]).toEqual([[8, 9], undefined]);
    // 64 MiB are full now.
    await expect(wait('a', { priority: 'low' })).rejects.toThrow('at most 64 MiB');
  });

  it('leave the places that they took when they are over', async () => {
    const { wait, leaves, queue } = await full('low');
    const urgent = wait('a', { priority: 'high' });
    leaves.at(-1)?.(new Error('gone'));
    await expect(urgent).rejects.toThrow('gone');
    for (const leave of leaves) leave(new Error('gone'));
    await settle();
    expect(queue.models).toEqual([]);
    const again = outcomes(Array.from({ length: 257 }, () => wait('a')));
    await settle();
    expect([placesOf(again, 'Error'), queue.models.length]).toEqual([[256], 256]);
  });
});

describe('calls that wait while the servers change', () => {
  it('take no room once they were told', async () => {
    const { queue, world, endpoints, first, modelOf, wait } = setup();
    const found = outcomes([wait('a'), wait('a')]);
    await settle();
    const [engine] = endpoints as [Endpoint];
    // Both come with the same news.
    engine.window.size = 2;
    world.model = modelOf(engine);
    world.model.prices = PRICES;
    queue.changed();
    await settle();
    expect(found[1]).toContain('changed while the call waited');
    expect([engine.inFlight, first.members.length]).toEqual([1, 1]);
  });

  it('hear at once that no server is left', async () => {
    const { queue, world, modelOf, wait } = setup();
    const found = outcomes([wait('a'), wait('a')]);
    await settle();
    world.model = modelOf();
    queue.changed();
    await settle();
    expect(found).toEqual(['pod-0', 'none']);
  });

  it('hear at once that no server takes their tenant, and those of others wait on', async () => {
    const { endpoints, wait, clock } = setup();
    const found = outcomes([wait('a'), wait('a'), wait('b')]);
    await settle();
    const { breaker } = endpoints[0] as Endpoint;
    for (let count = 0; count < 3; count += 1) breaker.failFor('a', 'connection', breaker.begin('a'));
    await clock.advance(250);
    expect(found).toEqual(['pod-0', 'none', undefined]);
  });

  it('go on to the pods that take the place of those before', async () => {
    const { queue, world, modelOf, endpointOf, wait } = setup();
    const found = outcomes([wait('a'), wait('a')]);
    await settle();
    world.model = modelOf(endpointOf('pod-new'));
    queue.changed();
    await settle();
    expect(found).toEqual(['pod-0', 'pod-new']);
  });

  it.each<[string, (world: ReturnType<typeof setup>) => Model]>([
    ['another Service has the name', ({ modelOf, endpointOf }) => modelOf(endpointOf('other', 'v'))],
    [
      'it has another price',
      ({ modelOf, endpoints }) => {
        const model = modelOf(...endpoints);
        model.prices = PRICES;
        return model;
      },
    ],
  ])('are to be sent again when %s', async (_what, next) => {
    const world = setup();
    const found = outcomes([world.wait('a'), world.wait('a')]);
    await settle();
    world.world.model = next(world);
    world.queue.changed();
    await settle();
    expect(found[1]).toContain('changed while the call waited');
  });

  it('try a server that failed one at a time', async () => {
    const { endpoints, wait, clock } = setup(2);
    const [broken] = endpoints as [Endpoint, Endpoint];
    broken.window.size = 10;
    for (let count = 0; count < 3; count += 1) broken.breaker.fail('connection', broken.breaker.begin('x'));
    const found = outcomes(Array.from({ length: 6 }, () => wait('a')));
    await settle();
    expect(found.filter((one) => one !== undefined)).toEqual(['pod-1']);
    await clock.advance(1000);
    expect(found.filter((one) => one === 'pod-0')).toEqual(['pod-0']);
  });

  it('are sent to another replica when this one stops', async () => {
    const { stopping, wait } = setup();
    const found = outcomes([wait('a'), wait('a')]);
    await settle();
    stopping.abort();
    await settle();
    expect(found[1]).toContain('This replica of the gateway stops');
    await expect(wait('a')).rejects.toMatchObject({ status: 503, retryAfterMs: 1000 });
  });
});
