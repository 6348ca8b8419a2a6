import { parseQuantity } from '../../../src/kube/quantity.ts';
import { type Allocation, type Answer, askAllocator } from './allocator.ts';
import { offered } from './offered.ts';
import { type AllocatorWorld, type Device, NODE } from './worlds.ts';

// Why Berth offers less of a class than the scheduler places: each reason is found anew here, from the slices.

interface Less {
  world: AllocatorWorld;
  answer: Answer;
  name: string;
  available: number;
}

interface InPool {
  pool: string;
  device: Device;
}

/** The devices of the newest slices, pool by pool, where these are complete and name each once. */
function devicesThere({ slices }: AllocatorWorld): InPool[] {
  const pools = Map.groupBy(slices, ({ spec }) => spec.pool.name);
  return [...pools].flatMap(([pool, all]) => {
    const newest = Math.max(...all.map(({ spec }) => spec.pool.generation));
    const current = all.filter(({ spec }) => spec.pool.generation === newest);
    const devices = current.flatMap(({ spec }) => spec.devices ?? []);
    const isWhole = current.every(({ spec }) => spec.pool.resourceSliceCount === current.length);
    const areOnce = new Set(devices.map(({ name }) => name)).size === devices.length;
    return isWhole && areOnce ? devices.map((device) => ({ pool, device })) : [];
  });
}

/** Those of a class of whole GPUs or of partitions. */
function devicesOf(world: AllocatorWorld, name: string): InPool[] {
  const text = JSON.stringify(world.classes.find(({ metadata }) => metadata.name === name)?.spec.selectors);
  const profile = /profile == '([^']+)'/.exec(text)?.[1];
  const isShared = /allowMultipleAllocations == (\w+)/.exec(text)?.[1];
  return devicesThere(world)
    .filter(({ device }) => device.attributes?.['profile']?.string === profile)
    .filter(({ device }) => isShared === undefined || String(device.allowMultipleAllocations ?? false) === isShared);
}

/** Whether slices tell of the device that a claim has. */
function isTold(world: AllocatorWorld, { devices }: Allocation): boolean {
  const there = devicesThere(world);
  return (devices?.results ?? []).every((one) =>
    there.some(({ pool, device }) => pool === one.pool && device.name === one.device),
  );
}

function amountOf(value: string | undefined): number {
  return parseQuantity(value ?? '0') ?? 0;
}

/** Whether all of them want more than there is. */
function takeFromEachOther({ slices }: AllocatorWorld, devices: readonly InPool[]): boolean {
  const left = new Map<string, number>();
  for (const { spec } of slices)
    for (const set of spec.sharedCounters ?? [])
      for (const [name, { value }] of Object.entries(set.counters))
        left.set(`${spec.pool.name} ${set.name} ${name}`, amountOf(value));
  for (const { pool, device } of devices)
    for (const { counterSet, counters } of device.consumesCounters ?? [])
      for (const [name, { value }] of Object.entries(counters)) {
        const key = `${pool} ${counterSet} ${name}`;
        left.set(key, (left.get(key) ?? 0) - amountOf(value));
      }
  return [...left.values()].some((amount) => amount < 0);
}

/** The part of a shared device that a pod gets. */
function partOf({ capacity = {} }: Device): number {
  const parts = Object.values(capacity).map(
    ({ value, requestPolicy }) => amountOf(requestPolicy?.default ?? value) / amountOf(value),
  );
  return Math.max(...parts);
}

function needOf({ consumesCounters = [] }: Device, counter: string): number {
  return Math.max(0, ...consumesCounters.map(({ counters }) => amountOf(counters[counter]?.value)));
}

type Order = (a: Device, b: Device) => number;

/** The neediest of each counter first. */
function orders(world: AllocatorWorld): Order[] {
  const sets = world.slices.flatMap(({ spec }) => spec.sharedCounters ?? []);
  const names = [...new Set(sets.flatMap(({ counters }) => Object.keys(counters)))];
  return names.flatMap((name) =>
    names.map(
      (other): Order =>
        (a, b) =>
          needOf(b, name) - needOf(a, name) || needOf(b, other) - needOf(a, other),
    ),
  );
}

/** The fewest that the scheduler places where a driver tells of the same devices in another order. */
async function fewest(program: string, { world, answer, name }: Less): Promise<number> {
  const { classes } = world;
  const held = answer.taken.filter((one) => one !== null);
  const questions = orders(world).map((order) => {
    const slices = world.slices.map(({ metadata, spec }) => {
      return { metadata, spec: { ...spec, ...(spec.devices && { devices: spec.devices.toSorted(order) }) } };
    });
    return { node: NODE, before: [], slices, classes, held, taken: [] };
  });
  const answers = await askAllocator(program, questions);
  return Math.min(...answers.map(({ free }) => free[name] ?? 0), answer.free[name] ?? 0);
}

/** Whether two devices of one GPU need different amounts of a counter. */
function areUneven(devices: readonly InPool[]): boolean {
  const needs = new Map<string, string>();
  return devices.some(({ pool, device }) =>
    (device.consumesCounters ?? []).some(({ counterSet, counters }) => {
      const told = JSON.stringify(counters);
      const known = needs.get(`${pool} ${counterSet}`) ?? told;
      needs.set(`${pool} ${counterSet}`, known);
      return known !== told;
    }),
  );
}

/** The reason why less is offered; undefined when there is none. */
export async function whyLess(program: string, less: Less): Promise<string | undefined> {
  const { world, answer, name, available } = less;
  // A pod whose device no slice tells of counts as one that waits for any device of its class.
  const beside = offered(world, answer, (allocation) => isTold(world, allocation))[name] ?? 0;
  if (beside > available && beside === answer.free[name]) return 'less, no slice tells of the device of a pod';
  const own = devicesOf(world, name);
  const shared = own.filter(({ device }) => device.allowMultipleAllocations === true);
  if (available === 0 && takeFromEachOther(world, own)) return 'less, devices of the class take from each other';
  if (available === 0 && shared.length > 0 && shared.length < own.length) return 'less, shared devices beside others';
  if (available === 0 && new Set(shared.map(({ device }) => partOf(device))).size > 1)
    return 'less, shared devices with parts of several sizes';
  if (!areUneven(own)) return undefined;
  // Berth counts only as many as fit whichever they are: the neediest of each counter.
  const least = await fewest(program, less);
  if (least < available) return undefined;
  return least === available
    ? 'less, as many as in another order of the devices'
    : 'less, devices of the class need different amounts';
}
