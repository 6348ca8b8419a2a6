import { describe, expect, it, vi } from 'vitest';
import { parseLoad } from '../../../src/gateway/balance/load-metrics.ts';
import { Model } from '../../../src/gateway/balance/model.ts';
import type { Target } from '../../../src/gateway/discovery/types.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import { fakeClock } from '../../support/fake-clock.ts';

function modelWith(count: number) {
  const clock = fakeClock();
  clock.stall(10_000);
  const server = { namespace: 'a', name: 's', uid: 'u', aliases: [], problems: [] };
  const endpoints = Array.from({ length: count }, (_, index) => {
    const key = `pod-${index}`;
    const target: Target = { key, place: key, origin: '', restarts: '', server, available: true };
    return new Endpoint(target, clock);
  });
  const model = new Model(
    'tiny',
    endpoints.map((endpoint) => ({ endpoint, upstreamModel: 'tiny' })),
    clock,
  );
  return { model, endpoints, clock };
}

describe('Model', () => {
  it('without a key picks where the fewest requests are outstanding, and spreads ties', () => {
    const { model, endpoints } = modelWith(3);
    const picked = new Set([0, 1, 2].map(() => model.pick(undefined, [], 'tenant')?.endpoint));
    expect(picked.size).toBe(3);
    for (const [index, endpoint] of endpoints.entries()) endpoint.inFlight = [2, 1, 3][index] ?? 0;
    for (let count = 0; count < 5; count += 1) expect(model.pick(undefined, [], 'tenant')?.endpoint).toBe(endpoints[1]);
  });

  it('with a key stays on one endpoint until that one is above its share', () => {
    const { model } = modelWith(4);
    const home = model.pick(12_345, [], 'tenant')?.endpoint as Endpoint;
    home.inFlight = 1;
    expect(model.pick(12_345, [], 'tenant')?.endpoint).not.toBe(home);
    for (const { endpoint } of model.members) endpoint.inFlight = 5;
    expect(model.pick(12_345, [], 'tenant')?.endpoint).toBe(home);
  });

  it('never picks an endpoint that was tried, drains, or has an open breaker', () => {
    const { model, endpoints } = modelWith(4);
    const [tried, draining, open, good] = endpoints as [Endpoint, Endpoint, Endpoint, Endpoint];
    draining.available = false;
    for (let count = 0; count < 3; count += 1) open.breaker.fail('connection', 0);
    for (let key = 0; key < 50; key += 1) expect(model.pick(key * 80_000_000, [tried], 'tenant')?.endpoint).toBe(good);
    expect(model.pick(undefined, [tried, good], 'tenant')).toBeUndefined();
    expect(model.readyCount).toBe(3);
  });

  it('avoids servers whose fresh metrics call them saturated while another is not', () => {
    const { model, endpoints, clock } = modelWith(2);
    const [full, free] = endpoints as [Endpoint, Endpoint];
    full.load = { waiting: 9, running: 4, ranks: 1, kvUsage: 0.5, at: clock.monotonic() };
    const keys = Array.from({ length: 40 }, (_, index) => index * 100_000_000);
    for (const key of keys) expect(model.pick(key, [], 'tenant')?.endpoint).toBe(free);
    expect(model.pick(0, [free], 'tenant')?.endpoint).toBe(full);
    clock.stall(5001);
    expect(new Set(keys.map((key) => model.pick(key, [], 'tenant')?.endpoint)).size).toBe(2);
  });

  it('says when an endpoint may be tried again', () => {
    const { model, endpoints } = modelWith(2);
    expect(model.waitMs('tenant')).toBe(0);
    for (const endpoint of endpoints) endpoint.breaker.rest(3000);
    expect(model.waitMs('tenant')).toBe(3000);
    for (const endpoint of endpoints) endpoint.available = false;
    expect(model.waitMs('tenant')).toBeUndefined();
  });
});

describe('parseLoad', () => {
  it('reads the queue, the running requests and the cache of vLLM, new names and old', () => {
    const text = [
      '# HELP vllm:num_requests_waiting x',
      'vllm:num_requests_waiting{engine="0",model_name="a b"} 3.0',
      'vllm:num_requests_waiting{engine="1",model_name="a b"} 4',
      'vllm:num_requests_running{engine="0"} 2',
      'vllm:gpu_cache_usage_perc{engine="0"} 0.25',
      'vllm:gpu_cache_usage_perc{engine="1"} 7.5e-1',
    ].join('\n');
    expect(parseLoad('vllm', text, 5)).toEqual({ waiting: 7, ranks: 2, running: 2, kvUsage: 0.75, at: 5 });
    expect(parseLoad('sglang', 'sglang:num_queue_reqs 1\nsglang:token_usage 0.1', 5)).toMatchObject({ waiting: 1 });
    expect(parseLoad('vllm', 'nothing here', 5)).toBeUndefined();
    expect(parseLoad('ollama', text, 5)).toBeUndefined();
  });

  it('takes only whole names at the start of a line', () => {
    const text = [
      'tgi_queue_size_total 9',
      'my_tgi_queue_size 9',
      '# TYPE tgi_queue_size gauge',
      'tgi_queue_size NaN',
      'tgi_queue_size ',
      'tgi_queue_size\t2 1700000000\r',
      'tgi_batch_current_size{le="} x"} 3',
    ].join('\n');
    expect(parseLoad('tgi', text, 5)).toEqual({ waiting: 2, ranks: 1, running: 3, kvUsage: 0, at: 5 });
  });

  it('ignores lines of other names', () => {
    const others = Array.from({ length: 100_000 }, (_, index) => `a${index}z 1`);
    const text = [...others, 'vllm:num_requests_waiting 3', ...others].join('\n');
    const execs = vi.spyOn(RegExp.prototype, 'exec');
    const load = parseLoad('vllm', text, 5);
    const { length } = execs.mock.calls;
    execs.mockRestore();
    expect(load).toMatchObject({ waiting: 3 });
    expect(length).toBeLessThan(10);
  });
});
