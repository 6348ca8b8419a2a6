import { afterAll, beforeAll, expect, it } from 'vitest';
import { offerListSchema } from '../../../src/http/features/offers/schema.ts';
import { findCondition } from '../../../src/kube/conditions.ts';
import {
  DEVICE_CLASSES,
  RESOURCE_CLAIMS,
  RESOURCE_SLICES,
  type ResourceClaim,
  type ResourceSlice,
} from '../../../src/kube/devices.ts';
import { ForbiddenError } from '../../../src/kube/errors.ts';
import { type Pod, PODS, PRIORITY_CLASSES } from '../../../src/kube/types.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { account, BERTH_EDIT, KEY_RIGHTS, type Rule, tokenOf } from '../../support/accounts.ts';
import type { BerthProcess } from '../../support/berth-process.ts';
import { boundAfter, firstPod } from '../../support/bound-after.ts';
import type { Call } from '../../support/http/client.ts';
import { addNode, sellDevices, sliceNode } from '../../support/http/fleet.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { endRenting, startRenting } from '../../support/renting.ts';
import { waitFor } from '../../support/wait-for.ts';

// GPUs of simulated nodes that are only in ResourceSlices, given out by Kubernetes' own scheduler.

const LABEL = 'berth.dev/test-devices';
const DRIVER = 'gpu.example.com';
const MODEL = 'TEST Device 1';
const PRODUCT = 'TEST-Device-1';

let berth: BerthProcess;
let tenant: TestNamespace;
let call: Call;
let resourceName: string;
const ends: (() => Promise<unknown>)[] = [];

function slice(gpus: number, generation = 1, sick: readonly number[] = []): ResourceSlice {
  const nodeName = `${tenant.name}-dra`;
  return {
    metadata: { name: `${nodeName}-${generation}` },
    spec: {
      driver: DRIVER,
      nodeName,
      pool: { name: nodeName, generation, resourceSliceCount: 1 },
      devices: Array.from({ length: gpus }, (_, index) => ({
        name: `gpu-${index}`,
        attributes: {
          model: { string: MODEL },
          driverVersion: { version: '1.0.0' },
          uuid: { string: `gpu-uuid-${index}` },
        },
        capacity: { memory: { value: '80Gi' } },
        ...(sick.includes(index) && { taints: [{ key: 'example.com/sick', effect: 'NoSchedule' }] }),
      })),
    },
  };
}

beforeAll(async () => {
  tenant = await testNamespace();
  const { client, name } = tenant;
  resourceName = `${name}.example.com/gpu`;
  await kindsCounted(client);
  const apart = { label: LABEL, value: name };
  ends.push(await addNode(client, sliceNode(`${name}-dra`, apart)));
  const expression = `device.driver == '${DRIVER}' && device.attributes['${DRIVER}'].model == '${MODEL}'`;
  const extendedResourceName = resourceName;
  await client.create(DEVICE_CLASSES, {
    metadata: { name },
    spec: { selectors: [{ cel: { expression } }], extendedResourceName },
  });
  ends.push(() => client.delete(DEVICE_CLASSES, { name }));
  await client.create(RESOURCE_SLICES, slice(2));
  ends.push(await sellDevices(client, { name, deviceClassName: name, ...apart }));
  ({ berth, call } = await startRenting(tenant, 'devices'));
});

afterAll(async () => {
  const { client, name: namespace } = tenant;
  await endRenting(tenant, berth);
  for (const { metadata, spec } of (await client.list(RESOURCE_SLICES)).items) {
    if (spec.nodeName === `${namespace}-dra`) await client.delete(RESOURCE_SLICES, metadata);
  }
  for (const end of ends.toReversed()) await end();
  await tenant[Symbol.asyncDispose]();
});

async function free(): Promise<number | undefined> {
  const { data } = offerListSchema.parse((await call('GET', '/offers')).json);
  return data.find(({ pool, gpu_count: count }) => pool === tenant.name && count === 1)?.available;
}

async function isFree(count: number): Promise<void> {
  await waitFor(`${count} free devices`, async () => (await free()) === count);
}

async function create(name: string, type: 'OnDemand' | 'Interruptible'): Promise<void> {
  const metadata = { namespace: tenant.name, name };
  const spec = { type, gpu: { product: PRODUCT, count: 1 } };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec } as never);
}

async function isIn(id: string, state: string): Promise<void> {
  await waitFor(`${id} to be ${state}`, async () => (await call('GET', `/instances/${id}`)).json['state'] === state);
}

async function giveBack(id: string): Promise<void> {
  await call('DELETE', `/instances/${id}`);
  await waitFor('its end', async () => (await call('GET', `/instances/${id}`)).status === 404);
}

/** The devices that claims of the namespace have. */
async function allocated(): Promise<string[]> {
  const { items } = await tenant.client.list(RESOURCE_CLAIMS, { namespace: tenant.name });
  return items
    .flatMap(({ status }) => status?.allocation?.devices?.results?.map(({ device }) => device) ?? [])
    .toSorted();
}

