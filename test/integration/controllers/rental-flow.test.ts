import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type KubeConnection, loadKubeConfig } from '../../../src/kube/config/config.ts';
import { account, BERTH_EDIT, tokenOf } from '../../support/accounts.ts';
import { addRentalFlow } from '../../support/rental-flow.ts';
import { writeKubeconfigOf } from '../../support/role-account.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

let space: TestNamespace;
let folder: string;
let tenant: KubeConnection;

beforeAll(async () => {
  space = await testNamespace();
  folder = await mkdtemp(join(tmpdir(), 'berth-flow-'));
  await account(space.client, space.name, 'tenant', BERTH_EDIT);
  const token = await tokenOf(space.client, space.name, 'tenant', []);
  const kubeconfig = await writeKubeconfigOf(join(folder, 'tenant'), inject('cluster').kubeconfig, token);
  tenant = await loadKubeConfig({ kubeconfig });
});
afterAll(async () => {
  await tenant.close();
  await rm(folder, { recursive: true });
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
