import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { hashToken } from '../../../src/resources/api-key.ts';
import { createNamespace } from '../../../tools/cluster/apply.ts';
import { holdPolicies, kubectlAs } from '../../support/chart-policies.ts';
import { waitFor } from '../../support/wait-for.ts';

// The admission policies of the chart about namespaces that are no tenants. Nothing is made: the API server only judges.

const OWN = 'berth-system';
const API = 'system:serviceaccount:berth-system:berth-api';
const FORMER = `former-${Math.random().toString(36).slice(2, 8)}`;

const key = { kind: 'APIKey', spec: { hash: hashToken('x'), prefix: 'berth_x', displayName: 'x', revoked: false } };
const instance = { kind: 'GPUInstance', spec: { powerState: 'Stopped' } };
const template = { kind: 'InstanceTemplate', spec: { displayName: 'shared', image: 'debian:12' } };
const prices = { inputPrice: '1.00', cachedInputPrice: '1.00', outputPrice: '1.00' };
const counts = { calls: 1, unreported: 0, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
const record = {
  kind: 'TokenRecord',
  spec: {
    day: '2026-01-01',
    replica: 'r',
    calls: 1,
    cost: '0.00',
    currency: 'USD',
    entries: [{ by: 'key/x', model: 'm', ...prices, ...counts, cost: '0.00' }],
  },
};

let client: KubeClient;
const held: AsyncDisposable[] = [];

function judge(namespace: string, user: string, { kind, spec }: { kind: string; spec: object }): Promise<string> {
  const object = { apiVersion: 'berth.dev/v1alpha1', kind, metadata: { name: 'judged', namespace }, spec };
  return kubectlAs({ namespace, user }, ['create', '--dry-run=server', '-f', '-'], object);
}

beforeAll(async () => {
  client = createKubeClient(await loadKubeConfig({ kubeconfig: inject('cluster').kubeconfig }), {
    clock: systemClock(),
  });
  await createNamespace(client, OWN, new AbortController().signal);
  await client.create(NAMESPACES, { metadata: { name: FORMER } });
  held.push(await holdPolicies(client, ['berth-own-namespace'], OWN));
  held.push(await holdPolicies(client, ['berth-tenants', 'berth-status'], FORMER));
  const refused = async (namespace: string) => (await judge(namespace, 'eve', key)) !== 'done';
  await waitFor('the policies to be in force', async () => (await refused(OWN)) && (await refused(FORMER)));
});

afterAll(async () => {
  for (const one of held) await one[Symbol.asyncDispose]();
  await client.delete(NAMESPACES, { name: FORMER });
  await client.close();
});

test.each([key, instance])(
  "nobody makes a $kind in Berth's own namespace, not even an administrator",
  async (object) => {
    expect(await judge(OWN, 'eve', object)).toContain("this namespace is Berth's own and no tenant");
  },
);

test("templates in Berth's own namespace are shared, and let in", async () => {
  expect(await judge(OWN, 'eve', template)).toBe('done');
});

test('calls that were answered are billed in a namespace that is no tenant any more, by the api role alone', async () => {
  expect(await judge(FORMER, API, record)).toBe('done');
  expect(await judge(FORMER, 'eve', record)).toContain("only Berth's api role writes tokenrecords");
  expect(await judge(FORMER, API, instance)).toContain('is no tenant of Berth');
});