function askingPod(name: string, priorityClassName?: string): Pod {
  return {
    metadata: { namespace: tenant.name, name },
    spec: {
      containers: [{ name: 'main', image: 'foreign', resources: { limits: { [resourceName]: '1' } } }],
      nodeSelector: { [LABEL]: tenant.name },
      tolerations: [{ operator: 'Exists' }],
      ...(priorityClassName !== undefined && { priorityClassName }),
    },
  };
}

async function scheduled(name: string): Promise<{ status?: string; message: string }> {
  const pod = await tenant.client.get(PODS, { namespace: tenant.name, name });
  const found = findCondition(pod.status?.conditions, 'PodScheduled');
  return { ...(found && { status: found.status }), message: found?.message ?? '' };
}

it('offers whole GPUs of ResourceSlices, and leaves out sick ones', async () => {
  await isFree(2);
  const { data } = await call('GET', '/offers');
  expect(data.find((one) => one['pool'] === tenant.name)).toMatchObject({
    gpu_name: PRODUCT,
    gpu_memory_mb: 80 * 1024,
    isolation: 'whole',
    driver_version: '1.0.0',
  });
  await tenant.client.create(RESOURCE_SLICES, slice(2, 2, [1]));
  await isFree(1);
  await tenant.client.create(RESOURCE_SLICES, slice(2, 3));
  await isFree(2);
  const status = await waitFor('the status of the pool', async () => {
    const pool = await tenant.client.get(GPU_POOLS, { name: tenant.name });
    return pool.status?.free === 2 && pool.status;
  });
  expect(status).toMatchObject({ nodes: 1, gpus: 2 });
});

it('rents them by the extended resource of their class, beside pods and claims of others', async () => {
  await isFree(2);
  await tenant.client.create(PODS, askingPod('foreign'));
  await isFree(1);
  await create('one', 'OnDemand');
  await isIn('one', 'running');
  await isFree(0);
  expect(await allocated()).toEqual(['gpu-0', 'gpu-1']);
  await tenant.client.delete(PODS, { namespace: tenant.name, name: 'foreign' });
  await isFree(1);
  const claim: ResourceClaim = {
    metadata: { namespace: tenant.name, name: 'plain' },
    spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: tenant.name } }] } },
  };
  await tenant.client.create(RESOURCE_CLAIMS, claim);
  const { spec, metadata } = askingPod('plain');
  const containers = [{ name: 'main', image: 'foreign', resources: { claims: [{ name: 'gpu' }] } }];
  const resourceClaims = [{ name: 'gpu', resourceClaimName: 'plain' }];
  await tenant.client.create(PODS, { metadata, spec: { ...spec, containers, resourceClaims } });
  await isFree(0);
  await tenant.client.delete(PODS, metadata);
  await tenant.client.delete(RESOURCE_CLAIMS, claim.metadata);
  await isFree(1);
  await giveBack('one');
  await isFree(2);
});

it('names the device of an instance in its status and in its bill, and tells of its taint', async () => {
  await isFree(2);
  await create('owner', 'OnDemand');
  await isIn('owner', 'running');
  const pool = `${tenant.name}-dra`;
  const statusOf = async () =>
    (await tenant.client.get(GPU_INSTANCES, { namespace: tenant.name, name: 'owner' })).status;
  const [device] = await allocated();
  const held = { driver: DRIVER, pool, device, uuid: device?.replace('gpu-', 'gpu-uuid-') };
  await waitFor('the device in the status', async () => (await statusOf())?.devices !== undefined);
  expect((await statusOf())?.devices).toEqual([held]);
  await tenant.client.create(RESOURCE_SLICES, slice(2, 4, [Number(device?.at(-1))]));
  await waitFor('the taint to be told', async () => (await statusOf())?.unhealthyGPUs?.[0]?.id === held.uuid);
  expect(findCondition((await statusOf())?.conditions, 'GPUHealthy')?.status).toBe('False');
  await isFree(1);
  await tenant.client.create(RESOURCE_SLICES, slice(2, 5));
  await waitFor('it to be well', async () => (await statusOf())?.unhealthyGPUs === undefined);
  await call('PATCH', '/instances/owner', { state: 'stopped' });
  await isIn('owner', 'stopped');
  const stopped = await statusOf();
  expect(stopped?.devices).toBeUndefined();
  expect(stopped?.intervals?.at(-1)?.devices).toEqual([held]);
  await giveBack('owner');
  await isFree(2);
});

/** Which of them ends, and the milliseconds from the end of its program to the device of the next pod. */
async function displaced(urgent: string, others: readonly string[]) {
  const { client, name: namespace } = tenant;
  const ask = () => create(urgent, 'OnDemand');
  const found = await boundAfter({ client, namespace, urgent, others, ask });
  expect(found.ended).toHaveLength(1);
  await isIn(urgent, 'running');
  return found;
}

