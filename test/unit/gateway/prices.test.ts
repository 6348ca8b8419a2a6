import { describe, expect, it } from 'vitest';
import { buildCatalog, ModelCache } from '../../../src/gateway/discovery/catalog.ts';
import { readServer } from '../../../src/gateway/discovery/server-spec.ts';
import type { ServerSpec } from '../../../src/gateway/discovery/types.ts';
import type { Namespace, Service } from '../../../src/kube/types.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { eventually, startGateway } from '../../support/model-gateway.ts';
import { startEngine } from '../../support/scripted-engine.ts';
import { probeOf } from '../../support/probe.ts';

const OWN = 'berth-system';
const PRICES = {
  'berth.dev/price-input': '0.20',
  'berth.dev/price-cached-input': '0.05',
  'berth.dev/price-output': '0.60',
  'berth.dev/price-currency': 'EUR',
};
const READ = { input: '0.20', cachedInput: '0.05', output: '0.60', currency: 'EUR' };

function read(annotations: Record<string, string>, { namespace = OWN, labels = {} } = {}): ServerSpec {
  const service: Service = {
    metadata: { name: 'llm', namespace, labels: { 'berth.dev/model-server': 'true' }, annotations },
    spec: {},
  };
  const find = (name: string): Namespace => ({ metadata: { name, labels } });
  const server = readServer(service, { own: OWN, find, mayScale: () => false });
  if (server === undefined) throw new Error('it is no model server');
  return server;
}

describe('the price of a model', () => {
  it('stands in annotations of its Service, and cached input costs what input costs where nothing else is said', () => {
    expect(read(PRICES).prices).toEqual(READ);
    const { 'berth.dev/price-cached-input': _cached, ...others } = PRICES;
    expect(read(others).prices).toEqual({ ...READ, cachedInput: '0.20' });
    expect(read({}).prices).toBeUndefined();
    expect(read({}).problems).toEqual([]);
  });

  it('counts in no namespace where a tenant may write the Service, shared or not', () => {
    const shared = { ...PRICES, 'berth.dev/shared': 'true' };
    for (const labels of [{}, { 'berth.dev/shared-models': 'true' }, { 'berth.dev/priced-models': 'yes' }]) {
      const { prices, problems } = read(shared, { namespace: 'tenant-a', labels });
      expect(prices).toBeUndefined();
      expect(problems.join()).toContain('berth.dev/priced-models=true on the namespace');
    }
    const labels = { 'berth.dev/shared-models': 'true', 'berth.dev/priced-models': 'true' };
    expect(read(shared, { namespace: 'ml-platform', labels }).prices).toEqual(READ);
  });

  it.each([
    ['berth.dev/price-input', '-1'],
    ['berth.dev/price-input', '1e3'],
    ['berth.dev/price-output', '0.0000001'],
    ['berth.dev/price-output', ''],
    ['berth.dev/price-cached-input', '1,5'],
    ['berth.dev/price-currency', 'Euro'],
  ])('is none where %s is %j, and the log says so', (name, value) => {
    const { prices, problems } = read({ ...PRICES, [name]: value });
    expect(prices).toBeUndefined();
    expect(problems).toEqual([expect.stringContaining('the model has no price')]);
  });

  it('is that of the oldest Service with the name, and nothing for the tenant whose servers they are', () => {
    const probe = probeOf({ models: [{ id: 'tiny' }] });
    const spec = (name: string, createdAt: number, input: string): ServerSpec => ({
      ...read({ ...PRICES, 'berth.dev/price-input': input }),
      name,
      uid: name,
      createdAt,
    });
    const states = [spec('newer', 2, '9.00'), spec('older', 1, '0.30')].map((server) => {
      return { server, endpoints: [], lastProbe: probe };
    });
    const catalog = buildCatalog(states, new ModelCache(fakeClock()));
    expect(catalog.find('tenant-a', 'tiny')?.prices?.input).toBe('0.30');
    expect(catalog.find(OWN, 'tiny')?.prices).toBeUndefined();
  });
});

it('the list of models shows the price, and follows the label of the namespace', async () => {
  const engine = await startEngine();
  const gateway = await startGateway();
  try {
    const annotations = { ...PRICES, 'berth.dev/shared': 'true' };
    gateway.cluster.letShare('ml-platform');
    gateway.cluster.serve({ name: 'llm', namespace: 'ml-platform', annotations, ports: [engine.port] });
    await gateway.ready('tiny');
    const priceNow = async (): Promise<unknown> => {
      const answer = await fetch(`${gateway.base}/v1/models/tiny`);
      return ((await answer.json()) as { price_per_million_tokens?: unknown }).price_per_million_tokens;
    };
    expect(await priceNow()).toBeUndefined();
    const labels = { 'berth.dev/shared-models': 'true', 'berth.dev/priced-models': 'true' };
    const metadata = { name: 'ml-platform', creationTimestamp: '2026-01-01T00:00:00Z', labels };
    gateway.cluster.namespaces.put({ metadata });
    const shown = { input: '0.20', cached_input: '0.05', output: '0.60', currency: 'EUR' };
    await eventually(async () => expect(await priceNow()).toEqual(shown));
  } finally {
    await gateway.close();
    await engine.close();
  }
});
