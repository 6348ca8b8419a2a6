import { afterAll, beforeAll, expect, it } from 'vitest';
import { usageSchema } from '../../../src/http/features/usage/schema.ts';
import { offerListSchema } from '../../../src/http/features/offers/schema.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import { InvalidError } from '../../../src/kube/errors.ts';
import { type Node, type Pod, PODS } from '../../../src/kube/types.ts';
import { GPU_POOLS, type GpuPool, type GpuPoolSpec, type PoolDevices } from '../../../src/resources/gpu-pool.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { TENANT_LIMIT_NAME, TENANT_LIMITS } from '../../../src/resources/tenants/tenant-limit.ts';
import { TENANT_POLICIES, type TenantPolicySpec } from '../../../src/resources/tenants/tenant-policy.ts';
import type { BerthProcess } from '../../support/berth-process.ts';
import type { Answer, Call } from '../../support/http/client.ts';
import { addNode, gpuNode } from '../../support/http/fleet.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { endRenting, startRenting } from '../../support/renting.ts';
import { waitFor } from '../../support/wait-for.ts';

const LABEL = 'berth.dev/test-makers';
const MI300X = 'TEST_Instinct_MI300X';
const FLEX = 'TEST_Flex_170';
const GAUDI = 'TEST-Gaudi-3';
const H100 = 'TEST-H100';

let berth: BerthProcess;
let tenant: TestNamespace;
let call: Call;
const ends: (() => Promise<unknown>)[] = [];

/** A node with these devices and labels alone. */
async function node(suffix: string, labels: Record<string, string>, devices: Record<string, string>): Promise<void> {
  const { metadata, status } = gpuNode(`${tenant.name}-${suffix}`, '', 0);
  const { 'nvidia.com/gpu': _none, ...sizes } = status?.allocatable ?? {};
  const own = Object.entries(metadata.labels ?? {}).filter(([name]) => !name.startsWith('nvidia.com/'));
  const resources = { ...sizes, ...devices };
  const made: Node = {
    metadata: { ...metadata, labels: { ...Object.fromEntries(own), [LABEL]: tenant.name, ...labels } },
    // The usual taint of nodes with devices: the name of the resource.
    spec: {
      taints: Object.keys(devices)
        .slice(0, 1)
        .map((key) => ({ key, value: 'present', effect: 'NoSchedule' })),
    },
    status: { allocatable: resources, capacity: resources },
  };
  ends.push(await addNode(tenant.client, made));
}

function poolName(suffix: string): string {
  return `${tenant.name}-${suffix}`;
}

/** All pools select all nodes of the test: which of them a node is in depends on its GPUs. */
async function pool(suffix: string, devices: PoolDevices | undefined): Promise<void> {
  const prices = [{ product: '*', onDemand: '36.00', interruptible: '18.00' }];
  const spec = { nodeSelector: { [LABEL]: tenant.name }, prices, ...(devices && { devices }) };
  const name = poolName(suffix);
  await tenant.client.create(GPU_POOLS, { metadata: { name }, spec: spec as unknown as GpuPoolSpec });
  ends.push(() => tenant.client.delete(GPU_POOLS, { name }));
}

beforeAll(async () => {
  tenant = await testNamespace();
  await kindsCounted(tenant.client);
  const amd = { 'amd.com/gpu.product-name': MI300X, 'amd.com/gpu.vram': '192G' };
  const nvidia = { 'nvidia.com/gpu.product': H100, 'nvidia.com/gpu.memory': '81559' };
  const intel = { 'gpu.intel.com/product': FLEX, 'gpu.intel.com/device.count': '2' };
  await pool('a-amd', { preset: 'AMD' });
  await pool('b-nvidia', undefined);
  await pool('c-intel', { preset: 'Intel' });
  await pool('d-named', { resourceName: 'habana.ai/gaudi', productLabel: 'example.com/gpu' });
  await node('amd', amd, { 'amd.com/gpu': '2' });
  await node('both', { ...amd, ...nvidia }, { 'amd.com/gpu': '2', 'nvidia.com/gpu': '2' });
  await node('nvidia', nvidia, { 'nvidia.com/gpu': '2' });
  await node('intel', intel, { 'gpu.intel.com/xe': '2', 'gpu.intel.com/monitoring': '1' });
  await node('named', { 'example.com/gpu': GAUDI }, { 'habana.ai/gaudi': '2' });
  ({ berth, call } = await startRenting(tenant, 'makers'));
});

