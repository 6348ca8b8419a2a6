import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OfferRecord, offerListSchema } from '../../../src/http/features/offers/schema.ts';
import { DEVICE_CLASSES, RESOURCE_SLICES, type ResourceSlice } from '../../../src/kube/devices.ts';
import { type Node, NODES } from '../../../src/kube/types.ts';
import { Informer } from '../../../src/kube/watch/reflector.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { GPU_POOLS } from '../../../src/resources/gpu-pool.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { Chance } from '../../simulation/clock/chance.ts';
import type { BerthProcess } from '../../support/berth-process.ts';
import type { Call } from '../../support/http/client.ts';
import { gpuNode, sellDevices, sliceNode } from '../../support/http/fleet.ts';
import { kindsCounted } from '../../support/kinds-counted.ts';
import { type TestNamespace, testNamespace } from '../../support/test-cluster.ts';
import { endRenting, startRenting } from '../../support/renting.ts';
import { waitFor } from '../../support/wait-for.ts';

// One random fleet of simulated nodes twice: a device plugin and labels tell of the one, and ResourceSlices of the other.

const LIVES = Number(process.env['BERTH_LIVES'] ?? 1);
const SEED = Number(process.env['BERTH_SEED'] ?? Date.now() % 100_000);
/** Their heartbeats are much of what the test costs: 100 of them by hand, with the thousand steps of BERTH_LIVES=20. */
const MACHINES = Math.min(100, 25 * LIVES);
/** Of as many steps as there are in {@link STEPS}. */
const ROUNDS = 5 * LIVES;

const LABEL = 'berth.dev/test-two-fleets';
const FLEETS = ['labels', 'slices'] as const;
type Fleet = (typeof FLEETS)[number];
const DRIVER = 'gpu.nvidia.com';
const RESOURCE = 'nvidia.com/gpu';
/** No other node of the cluster has them. */
const PRODUCTS = ['TWIN A', 'TWIN B', 'TWIN C'];
const SIZES = [1, 2, 4, 8];
const STEPS = ['rent', 'rent', 'rent', 'rent', 'end', 'end', 'taint', 'heal', 'cordon', 'uncordon'] as const;
type Step = (typeof STEPS)[number];

/** A machine that each fleet has a node of. */
interface Machine {
  index: number;
  product: string;
  gpus: number;
  sick: Set<number>;
  isCordoned: boolean;
  generation: number;
}

/** The same GPUs, rented once in each fleet. */
interface Rental {
  ids: Readonly<Record<Fleet, string>>;
  machine: Machine;
  gpus: number;
}

const chance = new Chance(SEED);
const machines: readonly Machine[] = Array.from({ length: MACHINES }, (_, index) => ({
  index,
  product: chance.one(PRODUCTS),
  gpus: chance.int(1, 4),
  sick: new Set<number>(),
  isCordoned: false,
  generation: 1,
}));
const rentals = new Set<Rental>();
const done: Step[] = [];

let berth: BerthProcess;
let tenant: TestNamespace;
let call: Call;
let instances: Informer<GpuInstance>;
const ends: (() => Promise<unknown>)[] = [];

function both<T>(act: (fleet: Fleet) => Promise<T>): Promise<T[]> {
  return Promise.all(FLEETS.map(act));
}

function poolOf(fleet: Fleet): string {
  return `${tenant.name}-${fleet}`;
}

function nodeOf(fleet: Fleet, { index }: Machine): string {
  return `${poolOf(fleet)}-${String(index).padStart(3, '0')}`;
}

function productOf({ product }: Machine): string {
  return product.replaceAll(' ', '-');
}

function labelled(machine: Machine): Node {
  const { metadata, ...rest } = gpuNode(nodeOf('labels', machine), productOf(machine), machine.gpus);
  // A pool of the cluster selects nodes by this one.
  const { 'nvidia.com/gpu.present': _present, ...labels } = metadata.labels ?? {};
  const own = { [LABEL]: poolOf('labels'), 'nvidia.com/gpu.memory': '81920' };
  return { metadata: { ...metadata, labels: { ...labels, ...own } }, ...rest };
}

