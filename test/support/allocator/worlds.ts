import type { DeviceClass, ResourceSlice } from '../../../src/kube/devices.ts';
import { Chance } from '../../simulation/clock/chance.ts';
import { deviceClass, gpuDevice, resourceSlice } from '../device-world.ts';
import { classNameOf } from '../mig-fleet.ts';
import { KINDS, migClass, migNode } from '../mig-node.ts';
import { type Shape, sharedDevice, someShape } from '../shared-gpus.ts';
import type { Ask } from './allocator.ts';

// Nodes with devices that a seed decides.

export const NODE = 'n';
const PRODUCT = 'NVIDIA A100-SXM4-80GB';
const PROFILES = KINDS.slice(1);

export type Device = NonNullable<ResourceSlice['spec']['devices']>[number];
type CounterSet = NonNullable<ResourceSlice['spec']['sharedCounters']>[number];

/** What the GPUs of a node are. */
export const SORTS = ['MIG', 'random counters', 'shared'] as const;
export type Sort = (typeof SORTS)[number];

export interface AllocatorWorld {
  sort: Sort;
  /** The slices when the first claims got devices, and now. */
  before: ResourceSlice[];
  slices: ResourceSlice[];
  /** The first is the one of the pool, and the others are its partitions. */
  classes: [DeviceClass, ...DeviceClass[]];
  taken: Ask[];
}

/** The devices of one pool of slices, with their counters. */
interface Content {
  sets: CounterSet[];
  devices: Device[];
}

type Attributes = NonNullable<Device['attributes']>;

function attributesOf(kind: string): Attributes {
  return {
    productName: { string: PRODUCT },
    driverVersion: { version: '580.95.5' },
    type: { string: kind === 'gpu' ? 'gpu' : 'mig' },
    ...(kind !== 'gpu' && { profile: { string: kind } }),
  };
}

function migContent(chance: Chance): Content {
  const [sets, devices] = migNode(NODE, chance.int(1, 4), PRODUCT);
  return { sets: sets?.spec.sharedCounters ?? [], devices: devices?.spec.devices ?? [] };
}

/** A number of parts of an amount that stays whole. */
function split(chance: Chance, amount: number, parts: number, areAlike: boolean): number[] {
  const even = Math.max(1, Math.floor(amount / parts));
  return Array.from({ length: parts }, () => (areAlike ? even : chance.int(1, even)));
}

/** The partitions of one profile: most of them fit together, and sometimes they are too many. */
function partitionsOf(chance: Chance, profile: string, { name: counterSet, counters }: CounterSet): Device[] {
  const count = chance.int(1, 4);
  const tooMany = chance.is(0.15) ? chance.int(1, 2) : 0;
  const areAlike = chance.is(0.6);
  const used = Object.entries(counters).filter(([name]) => name === 'memory' || chance.is(0.7));
  const needs = used.map(([name, { value }]) => {
    const amounts = split(chance, Number(value), chance.int(count, count + 2), areAlike);
    return [name, [...amounts, ...amounts]] as const;
  });
  return Array.from({ length: Math.min(count + tooMany, 2 * count) }, (_, index) => ({
    name: `${counterSet}-${classNameOf(profile)}-${index}`,
    attributes: attributesOf(profile),
    capacity: { memory: { value: '10Gi' } },
    consumesCounters: [
      {
        counterSet,
        counters: Object.fromEntries(needs.map(([name, amounts]) => [name, { value: String(amounts[index]) }])),
      },
    ],
  }));
}

function counterContent(chance: Chance): Content {
  const most = { memory: chance.int(4, 24), cores: chance.int(3, 12), engines: chance.int(2, 8) };
  const names = Object.entries(most).slice(0, chance.int(1, 3));
  const counters = Object.fromEntries(names.map(([name, amount]) => [name, { value: String(amount) }]));
  const sets = Array.from({ length: chance.int(1, 4) }, (_, index) => ({ name: `gpu-${index}`, counters }));
  const profiles = PROFILES.slice(0, chance.int(1, 3));
  const devices = sets.flatMap((set): Device[] => {
    const consumesCounters = [{ counterSet: set.name, counters }];
    const whole = gpuDevice(set.name, PRODUCT, { attributes: attributesOf('gpu'), consumesCounters });
    return [whole, ...profiles.flatMap((profile) => partitionsOf(chance, profile, set))];
  });
  return { sets, devices: chance.is(0.3) ? devices.toSorted(() => chance.next() - 0.5) : devices };
}

function plainDevices(chance: Chance): Device[] {
  const count = chance.int(1, 2);
  return Array.from({ length: count }, (_, index) => gpuDevice(`plain-${index}`, PRODUCT));
}