it('on demand displaces interruptible, which a pod without Berth waits for in vain', async () => {
  const { client, name: namespace } = tenant;
  const interruptible = ['first', 'second'];
  await isFree(2);
  for (const name of interruptible) await create(name, 'Interruptible');
  for (const name of interruptible) await isIn(name, 'running');
  const priority = `${tenant.name}-high`;
  await client.create(PRIORITY_CLASSES, { metadata: { name: priority }, value: 1_000_000 });
  ends.push(() => client.delete(PRIORITY_CLASSES, { name: priority }));
  // Admission knows a new class a moment later.
  await waitFor('a pod with the class', () =>
    client.create(PODS, askingPod('hopeful', priority)).catch((error: unknown) => {
      if (error instanceof ForbiddenError) return undefined;
      throw error;
    }),
  );
  await waitFor('the scheduler to give it up', async () =>
    (await scheduled('hopeful')).message.includes('Preemption is not helpful'),
  );
  const { items } = await client.list(PODS, { namespace });
  const held = interruptible.map((id) => firstPod(items, id));
  const hopeful = items.find(({ metadata }) => metadata.name === 'hopeful');
  for (const holder of held) {
    expect(holder?.spec?.priority).toBeLessThan(hopeful?.spec?.priority ?? 0);
    expect(holder?.metadata.deletionTimestamp).toBeUndefined();
  }
  expect(hopeful?.spec?.preemptionPolicy).toBe('PreemptLowerPriority');
  expect((await scheduled('hopeful')).status).toBe('False');
  await client.delete(PODS, { namespace, name: 'hopeful' });
  const one = await displaced('urgent', interruptible);
  const other = await displaced(
    'more',
    interruptible.filter((name) => !one.ended.includes(name)),
  );
  const took = [one.ms, other.ms];
  process.stdout.write(`on demand had a device ${took.map(Math.round).join(' and ')} ms after a program's end\n`);
  // Whatever else the machine does, one of them shows how long it takes.
  expect(Math.min(...took)).toBeLessThan(2000);
  for (const id of interruptible) expect((await call('GET', `/instances/${id}`)).json['state']).not.toBe('running');
  expect(await allocated()).toEqual(['gpu-0', 'gpu-1']);
  for (const id of ['urgent', 'more']) await giveBack(id);
  // Those that were displaced come back by themselves.
  for (const name of interruptible) await isIn(name, 'running');
  for (const name of interruptible) await giveBack(name);
  await isFree(2);
});

it('rents devices of a class that names no extended resource by the name that each class has', async () => {
  const { client, name } = tenant;
  const plain = `${name}-plain`;
  const { spec: named } = await client.get(DEVICE_CLASSES, { name });
  await client.create(DEVICE_CLASSES, { metadata: { name: plain }, spec: { selectors: named.selectors ?? [] } });
  ends.push(() => client.delete(DEVICE_CLASSES, { name: plain }));
  const sell = (deviceClassName: string) =>
    client.patch(GPU_POOLS, { name }, { spec: { devices: { deviceClassName } } }, { type: 'merge' });
  await sell(plain);
  await waitFor('an offer of the other class', async () => {
    const { data } = await call('GET', '/offers');
    return data.some((one) => one['pool'] === name && one['available'] === 2);
  });
  for (const id of ['one', 'two']) await create(id, 'OnDemand');
  for (const id of ['one', 'two']) await isIn(id, 'running');
  expect(await allocated()).toEqual(['gpu-0', 'gpu-1']);
  const { status } = await client.get(GPU_INSTANCES, { namespace: name, name: 'one' });
  expect(status?.claim?.resourceName).toBe(`deviceclass.resource.kubernetes.io/${plain}`);
  // The other class has the same devices.
  await sell(name);
  await isFree(0);
  for (const id of ['one', 'two']) await giveBack(id);
  await isFree(2);
});

it("a tenant with Berth's roles makes no claim of devices and no pod, and an administrator's look needs a label", async () => {
  const { client, name: namespace } = tenant;
  await account(client, namespace, 'renter', [...BERTH_EDIT, ...KEY_RIGHTS] as Rule[]);
  await tokenOf(client, namespace, 'renter');
  const user = `system:serviceaccount:${namespace}:renter`;
  const mayCreate = async (group: string, resource: string): Promise<boolean> => {
    const attributes = { namespace, verb: 'create', group, resource };
    const review = await client.raw<{ status: { allowed: boolean } }>(
      'POST',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user, resourceAttributes: attributes },
      },
    );
    return review.status.allowed;
  };
  expect(await mayCreate('berth.dev', 'gpuinstances')).toBe(true);
  for (const resource of ['resourceclaims', 'resourceclaimtemplates', 'resourceslices', 'deviceclasses'])
    expect(await mayCreate('resource.k8s.io', resource), resource).toBe(false);
  expect(await mayCreate('', 'pods')).toBe(false);
  const look = { name: 'look', exactly: { deviceClassName: namespace, adminAccess: true } };
  const claim: ResourceClaim = { metadata: { namespace, name: 'look' }, spec: { devices: { requests: [look] } } };
  await expect(client.create(RESOURCE_CLAIMS, claim)).rejects.toThrow('admin');
});