function devicesOf({ product, gpus, sick }: Machine): ResourceSlice['spec']['devices'] {
  return Array.from({ length: gpus }, (_, index) => ({
    name: `gpu-${index}`,
    attributes: {
      type: { string: 'gpu' },
      productName: { string: product },
      driverVersion: { version: '550.54.15' },
      cudaDriverVersion: { version: '12.4.0' },
    },
    capacity: { memory: { value: '80Gi' } },
    ...(sick.has(index) && { taints: [{ key: 'gpu.nvidia.com/xid', value: '79', effect: 'NoSchedule' }] }),
  }));
}

function sliceOf(machine: Machine): ResourceSlice {
  const nodeName = nodeOf('slices', machine);
  const pool = { name: nodeName, generation: machine.generation, resourceSliceCount: 1 };
  return { metadata: { name: nodeName }, spec: { driver: DRIVER, nodeName, pool, devices: devicesOf(machine) ?? [] } };
}

beforeAll(async () => {
  process.stdout.write(`seed ${SEED}: BERTH_SEED repeats it\n`);
  tenant = await testNamespace();
  const { client, name } = tenant;
  await kindsCounted(client);
  const expression = `device.driver == '${DRIVER}'`;
  await client.create(DEVICE_CLASSES, {
    metadata: { name },
    spec: { selectors: [{ cel: { expression } }], extendedResourceName: `${name}.example.com/gpu` },
  });
  ends.push(() => client.delete(DEVICE_CLASSES, { name }));
  await Promise.all(
    machines.map(async (machine) => {
      const slice = sliceOf(machine);
      const nodes = [
        labelled(machine),
        sliceNode(nodeOf('slices', machine), { label: LABEL, value: poolOf('slices') }),
      ];
      for (const node of nodes) await client.create(NODES, node);
      await client.create(RESOURCE_SLICES, slice);
      ends.push(async () => {
        await client.delete(RESOURCE_SLICES, slice.metadata);
        for (const { metadata } of nodes) await client.delete(NODES, { name: metadata.name });
      });
    }),
  );
  const [labels, slices] = [poolOf('labels'), poolOf('slices')];
  ends.push(await sellDevices(client, { name: slices, deviceClassName: name, label: LABEL, value: slices }));
  const { devices: _slices, ...spec } = (await client.get(GPU_POOLS, { name: slices })).spec;
  await client.create(GPU_POOLS, { metadata: { name: labels }, spec: { ...spec, nodeSelector: { [LABEL]: labels } } });
  ends.push(() => client.delete(GPU_POOLS, { name: labels }));
  const log = pino({ level: 'silent' });
  const watched = { client, type: GPU_INSTANCES, namespace: name, clock: systemClock(), random: Math.random, log };
  instances = new Informer<GpuInstance>(watched);
  const stop = new AbortController();
  const watching = instances.run(stop.signal);
  ends.push(() => {
    stop.abort();
    return watching;
  });
  ({ berth, call } = await startRenting(tenant, 'two fleets'));
});

afterAll(async () => {
  await endRenting(tenant, berth);
  await Promise.all(ends.map((end) => end()));
  await tenant[Symbol.asyncDispose]();
});

function on(machine: Machine): Rental[] {
  return [...rentals].filter((one) => one.machine === machine);
}

function freeOn(machine: Machine): number {
  return on(machine).reduce((free, { gpus }) => free - gpus, machine.gpus - machine.sick.size);
}

