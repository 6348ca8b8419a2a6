import { inject } from 'vitest';
import { createKey } from '../../src/access/create-key.ts';
import { SERVICES } from '../../src/kube/types.ts';
import type { ApiKeySpec } from '../../src/resources/api-key.ts';
import { type BerthProcess, startBerth } from './berth-process.ts';
import { type Call, clientOf } from './http/client.ts';
import type { ScriptedEngine } from './scripted-engine.ts';
import { serveModel } from './serve-model.ts';
import { type TestNamespace, testNamespace } from './test-cluster.ts';
import { waitFor } from './wait-for.ts';

/** A model of Berth's own namespace that has a price, the roles that serve it, and a tenant with a key to call it. */
export interface PricedModel extends AsyncDisposable {
  tenant: TestNamespace;
  engine: ScriptedEngine;
  /** In the order of the roles. A test may end some of them before the others, and takes those out. */
  berths: BerthProcess[];
  key: { name: string; token: string };
  /** Calls as the key by each replica of the api role. */
  calls: Call[];
}

/** @param prices annotations of the model's Service */
export async function pricedModel({
  model,
  prices,
  roles,
  key: wanted,
}: {
  model: string;
  prices: Readonly<Record<string, string>>;
  roles: readonly ('controller' | 'api')[];
  key: Pick<ApiKeySpec, 'displayName' | 'scopes' | 'limits'>;
}): Promise<PricedModel> {
  const [home, tenant] = await Promise.all([testNamespace(), testNamespace()]);
  const engine = await serveModel(home, { models: [model] });
  const service = { namespace: home.name, name: 'engine' };
  await home.client.patch(SERVICES, service, { metadata: { annotations: prices } }, { type: 'merge' });
  const { kubeconfig } = inject('cluster');
  const berths = await Promise.all(roles.map((role) => startBerth(kubeconfig, role, home.name)));
  const key = await createKey(tenant.client, { ...wanted, namespace: tenant.name });
  const calls = berths.filter((_, index) => roles[index] === 'api').map(({ url }) => clientOf(url, key.token));
  for (const call of calls)
    await waitFor('the price', async () => (await call('GET', '/models')).text.includes('price_per_million_tokens'));
  return {
    tenant,
    engine,
    berths,
    key,
    calls,
    async [Symbol.asyncDispose]() {
      await Promise.all(berths.map((one) => one[Symbol.asyncDispose]()));
      await engine.close();
      await Promise.all([home[Symbol.asyncDispose](), tenant[Symbol.asyncDispose]()]);
    },
  };
}
