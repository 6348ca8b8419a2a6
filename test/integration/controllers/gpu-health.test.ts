import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { createKey } from '../../../src/access/create-key.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { EVENTS, NODES, PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { type BerthProcess, startBerth } from '../../support/berth-process.ts';
import { type Call, clientOf } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { waitFor } from '../../support/wait-for.ts';

const PRODUCT = 'NVIDIA-HEALTH-TEST';
const GPU = 'GPU-5f3c0de0-0000-4000-8000-000000000001';
const RESOURCE = 'nvidia.com/gpu';
/** The minute of grace, and time for a busy machine. */
const OVER_A_MINUTE_MS = 150_000;

let tenant: TestNamespace;
let berth: BerthProcess;
let call: Call;
let node: string;
let removeNode: () => Promise<void>;

beforeAll(async () => {
  tenant = await testNamespace();
  node = `${tenant.name}-node`;
  removeNode = await addNode(tenant.client, gpuNode(node, PRODUCT, 2));
  berth = await startBerth(inject('cluster').kubeconfig);
  const { token } = await createKey(tenant.client, { namespace: tenant.name });
  call = clientOf(berth.url, token);
  await waitFor('the key', async () => (await call('GET', '/offers')).status === 200);
});

afterAll(async () => {
  const { items } = await tenant.client.list(GPU_INSTANCES, { namespace: tenant.name });
  for (const { metadata } of items) await call('DELETE', `/instances/${metadata.name}`);
  await removeNode();
  await berth[Symbol.asyncDispose]();
  await tenant[Symbol.asyncDispose]();
});

/** Writes what a kubelet does when a device plugin says that a GPU is unhealthy: to the pod, and to the node. */
async function report(pod: string, health: string, allocatable: number): Promise<void> {
  const { client, name: namespace } = tenant;
  const options = { type: 'strategic', subresource: 'status' } as const;
  const allocatedResourcesStatus = [{ name: RESOURCE, resources: [{ resourceID: GPU, health }] }];
  const containerStatuses = [{ name: 'main', allocatedResourcesStatus }];
  await client.patch(PODS, { namespace, name: pod }, { status: { containerStatuses } }, options);
  const status = { allocatable: { [RESOURCE]: String(allocatable) } };
  await client.patch(NODES, { name: node }, { status }, options);
}

function stored(id: string): Promise<GpuInstance> {
  return tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name: id });
}

async function warningsOf(id: string): Promise<string[]> {
  return (await call('GET', `/instances/${id}`)).json['warnings'] as string[];
}

async function reasonsOf(id: string): Promise<string[]> {
  const { json } = await call('GET', `/instances/${id}/events`);
  return (json['data'] as { reason: string }[]).map(({ reason }) => reason);
}

async function sickNodes(): Promise<string[]> {
  const text = await (await fetch(`${berth.metricsUrl}/metrics`)).text();
  return text.split('\n').filter((line) => line.startsWith('berth_unhealthy_gpus{') && line.includes(PRODUCT));
}

it(
  'an instance is told of a GPU that fails, keeps it as its owner chose, and leaves it when the owner says so',
  { timeout: OVER_A_MINUTE_MS + 120_000 },
  async () => {
    const rented = await call('POST', '/instances', { gpu: { name: PRODUCT, count: 1 } });
    expect([rented.status, rented.json['on_gpu_failure']]).toEqual([201, 'keep']);
    const { id } = rented;
    const running = async () => (await call('GET', `/instances/${id}`)).json['state'] === 'running';
    await waitFor('the instance to run', running, 60_000);
    await report(`${id}-1`, 'Healthy', 2);
    await waitFor('the report', async () => findCondition((await stored(id)).status?.conditions, 'GPUHealthy'));
    expect(await warningsOf(id)).not.toContainEqual(expect.stringContaining(GPU));

    await report(`${id}-1`, 'Unhealthy', 1);
    const warning = await waitFor('the warning', async () => (await warningsOf(id)).find((text) => text.includes(GPU)));
    expect(warning).toMatch(/is unhealthy.*is still billed/);
    const told = (await stored(id)).status;
    expect(findCondition(told?.conditions, 'GPUHealthy')).toMatchObject({ status: 'False', reason: 'Unhealthy' });
    expect(told?.unhealthyGPUs?.map((gpu) => gpu.id)).toEqual([GPU]);
    expect(await reasonsOf(id)).toContain('GPUBecameUnhealthy');
    await waitFor('the Event', async () => {
      const { items } = await tenant.client.list(EVENTS, { namespace: tenant.name });
      return items.some(({ involvedObject, reason }) => involvedObject.name === id && reason === 'GPUBecameUnhealthy');
    });
    expect(await waitFor('the metric', async () => (await sickNodes())[0])).toBe(
      `berth_unhealthy_gpus{node="${node}",product="${PRODUCT}"} 1`,
    );
    expect(await running()).toBe(true);

    const changed = await call('PATCH', `/instances/${id}`, { on_gpu_failure: 'restart' });
    expect([changed.status, changed.json['on_gpu_failure'], changed.json['state']]).toEqual([
      200,
      'restart',
      'running',
    ]);
    const next = await waitFor(
      'the next start',
      async () => {
        const now = await stored(id);
        return now.status?.incarnation === 2 && now.status.stages?.ready !== undefined && now;
      },
      OVER_A_MINUTE_MS,
    );
    // The GPUs of the place are as many as are healthy.
    expect(next.status).toMatchObject({ claim: { node }, podName: `${id}-2` });
    expect(next.status?.unhealthyGPUs).toBeUndefined();
    expect(await warningsOf(id)).not.toContainEqual(expect.stringContaining(GPU));
    await waitFor('the whole history', async () => (await reasonsOf(id)).includes('GPUUnhealthy'), 60_000);
    expect(await reasonsOf(id)).toContain('GPUBecameUnhealthy');
    const [bill] = next.status?.intervals ?? [];
    const kept = Date.parse(bill?.to ?? '') - Date.parse(told?.unhealthyGPUs?.[0]?.since ?? '');
    // Billed for as long as it was kept, and no longer: the pod ended after that.
    expect(kept).toBeGreaterThanOrEqual(60_000);
    expect(Date.parse(bill?.to ?? '')).toBeLessThanOrEqual(Date.parse(next.status?.claim?.grantedAt ?? ''));
  },
);