afterAll(async () => {
  await endRenting(tenant, berth);
  for (const end of ends.toReversed()) await end();
  await tenant[Symbol.asyncDispose]();
});

/** Free places of the test's pools for one GPU, by pool and product. */
async function free(): Promise<Record<string, number>> {
  const { data } = offerListSchema.parse((await call('GET', '/offers')).json);
  const own = data.filter(({ pool, gpu_count: count }) => pool.startsWith(tenant.name) && count === 1);
  return Object.fromEntries(
    own.map(({ pool, gpu_name: name, available }) => [`${pool.slice(tenant.name.length + 1)} ${name}`, available]),
  );
}

async function isFree(product: string, count: number): Promise<void> {
  await waitFor(`${count} x ${product}`, async () =>
    Object.entries(await free()).some(([name, available]) => name.endsWith(product) && available === count),
  );
}

function rent(product: string, count: number): Promise<Answer> {
  return call('POST', '/instances', { gpu: { name: product, count } });
}

async function isIn(id: string, state: string): Promise<void> {
  await waitFor(`${id} to be ${state}`, async () => (await call('GET', `/instances/${id}`)).json['state'] === state);
}

async function giveBack(id: string): Promise<void> {
  await call('DELETE', `/instances/${id}`);
  await waitFor('its end', async () => (await call('GET', `/instances/${id}`)).status === 404);
}

async function podsOf(id: string): Promise<Pod[]> {
  const { items } = await tenant.client.list(PODS, { namespace: tenant.name });
  return items.filter(({ metadata }) => metadata.labels?.['berth.dev/instance'] === id);
}

it('offers what each pool names, and of a node with GPUs of two makers those of one pool', async () => {
  await waitFor('the nodes', async () => Object.values(await free()).every((available) => available > 0));
  expect(await free()).toEqual({
    [`a-amd ${MI300X}`]: 4,
    [`b-nvidia ${H100}`]: 2,
    [`c-intel ${FLEX}`]: 2,
    [`d-named ${GAUDI}`]: 2,
  });
  const { data } = await call('GET', '/offers');
  const ofAmd = data.find((one) => one['gpu_name'] === MI300X);
  expect(ofAmd).toMatchObject({ gpu_memory_mb: 192 * 1024, isolation: 'whole', cuda_version: null });
  const described = await waitFor('the status of the pool', async () => {
    const { status } = await tenant.client.get(GPU_POOLS, { name: poolName('a-amd') });
    return status?.free === 4 && status;
  });
  expect(described).toMatchObject({ nodes: 2, gpus: 4, classes: [{ product: MI300X, gpuCount: 1, free: 4 }, {}] });
});

it.each([
  [MI300X, 'amd.com/gpu'],
  [FLEX, 'gpu.intel.com/xe'],
  [GAUDI, 'habana.ai/gaudi'],
  [H100, 'nvidia.com/gpu'],
])('a %s is rented, claimed, billed and given back; its pod asks for %s alone', async (product, resourceName) => {
  const before = Object.entries(await free()).find(([name]) => name.endsWith(product))?.[1] ?? 0;
  const { id } = await rent(product, 2);
  await isIn(id, 'running');
  await isFree(product, before - 2);
  const stored = await tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name: id });
  expect(stored.status?.claim).toMatchObject({ resourceName, product, gpuCount: 2, isolation: 'whole' });
  const [pod] = await podsOf(id);
  const { limits = {}, requests = {} } = pod?.spec?.containers[0]?.resources ?? {};
  const devices = [limits, requests].map((list) => Object.entries(list).filter(([name]) => name.includes('/')));
  expect(devices).toEqual([[[resourceName, '2']], [[resourceName, '2']]]);
  const tolerated = pod?.spec?.tolerations?.map(({ key }) => key).filter((key) => key?.includes('.com/gpu') === true);
  expect(tolerated).toEqual(resourceName.endsWith('.com/gpu') ? [resourceName] : []);
  await giveBack(id);
  await isFree(product, before);
  const { items } = usageSchema.parse((await call('GET', '/usage?group=instance')).json);
  const bill = items.find(({ group }) => group === id);
  expect(bill).toMatchObject({ product, open: false });
  expect(Number(bill?.cost)).toBeGreaterThan(0);
});