function sharedContent(chance: Chance, shape: Shape): Content {
  const areAlike = chance.is(0.9);
  const devices = Array.from({ length: chance.int(1, 3) }, (_, index) =>
    sharedDevice(`gpu-${index}`, areAlike ? shape : someShape(chance), attributesOf('gpu')),
  );
  return { sets: [], devices };
}

function contentOf(chance: Chance, sort: Sort, shape: Shape): Content {
  const { sets, devices } = {
    MIG: migContent,
    'random counters': counterContent,
    shared: () => sharedContent(chance, shape),
  }[sort](chance);
  const others = chance.is(0.3) ? plainDevices(chance) : [];
  return { sets, devices: [...devices, ...others] };
}

/** Counters and devices stand in different slices. */
function slicesOf({ sets, devices }: Content, name: string, generation = 1, missing = 0): ResourceSlice[] {
  const resourceSliceCount = (sets.length > 0 ? 2 : 1) + missing;
  const pool = { name, generation, resourceSliceCount };
  const made = [
    ...(sets.length > 0 ? [resourceSlice(NODE, [], { pool, sharedCounters: sets })] : []),
    resourceSlice(NODE, devices, { pool }),
  ];
  return made.map(({ spec }, index) => {
    const { devices: own = [], ...rest } = spec;
    const metadata = { name: `${name}-${generation}-${index}`, resourceVersion: String(generation) };
    return { metadata, spec: { ...rest, ...(own.length > 0 && { devices: own }) } };
  });
}

function tainted(chance: Chance, devices: readonly Device[]): Device[] {
  return devices.map((device) => {
    if (!chance.is(0.2)) return device;
    const effect = chance.one(['NoSchedule', 'NoExecute', 'None']);
    return { ...device, taints: [{ key: 'gpu.nvidia.com/xid', value: '79', effect }] };
  });
}

/** What becomes of a pool of slices after claims have got devices of it. */
function later(chance: Chance, content: Content, name: string): ResourceSlice[] {
  const { sets, devices } = chance.is(0.3) ? { ...content, devices: tainted(chance, content.devices) } : content;
  return chance.weighted([
    [80, () => slicesOf({ sets, devices }, name)],
    // A newer generation, of which a slice is still missing.
    [4, () => [...slicesOf(content, name), ...slicesOf({ sets, devices }, name, 2).slice(0, 1)]],
    [4, () => slicesOf({ sets, devices }, name, 1, 1)],
    // The old one is there still.
    [6, () => [...slicesOf(content, name), ...slicesOf({ sets, devices }, name, 2)]],
    [4, () => slicesOf({ sets, devices: devices.filter(() => chance.is(0.9)) }, name, 2)],
    [2, () => slicesOf({ sets, devices: [...devices, ...devices.slice(0, 1)] }, name, 2)],
  ])();
}

function classesOf(chance: Chance, sort: Sort): AllocatorWorld['classes'] {
  const [whole = '', ...profiles] = KINDS;
  if (sort !== 'shared') {
    return [migClass(classNameOf(whole), whole), ...profiles.map((kind) => migClass(classNameOf(kind), kind))];
  }
  const cel = (isShared: boolean) => ({ cel: { expression: `device.allowMultipleAllocations == ${isShared}` } });
  const every = deviceClass('gpu', { extendedResourceName: undefined });
  const only = (name: string, isShared: boolean): DeviceClass => ({
    metadata: { name },
    spec: { selectors: [...(every.spec.selectors ?? []), cel(isShared)] },
  });
  return chance.is(0.5) ? [every] : [only('gpu-shared', true), only('gpu-whole', false)];
}

function asksOf(chance: Chance, { sort, classes }: Pick<AllocatorWorld, 'sort' | 'classes'>, shape: Shape): Ask[] {
  return Array.from({ length: chance.int(0, sort === 'shared' ? 4 : 8) }, () => {
    const { name } = chance.one(classes).metadata;
    if (sort !== 'shared' || chance.is(0.6)) return { class: name };
    const asked = Object.entries(shape).filter(() => chance.is(0.7));
    const capacity = asked.map(([key, { value, unit }]) => [key, `${chance.int(1, Math.ceil(value / 2))}${unit}`]);
    return { class: name, capacity: Object.fromEntries(capacity) as Record<string, string> };
  });
}

export function someWorld(seed: number): AllocatorWorld {
  const chance = new Chance(seed);
  const sort = chance.one(SORTS);
  const shape = someShape(chance);
  const pools = chance.is(0.15) ? ['a', 'b'] : ['a'];
  const contents = pools.map((name) => ({ name, content: contentOf(chance, sort, shape) }));
  const classes = classesOf(chance, sort);
  return {
    sort,
    before: contents.flatMap(({ name, content }) => slicesOf(content, name)),
    slices: contents.flatMap(({ name, content }) => later(chance, content, name)),
    classes,
    taken: asksOf(chance, { sort, classes }, shape),
  };
}
