import { afterAll, beforeAll, expect, it } from 'vitest';
import { offerListSchema } from '../../../src/http/features/offers/schema.ts';
import {
  DEVICE_CLASSES,
  RESOURCE_CLAIMS,
  RESOURCE_SLICES,
  type ResourceClaim,
  type ResourceSlice,
} from '../../../src/kube/devices.ts';
import { PODS } from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { Chance } from '../../simulation/clock/chance.ts';
import type { BerthProcess } from '../../support/berth-process.ts';
import { claimsOf, type Foreign, placePods, removePods } from '../../support/foreign-pods.ts';
import type { Call } from '../../support/http/client.ts';
import { addNode, sellDevices, sliceNode } from '../../support/http/fleet.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { consumedBy, fitsInto, quantities, type Shape, sharedDevice } from '../../support/shared-gpus.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { endRenting, startRenting } from '../../support/renting.ts';
import { waitFor } from '../../support/wait-for.ts';

// Two GPUs of a simulated node that several claims share, and one whole one: the real scheduler gives out their capacity.

const LABEL = 'berth.dev/test-shared-devices';
const DRIVER = 'gpu.example.com';
const MODEL = 'TEST Shared 1';
/** A pod gets a fifth of the memory, and less of the cores. */
const SHAPE: Shape = {
  memory: { value: 40, unit: 'Gi', byDefault: 8, range: { min: 2, max: 38, step: 6 } },
  cores: { value: 100, unit: '', byDefault: 15, values: [5, 15, 50] },
};
const ALL = 10;
const ROUNDS = 6;

let berth: BerthProcess;
let tenant: TestNamespace;
let foreign: Foreign;
let call: Call;
let resource: string;
const ends: (() => Promise<unknown>)[] = [];

function slice(nodeName: string): ResourceSlice {
  const attributes = { model: { string: MODEL }, driverVersion: { version: '1.0.0' } };
  const shared = ['gpu-0', 'gpu-1'].map((name) => sharedDevice(name, SHAPE, attributes));
  const devices = [...shared, { name: 'whole', attributes, capacity: { memory: { value: '40Gi' } } }];
  const pool = { name: nodeName, generation: 1, resourceSliceCount: 1 };
  return { metadata: { name: nodeName }, spec: { driver: DRIVER, nodeName, pool, devices } };
}

beforeAll(async () => {
  tenant = await testNamespace();
  const { client, name } = tenant;
  foreign = { client, namespace: name, label: LABEL, wake };
  resource = `deviceclass.resource.kubernetes.io/${name}`;
  await kindsCounted(client);
  const apart = { label: LABEL, value: name };
  ends.push(await addNode(client, sliceNode(`${name}-dra`, apart)));
  const model = `device.attributes['${DRIVER}'].model == '${MODEL}'`;
  const ofModel = `device.driver == '${DRIVER}' && ${model}`;
  const classes = {
    [name]: `${ofModel} && device.allowMultipleAllocations == true`,
    [`${name}-whole`]: `${ofModel} && device.allowMultipleAllocations == false`,
    [`${name}-any`]: ofModel,
  };
  for (const [one, expression] of Object.entries(classes)) {
    await client.create(DEVICE_CLASSES, { metadata: { name: one }, spec: { selectors: [{ cel: { expression } }] } });
    ends.push(() => client.delete(DEVICE_CLASSES, { name: one }));
  }
  await client.create(RESOURCE_SLICES, slice(`${name}-dra`));
  ends.push(() => client.delete(RESOURCE_SLICES, { name: `${name}-dra` }));
  const [deviceClassName = '', ...partitionClassNames] = Object.keys(classes);
  ends.push(await sellDevices(client, { name, deviceClassName, partitionClassNames, ...apart }));
  ({ berth, call } = await startRenting(tenant, 'shared devices'));
});

