import { afterEach, describe, expect, it, vi } from 'vitest';
import { HangWatch } from '../../../src/gateway/balance/hang-watch.ts';
import type { Probe, Target } from '../../../src/gateway/discovery/types.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { CALLER, eventually, post, startGateway } from '../../support/model-gateway.ts';
import { scaledClock } from '../../support/scaled-clock.ts';
import { startEngine } from '../../support/scripted-engine.ts';

const SERVER = { namespace: 'a', name: 's', uid: 'u', aliases: [], problems: [] };
const PROBE: Probe = {
  engine: 'vllm',
  prefix: '',
  models: [],
  dialects: ['chat'],
  plainPaths: {},
  countTokens: false,
  tokenize: false,
};

function setup(engine: Probe['engine'] = 'vllm') {
  const clock = fakeClock();
  const target: Target = { key: 'pod', origin: '', restarts: '', server: SERVER, available: true };
  const endpoint = new Endpoint(target, clock);
  endpoint.update(target, { ...PROBE, engine });
  const ask = vi.fn(() => Promise.resolve());
  const watch = new HangWatch({ endpoints: () => [endpoint], ask, clock });
  watch.start();
  const fly = (options: { promptTokens?: number; isStream?: boolean } = {}) => {
    const spies = { giveUp: vi.fn<(error: Error) => void>(), letGo: vi.fn<() => void>() };
    const flight = {
      begunAt: clock.monotonic(),
      isStream: true,
      promptTokens: 250,
      answered: false,
      ...spies,
      ...options,
    };
    endpoint.flights.add(flight);
    return flight;
  };
  return { clock, endpoint, ask, watch, fly };
}

const dead = () => Promise.reject(new Error('No answer.'));

describe('the watch for servers that hang', () => {
  it('gives up the calls of a server that answers no question either, and rests it until it answers one', async () => {
    const { clock, endpoint, ask, fly } = setup();
    const flight = fly();
    ask.mockImplementation(dead);
    await clock.advance(20_000);
    expect(flight.giveUp).not.toHaveBeenCalled();
    expect(endpoint.breaker.permits('anyone')).toBe(true);
    await clock.advance(25_000);
    expect(flight.giveUp).toHaveBeenCalledWith(expect.objectContaining({ name: 'HungError' }));
    endpoint.flights.delete(flight);
    await clock.advance(120_000);
    expect(endpoint.breaker.permits('anyone')).toBe(false);
    ask.mockImplementation(() => Promise.resolve());
    await clock.advance(20_000);
    expect(endpoint.breaker.permits('anyone')).toBe(true);
  });

  it('waits for a server that thinks for long and answers questions', async () => {
    const { clock, endpoint, ask, fly } = setup();
    const flight = fly();
    await clock.advance(590_000);
    expect(ask).toHaveBeenCalled();
    expect(flight.giveUp).not.toHaveBeenCalled();
    expect(endpoint.breaker.permits('anyone')).toBe(true);
  });

  it('asks nothing while any call gets bytes, or none waits', async () => {
    const { clock, endpoint, ask, fly } = setup();
    const busy = fly();
    fly();
    for (let second = 0; second < 60; second += 1) {
      endpoint.heard(busy, clock.monotonic());
      await clock.advance(1000);
    }
    for (const flight of endpoint.flights) endpoint.flights.delete(flight);
    await clock.advance(60_000);
    expect(ask).not.toHaveBeenCalled();
  });

  it('asks no engine that it does not know: such an engine may do one thing at a time', async () => {
    const { clock, ask, fly } = setup('unknown');
    const flight = fly();
    await clock.advance(590_000);
    expect(ask).not.toHaveBeenCalled();
    expect(flight.giveUp).not.toHaveBeenCalled();
  });

  it('two questions without an answer are no hang when the third has one', async () => {
    const { clock, ask, fly } = setup();
    const flight = fly();
    ask.mockImplementationOnce(dead).mockImplementationOnce(dead);
    await clock.advance(120_000);
    expect(flight.giveUp).not.toHaveBeenCalled();
  });

  it('gives up a stream that later ones have overtaken, after 120 s and 10 ms per token', async () => {
    const { clock, endpoint, fly } = setup();
    const lost = fly();
    const long = fly({ promptTokens: 20_000 });
    const whole = fly({ isStream: false });
    const early = fly();
    endpoint.heard(early, clock.monotonic());
    await clock.advance(200_000);
    expect(lost.giveUp).not.toHaveBeenCalled();
    endpoint.heard(fly(), clock.monotonic());
    await clock.advance(5000);
    expect(lost.giveUp).toHaveBeenCalledWith(expect.objectContaining({ name: 'LostError' }));
    expect(whole.giveUp).not.toHaveBeenCalled();
    expect(long.giveUp).not.toHaveBeenCalled();
    expect(endpoint.breaker.permits('anyone')).toBe(true);
    await clock.advance(120_000);
    expect(long.giveUp).toHaveBeenCalled();
  });

  it('lets go of the body of a call after a minute without a byte', async () => {
    const { clock, fly } = setup();
    const flight = fly();
    await clock.advance(59_000);
    expect(flight.letGo).not.toHaveBeenCalled();
    await clock.advance(5000);
    expect(flight.letGo).toHaveBeenCalled();
  });
});

describe('a server that hangs', () => {
  const ends: (() => unknown)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  it('loses its calls to another one', async () => {
    const engines = await Promise.all([startEngine(), startEngine()]);
    ends.push(() => Promise.all(engines.map((engine) => engine.close())));
    const gateway = await startGateway(undefined, { clock: scaledClock(20) });
    ends.unshift(() => gateway.close());
    gateway.cluster.serve({ name: 'tiny-server', ports: engines.map(({ port }) => port) });
    await gateway.ready('tiny', 2);
    const chat = { model: 'tiny', messages: [{ role: 'user', content: 'Say hello' }], stream: true };
    await (await post(gateway, 'chat/completions', chat)).text();
    const home = engines.findIndex(({ received }) => received.length > 0);
    engines[home]?.freeze();
    const text = await (await post(gateway, 'chat/completions', chat)).text();
    expect(text).toContain('[DONE]');
    expect(text).not.toContain('"error"');
    expect(engines[home]?.received).toHaveLength(2);
    await eventually(() => expect(engines[home]?.received[1]?.abortedAt).toBeDefined());
    // Other tenants are spared the wait.
    gateway.callAs({ ...CALLER, namespace: 'other', keyId: 'other' });
    await (await post(gateway, 'chat/completions', chat)).text();
    expect(engines[home]?.received).toHaveLength(2);
  });
});
