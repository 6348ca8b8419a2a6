import { expect, it, vi } from 'vitest';
import { Scraper } from '../../../src/gateway/balance/scraper.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import type { Clock } from '../../../src/lib/clock.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { probeOf } from '../../support/probe.ts';

function endpointOf(key: string, namespace: string, clock: Clock): Endpoint {
  const server = { namespace, name: 's', uid: 'u', aliases: [], problems: [] };
  const target = { key, place: key, origin: `http://${key}`, restarts: '1', server, available: true };
  const endpoint = new Endpoint(target, clock);
  endpoint.update(target, probeOf({ engine: 'llama.cpp' }));
  return endpoint;
}

it('reads every server in turn, whatever the others answer', async () => {
  const clock = fakeClock();
  clock.stall(1000);
  const endpoints = Array.from({ length: 9 }, (_, index) => endpointOf(`k${index}`, 'a', clock));
  const read: string[] = [];
  const scraper = new Scraper({
    endpoints: () => endpoints,
    fetch: ({ key }) => {
      read.push(key);
      return key === 'k8' ? Promise.resolve('llamacpp:requests_deferred 3\n') : Promise.reject(new Error('501'));
    },
    clock,
  });
  for (let count = 0; count < 2; count += 1) {
    scraper.round();
    await new Promise((resolve) => setImmediate(resolve));
    clock.stall(2000);
  }
  expect(read).toHaveLength(16);
  expect(new Set(read).size).toBe(9);
  expect(endpoints[8]?.load).toMatchObject({ waiting: 3 });
});

it('reads the server of a namespace at once beside many of others that hang', () => {
  const clock = fakeClock();
  clock.stall(1000);
  const hanging = ['b', 'c', 'd', 'e'].flatMap((namespace) =>
    Array.from({ length: 50 }, (_, index) => endpointOf(`${namespace}${index}`, namespace, clock)),
  );
  const endpoints = [...hanging];
  const fetch = vi.fn((_endpoint: Endpoint) => new Promise<string>(() => undefined));
  const scraper = new Scraper({ endpoints: () => endpoints, fetch, clock });
  scraper.round();
  endpoints.push(endpointOf('honest', 'a', clock));
  scraper.round();
  expect(fetch.mock.calls.map(([{ key }]) => key)).toContain('honest');
});