afterAll(async () => {
  await endRenting(tenant, berth);
  for (const end of ends.toReversed()) await end();
  await tenant[Symbol.asyncDispose]();
});

async function offers() {
  const { data } = offerListSchema.parse((await call('GET', '/offers')).json);
  return data.filter(({ pool }) => pool === tenant.name);
}

async function offer() {
  return (await offers()).find(({ isolation }) => isolation === 'time_sliced');
}

async function free(): Promise<number> {
  return (await offer())?.available ?? 0;
}

async function isFree(count: number): Promise<void> {
  await waitFor(`${count} free pieces`, async () => (await free()) === count);
}

/** What claims have of the devices. */
async function allocated() {
  const { items } = await tenant.client.list(RESOURCE_CLAIMS, { namespace: tenant.name });
  return items.flatMap(({ status }) => status?.allocation?.devices?.results ?? []);
}

/** A pod of others whose own claim says how much it wants; resolves with what it got, and undefined when it waits. */
async function claimPart(name: string, requests: Record<string, string>) {
  const { client, name: namespace } = tenant;
  const exactly = { deviceClassName: namespace, capacity: { requests } };
  const claim: ResourceClaim = {
    metadata: { namespace, name },
    spec: { devices: { requests: [{ name: 'gpu', exactly }] } },
  };
  await client.create(RESOURCE_CLAIMS, claim);
  await client.create(PODS, {
    metadata: { namespace, name },
    spec: {
      containers: [{ name: 'main', image: 'foreign', resources: { claims: [{ name: 'gpu' }] } }],
      resourceClaims: [{ name: 'gpu', resourceClaimName: name }],
      nodeSelector: { [LABEL]: namespace },
      tolerations: [{ operator: 'Exists' }],
    },
  });
  return await waitFor(`a part for ${name}`, async () => {
    const { status } = await client.get(RESOURCE_CLAIMS, { namespace, name });
    return status?.allocation?.devices?.results?.[0];
  });
}

async function dropClaims(names: readonly string[]): Promise<void> {
  const { client, name: namespace } = tenant;
  for (const name of names) {
    await client.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0 });
    await client.delete(RESOURCE_CLAIMS, { namespace, name });
  }
  await waitFor('its claims to be gone', async () => (await claimsOf(foreign, 'part-')).length === 0);
}

/**
 * Has the scheduler look again at the pods that wait. While it writes what a pod gets of a shared device, it counts that
 * part twice for a moment, and a pod that then finds no room waits for the next event, or for five minutes.
 */
async function wake(): Promise<void> {
  const annotations = { woken: String(performance.now()) };
  await tenant.client.patch(
    RESOURCE_SLICES,
    { name: `${tenant.name}-dra` },
    { metadata: { annotations } },
    { type: 'merge' },
  );
}

it('offers the parts that pods get, by their part of a GPU', async () => {
  await isFree(ALL);
  expect(await offer()).toMatchObject({
    gpu_name: 'TEST-Shared-1-SHARED',
    gpu_count: 1,
    gpu_memory_mb: 8 * 1024,
    isolation: 'time_sliced',
    price_per_hour: { on_demand: '7.20', interruptible: '3.60' },
  });
});

