import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { RESOURCE_QUOTAS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import type { Cluster } from '../../support/http/api.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { openCluster } from '../../support/http/open.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = 'TEST-GPU-QUOTA';

let cluster: Cluster;
let controller: BerthProcess;
let namespace: string;
let call: Call;
let removeNode: () => Promise<void>;

beforeAll(async () => {
  cluster = await openCluster();
  namespace = await cluster.namespace('http-quota');
  const quota = { metadata: { namespace, name: 'none' }, spec: { hard: { 'requests.nvidia.com/gpu': '0' } } };
  await cluster.client.create(RESOURCE_QUOTAS, quota);
  await waitFor('the quota to be counted', async () => {
    const { status } = await cluster.client.get(RESOURCE_QUOTAS, quota.metadata);
    return status?.hard !== undefined;
  });
  call = clientOf(cluster.api.url, await cluster.key(namespace));
  removeNode = await addNode(cluster.client, gpuNode('node-test-gpu-quota', PRODUCT, 8));
  controller = await startBerth(
    inject('cluster').kubeconfig,
    'controller',
    await cluster.namespace('http-quota-berth'),
  );
});

afterAll(async () => {
  await controller[Symbol.asyncDispose]();
  await removeNode();
  await cluster[Symbol.asyncDispose]();
});

async function offer(): Promise<number | undefined> {
  const { data } = await call('GET', '/offers');
  const found = data.find((one) => one['gpu_name'] === PRODUCT && Number(one['available']) > 0);
  return found && Number(found['id']);
}

it.each([
  ['without an Idempotency-Key', {}],
  ['with one', { 'idempotency-key': 'order' }],
  ['with the same one again', { 'idempotency-key': 'order' }],
])('a quota without room is a no with its words, %s, and nothing is left', async (_name, headers) => {
  const id = await waitFor('the offer', offer);
  const { status, error } = await call('POST', '/instances', { ask_id: id }, headers);
  expect([status, error['code']]).toEqual([403, 'quota_exceeded']);
  expect(error['message']).toContain('ResourceQuota none allows 0 requests.nvidia.com/gpu');
  await waitFor('nothing', async () => (await cluster.client.list(GPU_INSTANCES, { namespace })).items.length === 0);
});
