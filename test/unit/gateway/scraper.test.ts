import { expect, it } from 'vitest';
import { Scraper } from '../../../src/gateway/balance/scraper.ts';
import { Endpoint } from '../../../src/gateway/endpoint.ts';
import { fakeClock } from '../../support/fake-clock.ts';

it('reads every server in turn, whatever the others answer', async () => {
  const clock = fakeClock();
  clock.stall(1000);
  const endpoints = Array.from({ length: 9 }, (_, index) => {
    const server = { namespace: 'a', name: 's', uid: 'u', shared: false, aliases: [], created: 0, problems: [] };
    const target = { key: `k${index}`, origin: `http://${index}`, restarts: '1', server, available: true };
    const endpoint = new Endpoint(target, clock);
    endpoint.update(target, {
      engine: 'llama.cpp',
      prefix: '',
      models: [],
      dialects: ['chat'],
      plainPaths: {},
      countTokens: false,
      tokenize: false,
    });
    return endpoint;
  });
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