/** What the offers of one pool are by the count of the test. */
function counted(): { gpu_name: string; gpu_count: number; available: number }[] {
  const found = PRODUCTS.flatMap((product) =>
    SIZES.map((size) => {
      const own = machines.filter((one) => one.product === product && one.gpus - one.sick.size >= size);
      const places = own.map((one) => (one.isCordoned ? 0 : Math.floor(freeOn(one) / size)));
      const available = places.reduce((sum, one) => sum + one, 0);
      return { gpu_name: product.replaceAll(' ', '-'), gpu_count: size, available, nodes: own.length };
    }),
  );
  return found.filter(({ nodes }) => nodes > 0).map(({ nodes: _nodes, ...offer }) => offer);
}

/** The offers of each fleet, in the order of {@link counted}. */
async function offered(): Promise<Record<Fleet, OfferRecord[]>> {
  const { data } = offerListSchema.parse((await call('GET', '/offers')).json);
  const of = (fleet: Fleet): OfferRecord[] =>
    data
      .filter(({ pool }) => pool === poolOf(fleet))
      .toSorted((a, b) => a.gpu_name.localeCompare(b.gpu_name) || a.gpu_count - b.gpu_count);
  return { labels: of('labels'), slices: of('slices') };
}

/** Waits until both lists are the same, and show as free what the test counts. */
async function agreed(): Promise<Record<Fleet, OfferRecord[]>> {
  const wanted = counted();
  const alike = (offers: readonly OfferRecord[]) => offers.map(({ id: _id, pool: _pool, ...offer }) => offer);
  const free = (offers: readonly OfferRecord[]) =>
    offers.map(({ gpu_name, gpu_count, available }) => ({ gpu_name, gpu_count, available }));
  let seen = await offered();
  await waitFor('the two fleets to be as they are counted', async () => {
    seen = await offered();
    return isDeepStrictEqual(free(seen.labels), wanted) && isDeepStrictEqual(alike(seen.slices), alike(seen.labels));
  }).catch((error: unknown) => {
    const after = `after ${done.length} steps, the last of which were ${done.slice(-STEPS.length).join(', ')}`;
    for (const fleet of FLEETS) expect(free(seen[fleet]), `${fleet} ${after}`).toEqual(wanted);
    expect(alike(seen.slices), after).toEqual(alike(seen.labels));
    throw error;
  });
  return seen;
}

function stored(id: string): GpuInstance | undefined {
  return instances.store.get(`${tenant.name}/${id}`);
}

/** Each has its GPUs, and those of slices are of its node, well, and nobody else's. */
async function haveGpus(): Promise<void> {
  await waitFor('all instances to run', () =>
    [...rentals].every(({ ids, gpus }) => {
      const [byLabels, bySlices] = FLEETS.map((fleet) => stored(ids[fleet])?.status);
      return byLabels?.stages?.ready && bySlices?.stages?.ready && bySlices.devices?.length === gpus;
    }),
  );
  for (const machine of machines) {
    const held = heldOn(machine);
    expect(new Set(held).size).toBe(held.length);
    expect(held.filter((index) => machine.sick.has(index))).toEqual([]);
  }
}

/** The indexes of the devices that instances have. */
function heldOn(machine: Machine): number[] {
  const devices = on(machine).flatMap(({ ids }) => stored(ids.slices)?.status?.devices ?? []);
  expect(devices.every(({ pool }) => pool === nodeOf('slices', machine))).toBe(true);
  return devices.map(({ device }) => Number(device.replace('gpu-', '')));
}

/** The same of both, which put it on the same machine. Returns false where nothing is free. */
async function rent(offers: Record<Fleet, OfferRecord[]>): Promise<boolean> {
  const wish = chance.of(counted().filter(({ available }) => available > 0));
  if (wish === undefined) return false;
  const type = chance.int(0, 1);
  const [labels = '', slices = ''] = await both(async (fleet) => {
    const offer = offers[fleet].find((one) => one.gpu_name === wish.gpu_name && one.gpu_count === wish.gpu_count);
    const rented = await call('POST', '/instances', { ask_id: offer?.id, type });
    expect(rented.status, rented.text).toBe(201);
    return rented.id;
  });
  const ids = { labels, slices };
  const places = await both((fleet) =>
    waitFor('the place', () => stored(ids[fleet])?.status?.claim?.node.replace(`${poolOf(fleet)}-`, '')),
  );
  expect(places[0]).toBe(places[1]);
  const machine = machines[Number(places[0])] as Machine;
  expect(machine.isCordoned).toBe(false);
  expect(freeOn(machine)).toBeGreaterThanOrEqual(wish.gpu_count);
  rentals.add({ ids, machine, gpus: wish.gpu_count });
  return true;
}

