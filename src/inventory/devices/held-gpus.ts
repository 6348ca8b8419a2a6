import { addAmounts, type Amounts } from '../amounts.ts';
import { type DeviceGroup, type DeviceSupply, type Holder, isTainted } from './device-group.ts';
import { lostPieces, type Rivals } from './rivals.ts';
import { byGpu, type Counters, fits, giveBack, needsOf, roomFor, take } from './shared-counters.ts';
import type { NamedDevice } from './slices.ts';

interface Gpu {
  readonly devices: ReadonlySet<NamedDevice>;
  readonly counters: Readonly<Counters>;
}

/** The GPUs of a node, and who has what of them. */
export interface HeldGpus {
  readonly groups: readonly DeviceGroup[];
  readonly rivals: Rivals;
  readonly gpus: readonly Gpu[];
  /** By the id of a device. */
  readonly holders: ReadonlyMap<string, readonly Holder[]>;
}

/** Ids of devices. */
type Ids = ReadonlySet<string>;

// Claims change all the time, and devices rarely.
const known = new WeakMap<readonly NamedDevice[], readonly Gpu[]>();

function gpusOf({ devices, counters }: DeviceSupply): readonly Gpu[] {
  const found =
    known.get(devices) ??
    byGpu(devices).map((gpu) => {
      const keys = new Set(gpu.flatMap((one) => [...needsOf(one).keys()]));
      return { devices: new Set(gpu), counters: new Map([...keys].map((key) => [key, counters.get(key) ?? 0])) };
    });
  known.set(devices, found);
  return found;
}

export function heldGpus(groups: readonly DeviceGroup[], rivals: Rivals): HeldGpus | undefined {
  const [first] = groups;
  if (first === undefined) return undefined;
  return { groups, rivals, gpus: gpusOf(first.supply), holders: first.supply.holders() };
}

/** What is left of the counters of a GPU when these devices are given back. */
function leftOn({ holders }: HeldGpus, gpu: Gpu, gone: Ids): Counters {
  const left: Counters = new Map(gpu.counters);
  for (const one of gpu.devices) if (holders.has(one.id) && !gone.has(one.id)) take(left, one);
  return left;
}

const NOTHING: Ids = new Set();

/** Pieces of each resource that become free when these devices are given back, themselves aside: others have their counters. */
export function freedBeside(held: HeldGpus, gone: Ids): Amounts {
  const touched = held.gpus.filter(({ devices }) => [...devices].some(({ id }) => gone.has(id)));
  const blocked = (own: readonly NamedDevice[], gpu: Gpu, without: Ids): number => {
    const isHad = ({ id }: NamedDevice): boolean => held.holders.has(id) && !without.has(id);
    const rest = own.filter((one) => gpu.devices.has(one) && !isTainted(one.device) && !isHad(one));
    return rest.length - roomFor(leftOn(held, gpu, without), rest);
  };
  return held.groups.reduce<Amounts>((sum, { resourceName, devices }) => {
    const freed = touched.reduce((all, gpu) => all + blocked(devices, gpu, NOTHING) - blocked(devices, gpu, gone), 0);
    return freed === 0 ? sum : addAmounts(sum, lostPieces(held.rivals, resourceName, freed));
  }, {});
}

/** As few of them as are enough: those that come first are spared first. */
export function leastOf<T>(all: readonly T[], isEnough: (some: readonly T[]) => boolean): readonly T[] {
  let some = all;
  for (const one of all) {
    const others = some.filter((other) => other !== one);
    if (isEnough(others)) some = others;
  }
  return some;
}

/**
 * For each device of a resource that others are in the way of: who of these must leave so that the scheduler can give it
 * out. `yielding`: whose the devices are that may be given back, by their ids; `order`: who is to be spared first.
 */
export function* waysTo<T>(
  held: HeldGpus,
  resourceName: string,
  { gone, yielding, order }: { gone: Ids; yielding: ReadonlyMap<string, T>; order: (a: T, b: T) => number },
): Generator<readonly T[]> {
  const own = held.groups.find((group) => group.resourceName === resourceName)?.devices ?? [];
  for (const gpu of held.gpus) {
    const ofGpu = [...gpu.devices].filter(({ id }) => yielding.has(id) && !gone.has(id));
    if (ofGpu.length === 0) continue;
    const left = leftOn(held, gpu, gone);
    for (const one of own) {
      if (!gpu.devices.has(one) || isTainted(one.device)) continue;
      const isHad = held.holders.has(one.id) && !gone.has(one.id);
      const lacking = [...needsOf(one)].flatMap(([key, need]) => ((left.get(key) ?? 0) < need ? key : []));
      const inTheWay = ofGpu.filter((other) => other === one || lacking.some((key) => needsOf(other).has(key)));
      const all = [...new Set(inTheWay.flatMap(({ id }) => yielding.get(id) ?? []))].toSorted(order);
      const comes = (leaving: readonly T[]): boolean => {
        const more = new Map(left);
        const given = inTheWay.filter(({ id }) => leaving.some((who) => who === yielding.get(id)));
        for (const device of given) giveBack(more, device);
        return (!isHad || given.includes(one)) && fits(more, one);
      };
      if (all.length > 0 && comes(all) && !comes([])) yield leastOf(all, comes);
    }
  }
}
