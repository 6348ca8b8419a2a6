import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import type { KubeConnection } from '../../../src/kube/config/config.ts';
import { BERTH_EDIT } from '../../support/accounts.ts';
import { addRentalFlow } from '../../support/rental-flow.ts';
import { connectAs } from '../../support/role-account.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let space: TestNamespace;
let tenant: KubeConnection;

beforeAll(async () => {
  space = await testNamespace();
  const { client, name: namespace } = space;
  tenant = await connectAs(client, inject('cluster').kubeconfig, { namespace, name: 'tenant', rules: BERTH_EDIT });
});
afterAll(async () => {
  await tenant.close();
  await space[Symbol.asyncDispose]();
});

/** Which FlowSchema the API server took for a call of the tenant. */
async function flowOf(method: 'GET' | 'POST', body?: object): Promise<unknown> {
  const path = `/apis/berth.dev/v1alpha1/namespaces/${space.name}/gpuinstances${body === undefined ? '' : '?dryRun=All'}`;
  const headers = { ...(await tenant.headers()), 'content-type': 'application/json' };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await tenant.calls.request({ method, path, headers, ...sent });
  await answer.body.dump();
  return answer.headers['x-kubernetes-pf-flowschema-uid'];
}

it('gives creations of instances places of their own in the API server, and nothing else', async () => {
  const { metadata } = await addRentalFlow(space.client);
  const instance = { apiVersion: 'berth.dev/v1alpha1', kind: 'GPUInstance', spec: { gpu: { count: 1 } } };
  const create = () => flowOf('POST', { ...instance, metadata: { generateName: 'i-' } });
  await waitFor('the FlowSchema to be in force', async () => (await create()) === metadata.uid);
  expect(await flowOf('GET')).not.toBe(metadata.uid);
});