it('never gives out more than the nodes have, beside pods of others, and places a waiting instance later', async () => {
  await isFree(MI300X, 4);
  const foreign: Pod = {
    metadata: { namespace: tenant.name, name: 'foreign' },
    spec: {
      containers: [{ name: 'main', image: 'foreign', resources: { limits: { 'amd.com/gpu': '1' } } }],
      nodeName: `${tenant.name}-amd`,
      tolerations: [{ operator: 'Exists' }],
    },
  };
  await tenant.client.create(PODS, foreign);
  await isFree(MI300X, 3);
  const names = ['one', 'two', 'three', 'four', 'five'];
  const made = names.map((name) =>
    tenant.client.create(GPU_INSTANCES, {
      metadata: { namespace: tenant.name, name },
      spec: { gpu: { product: MI300X, count: 1 } },
    } as never),
  );
  await Promise.all(made);
  const running = async (): Promise<string[]> => {
    const states = await Promise.all(names.map(async (name) => (await call('GET', `/instances/${name}`)).json));
    return names.filter((_, index) => states[index]?.['state'] === 'running');
  };
  const first = await waitFor('three', async () => {
    const found = await running();
    return found.length === 3 && found;
  });
  await isFree(MI300X, 0);
  const pods = await tenant.client.list(PODS, { namespace: tenant.name });
  const taken = pods.items.flatMap(({ spec }) => spec?.containers[0]?.resources?.limits?.['amd.com/gpu'] ?? []);
  expect(taken).toEqual(['1', '1', '1', '1']);
  for (const name of first.slice(0, 2)) await giveBack(name);
  const left = names.filter((one) => !first.slice(0, 2).includes(one));
  await waitFor('those that waited', async () => (await running()).length === left.length);
  for (const name of left) await giveBack(name);
  await tenant.client.delete(PODS, foreign.metadata);
  await isFree(MI300X, 4);
});

it('a ceiling over a product of another maker holds', async () => {
  const name = `${tenant.name}-ceiling`;
  const gpus = [{ pool: poolName('a-amd'), product: MI300X, max: 1 }];
  const spec = { namespaceLabels: { 'kubernetes.io/metadata.name': tenant.name }, gpus };
  await tenant.client.create(TENANT_POLICIES, { metadata: { name }, spec: spec as unknown as TenantPolicySpec });
  ends.push(() => tenant.client.delete(TENANT_POLICIES, { name }));
  const limit = { namespace: tenant.name, name: TENANT_LIMIT_NAME };
  await waitFor('the ceiling', async () => {
    const held = await tenant.client.get(TENANT_LIMITS, limit).catch(() => undefined);
    return held?.spec.gpus.length === 1;
  });
  await isFree(MI300X, 4);
  const over = { namespace: tenant.name, name: 'over' };
  await tenant.client.create(GPU_INSTANCES, { metadata: over, spec: { gpu: { product: MI300X, count: 2 } } } as never);
  await waitFor('the instance to wait', async () => {
    const { status } = await tenant.client.get(GPU_INSTANCES, over);
    return findCondition(status?.conditions, 'Ready')?.reason === 'TenantLimit';
  });
  // GPUs of another product are under another ceiling.
  const { id } = await rent(FLEX, 2);
  await isIn(id, 'running');
});

it.each<[string, PoolDevices, string]>([
  [
    'a preset and a resource',
    { preset: 'AMD', resourceName: 'amd.com/gpu' },
    'exactly one of preset, resourceName and deviceClassName',
  ],
  ['neither', { productLabel: 'example.com/gpu' }, 'exactly one of preset, resourceName and deviceClassName'],
  ['a preset and a class', { preset: 'AMD', deviceClassName: 'gpu.amd.com' }, 'exactly one of preset, resourceName'],
  [
    'a class with a label',
    { deviceClassName: 'a', productLabel: 'a/b' },
    'devices of a deviceClassName have attributes',
  ],
  ['a preset with an attribute', { preset: 'AMD', productAttribute: 'model' }, 'only devices of a deviceClassName'],
  ['no extended resource', { resourceName: 'memory' }, 'write the name of an extended resource'],
  ['a unit of nothing', { preset: 'Intel', memoryUnit: 'GiB' }, 'memoryUnit is the unit of a memoryLabel'],
])('refuses a pool whose devices are %s', async (_name, devices, words) => {
  const metadata = { name: poolName('refused') };
  const made = tenant.client.create(GPU_POOLS, { metadata, spec: { devices } as GpuPoolSpec } satisfies GpuPool);
  await expect(made).rejects.toThrow(InvalidError);
  await expect(made).rejects.toThrow(words);
});
