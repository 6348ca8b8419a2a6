import { parseQuantity } from '../../kube/quantity.ts';
import type { NamedDevice } from './slices.ts';

/** Counters by their keys. */
export type Counters = Map<string, number>;

export function counterKey(pool: string, set: string, name: string): string {
  return [pool, set, name].join('\0');
}

const known = new WeakMap<NamedDevice['device'], Map<string, Counters>>();

function readNeeds({ pool, device }: NamedDevice): Counters {
  const needs: Counters = new Map();
  for (const { counterSet, counters } of device.consumesCounters ?? []) {
    for (const [name, { value }] of Object.entries(counters)) {
      const amount = parseQuantity(value) ?? 0;
      const key = counterKey(pool, counterSet, name);
      if (amount > 0) needs.set(key, (needs.get(key) ?? 0) + amount);
    }
  }
  return needs;
}

/** What a device takes of counters. A slice is read again only when it changes. */
export function needsOf(one: NamedDevice): Readonly<Counters> {
  const byPool = known.get(one.device) ?? new Map<string, Counters>();
  known.set(one.device, byPool);
  const needs = byPool.get(one.pool) ?? readNeeds(one);
  byPool.set(one.pool, needs);
  return needs;
}

export function take(left: Counters, device: NamedDevice): void {
  for (const [key, amount] of needsOf(device)) left.set(key, (left.get(key) ?? 0) - amount);
}

export function giveBack(left: Counters, device: NamedDevice): void {
  for (const [key, amount] of needsOf(device)) left.set(key, (left.get(key) ?? 0) + amount);
}

export function fits(left: Counters, device: NamedDevice): boolean {
  return [...needsOf(device)].every(([key, amount]) => (left.get(key) ?? 0) >= amount);
}

/** Whether all of them can be in use at once: whole GPUs can, a GPU and its partitions cannot. */
export function fitTogether(counters: Readonly<Counters>, devices: readonly NamedDevice[]): boolean {
  const left = new Map(counters);
  for (const device of devices) take(left, device);
  return [...left.values()].every((amount) => amount >= 0);
}

/** Devices by the GPU that they are of: those that counters link, at one remove or more. */
export function byGpu(devices: readonly NamedDevice[]): NamedDevice[][] {
  const groups = new Map<string, Set<NamedDevice>>();
  for (const one of devices) {
    const keys = [one.id, ...needsOf(one).keys()];
    const [joined = new Set<NamedDevice>(), ...others] = new Set(keys.flatMap((key) => groups.get(key) ?? []));
    for (const other of [one, ...others.flatMap((group) => [...group])]) {
      joined.add(other);
      for (const key of [other.id, ...needsOf(other).keys()]) groups.set(key, joined);
    }
  }
  return [...new Set(groups.values())].map((group) => [...group]);
}

/** How many of the devices fit for certain into what is left, whichever of them come first. */
function roomOnGpu(left: Counters, devices: readonly NamedDevice[]): number {
  const free = devices.filter((one) => fits(left, one));
  const keys = new Set(free.flatMap((one) => [...needsOf(one).keys()]));
  let room = free.length;
  for (const key of keys) {
    // Any so many fit if the neediest do.
    const needs = free.map((one) => needsOf(one).get(key) ?? 0).toSorted((a, b) => b - a);
    let rest = left.get(key) ?? 0;
    const misfit = needs.findIndex((need) => (rest -= need) < 0);
    if (misfit >= 0) room = Math.min(room, misfit);
  }
  return room;
}

/** How many of the devices fit for certain, whichever of them the scheduler takes first. */
export function roomFor(left: Counters, devices: readonly NamedDevice[]): number {
  return byGpu(devices).reduce((sum, ofGpu) => sum + roomOnGpu(left, ofGpu), 0);
}

/** The most by which one device lowers what {@link roomOnGpu} finds for others, whatever else is taken. */
function lossOnGpu(taken: NamedDevice, others: readonly NamedDevice[]): number {
  const needs = needsOf(taken);
  const gone = new Set(others.filter(({ id }) => id === taken.id));
  let loss = 0;
  for (const [key, amount] of needs) {
    const users = others.filter((one) => needsOf(one).has(key));
    const [only] = users;
    if (only !== undefined && users.length === 1) gone.add(only);
    // So many of them need at least what it takes.
    else loss = Math.max(loss, Math.ceil(amount / Math.min(...users.map((one) => needsOf(one).get(key) ?? amount))));
  }
  return Math.min(others.length, Math.max(loss, gone.size));
}

/** How many of the others one of the devices takes away at most, whichever of them the scheduler chooses. */
export function mostLost(devices: readonly NamedDevice[], others: readonly NamedDevice[]): number {
  const groups = new Map<string, Set<NamedDevice[]>>();
  for (const group of byGpu(others)) {
    for (const key of group.flatMap((one) => [one.id, ...needsOf(one).keys()])) {
      groups.set(key, (groups.get(key) ?? new Set()).add(group));
    }
  }
  const losses = devices.map((one) => {
    const touched = new Set([one.id, ...needsOf(one).keys()].flatMap((key) => [...(groups.get(key) ?? [])]));
    return [...touched].reduce((sum, group) => sum + lossOnGpu(one, group), 0);
  });
  return Math.max(0, ...losses);
}