async function end(): Promise<boolean> {
  const rental = chance.of([...rentals]);
  if (rental === undefined) return false;
  rentals.delete(rental);
  const answers = await both((fleet) => call('DELETE', `/instances/${rental.ids[fleet]}`));
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  return true;
}

/** As a driver tells of it in its slice, and a kubelet of what its device plugin has left. */
async function tell(machine: Machine): Promise<void> {
  machine.generation += 1;
  const { name, generation } = { name: nodeOf('slices', machine), generation: machine.generation };
  const spec = { devices: devicesOf(machine), pool: { generation } };
  const status = { allocatable: { [RESOURCE]: String(machine.gpus - machine.sick.size) } };
  const options = { type: 'strategic', subresource: 'status' } as const;
  await Promise.all([
    tenant.client.patch(RESOURCE_SLICES, { name }, { spec }, { type: 'merge' }),
    tenant.client.patch(NODES, { name: nodeOf('labels', machine) }, { status }, options),
  ]);
}

/** A device that nobody has falls sick. */
async function taint(): Promise<boolean> {
  const machine = chance.of(machines.filter((one) => freeOn(one) > 0));
  if (machine === undefined) return false;
  const held = heldOn(machine);
  const free = Array.from({ length: machine.gpus }, (_, index) => index).filter(
    (index) => !held.includes(index) && !machine.sick.has(index),
  );
  machine.sick.add(chance.one(free));
  await tell(machine);
  return true;
}

async function heal(): Promise<boolean> {
  const machine = chance.of(machines.filter(({ sick }) => sick.size > 0));
  if (machine === undefined) return false;
  machine.sick.delete(chance.one([...machine.sick]));
  await tell(machine);
  return true;
}

async function close(isCordoned: boolean): Promise<boolean> {
  const machine = chance.of(machines.filter((one) => one.isCordoned !== isCordoned));
  if (machine === undefined) return false;
  machine.isCordoned = isCordoned;
  const spec = { unschedulable: isCordoned || null };
  await both((fleet) => tenant.client.patch(NODES, { name: nodeOf(fleet, machine) }, { spec }, { type: 'merge' }));
  return true;
}

const ACTS: Readonly<Record<Exclude<Step, 'rent'>, () => Promise<boolean>>> = {
  end,
  taint,
  heal,
  cordon: () => close(true),
  uncordon: () => close(false),
};

it(
  'has the same offers by labels and by slices, whatever is rented, ended, tainted and cordoned',
  { timeout: 300_000 * LIVES },
  async () => {
    let offers = await agreed();
    for (let round = 0; round < ROUNDS; round += 1) {
      const steps = STEPS.map((step) => ({ step, at: chance.next() })).toSorted((a, b) => a.at - b.at);
      // Each fleet has its own pace. Only where both are at rest they must choose the same machine.
      for (const { step } of steps) if (step === 'rent' && (await rent(offers))) done.push(step);
      await haveGpus();
      for (const { step } of steps) if (step !== 'rent' && (await ACTS[step]())) done.push(step);
      offers = await agreed();
    }
    const counts = Object.entries(Object.groupBy(done, (step) => step)).map(([step, all]) => `${all.length} ${step}`);
    process.stdout.write(`two fleets of ${MACHINES} nodes, seed ${SEED}: ${counts.join(', ')}\n`);
    expect(counts).toHaveLength(6);
  },
);