it('offers as many as the scheduler then places, whatever parts others have', async () => {
  const seed = Number(process.env['BERTH_SEED'] ?? Date.now() % 100_000);
  process.stdout.write(`seed ${seed}: BERTH_SEED repeats it\n`);
  const chance = new Chance(seed);
  const left: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const held = new Map([
      ['gpu-0', [] as Record<string, number>[]],
      ['gpu-1', []],
    ]);
    const claims: string[] = [];
    for (let index = chance.int(0, 6); index > 0; index -= 1) {
      const asked = {
        ...(chance.is(0.8) && { memory: chance.int(1, 20) }),
        ...(chance.is(0.8) && { cores: chance.int(1, 50) }),
      };
      const consumed = consumedBy(SHAPE, asked) ?? {};
      if (![...held.values()].some((taken) => fitsInto(SHAPE, taken, consumed))) continue;
      const name = `part-${index}`;
      const { device, shareID, consumedCapacity } = await claimPart(name, quantities(SHAPE, asked));
      claims.push(name);
      held.get(device)?.push(consumed);
      expect(shareID).toBeDefined();
      expect(consumedCapacity).toEqual(quantities(SHAPE, consumed));
    }
    const probes = Array.from({ length: ALL + 1 }, () => resource);
    const placed = await placePods(foreign, probes, 'probe', async () => (await free()) === 0);
    left.push(placed);
    await removePods(foreign, 'probe');
    await isFree(placed);
    for (let look = 0; look < 3; look += 1) expect(await free()).toBe(placed);
    await dropClaims(claims);
    await isFree(ALL);
  }
  process.stdout.write(`places beside what others had: ${left.join(', ')}\n`);
});

it('offers no class of whole and shared ones, which the scheduler takes for one, and counts what its pods have', async () => {
  const places = async () => (await offers()).map((one) => `${one.available} ${one.isolation}`).toSorted();
  await isFree(ALL);
  expect(await places()).toEqual(['1 whole', `${ALL} time_sliced`]);
  const asked = Array.from({ length: ALL + 2 }, () => `${resource}-any`);
  expect(await placePods(foreign, asked, 'any', (placed) => placed === ALL + 1)).toBe(ALL + 1);
  await isFree(0);
  expect(await places()).toEqual(['0 time_sliced', '0 whole']);
  const devices = (await allocated()).map((one) => (one.shareID === undefined ? one.device : `part of ${one.device}`));
  const fives = ['gpu-0', 'gpu-1'].flatMap((device) => Array.from({ length: ALL / 2 }, () => `part of ${device}`));
  expect(devices.toSorted()).toEqual([...fives, 'whole']);
  await removePods(foreign, 'any');
  await isFree(ALL);
});

async function rent(name: string, type: 'OnDemand' | 'Interruptible'): Promise<void> {
  const offerId = (await offer())?.id;
  const metadata = { namespace: tenant.name, name };
  await tenant.client.create(GPU_INSTANCES, { metadata, spec: { type, offerId } } as never);
}

async function isIn(name: string, state: string): Promise<void> {
  await waitFor(
    `${name} to be ${state}`,
    async () => (await call('GET', `/instances/${name}`)).json['state'] === state,
  );
}

it('rents them all, bills each by its part, and ends one interruptible instance for one on demand', async () => {
  const { client, name: namespace } = tenant;
  await isFree(ALL);
  const names = Array.from({ length: ALL }, (_, index) => `shared-${index}`);
  for (const name of names) await rent(name, name === 'shared-4' ? 'Interruptible' : 'OnDemand');
  for (const name of names) await isIn(name, 'running');
  await isFree(0);
  const consumed = quantities(SHAPE, consumedBy(SHAPE) ?? {});
  const results = await allocated();
  expect(results.map((one) => one.consumedCapacity)).toEqual(names.map(() => consumed));
  expect(results.filter(({ device }) => device === 'gpu-0')).toHaveLength(ALL / 2);
  const { items } = await client.list(GPU_INSTANCES, { namespace });
  expect(items.map(({ status }) => status?.claim?.gpuShare)).toEqual(names.map(() => '1/5'));
  expect(items.map(({ status }) => status?.devices?.length)).toEqual(names.map(() => 1));
  expect((await offer())?.available_by_preemption).toBe(1);
  await rent('urgent', 'OnDemand');
  await isIn('urgent', 'running');
  const states = await Promise.all(names.map(async (name) => (await call('GET', `/instances/${name}`)).json['state']));
  expect(names.filter((_, index) => states[index] !== 'running')).toEqual(['shared-4']);
  for (const name of [...names, 'urgent']) await call('DELETE', `/instances/${name}`);
  await isFree(ALL);
});
