import { addAmounts, type Amounts } from '../amounts.ts';
import type { DeviceGroup } from './device-group.ts';
import { mostLost } from './shared-counters.ts';

/** By resource: how many pieces of each other resource of its node one piece takes at most. */
export type Rivals = Readonly<Record<string, Amounts>>;

const NONE: Rivals = {};

// Groups change with each claim, and their devices rarely.
const losses = new WeakMap<DeviceGroup['devices'], WeakMap<DeviceGroup['devices'], number>>();

function lossOf({ devices }: DeviceGroup, { devices: others }: DeviceGroup): number {
  const known = losses.get(devices) ?? new WeakMap<DeviceGroup['devices'], number>();
  losses.set(devices, known);
  const loss = known.get(others) ?? mostLost(devices, others);
  known.set(others, loss);
  return loss;
}

/** Groups of one node that are parts of the same GPUs. */
export function rivalsOf(groups: readonly DeviceGroup[]): Rivals {
  if (groups.length < 2) return NONE;
  const found = groups.flatMap((group) => {
    const others = groups.filter((other) => other !== group);
    const lost = others.map((other) => [other.resourceName, lossOf(group, other)] as const);
    const rivals = lost.filter(([, loss]) => loss > 0);
    return rivals.length === 0 ? [] : [[group.resourceName, Object.fromEntries(rivals)] as const];
  });
  return Object.fromEntries(found);
}

// Names that no resource can have.
const WAITING = 'device:waiting:';
const LOST = 'device:lost:';

/** How many pieces of a resource were granted and have no device yet. */
export function waitingFor(used: Amounts, resourceName: string): number {
  return used[WAITING + resourceName] ?? 0;
}

/** How many pieces of a resource nobody has, and other parts of their GPUs are in use. */
export function lostOf(used: Amounts, resourceName: string): number {
  return used[LOST + resourceName] ?? 0;
}

/** Pieces that are taken because others have their counters: where a pool sells those too, they are known to be lost. */
export function lostPieces(rivals: Rivals, resourceName: string, count: number): Amounts {
  return { [resourceName]: count, ...(resourceName in rivals && { [LOST + resourceName]: count }) };
}

/**
 * What pieces without a device take beside themselves. The scheduler may choose any device, so each of them takes as much of
 * its rivals as the worst one would.
 */
export function unplaced(rivals: Rivals, pieces: Amounts): Amounts {
  let taken: Amounts = {};
  for (const [name, count] of Object.entries(pieces)) {
    const others = rivals[name];
    if (others === undefined || count <= 0) continue;
    taken = addAmounts(taken, { [WAITING + name]: count });
    for (const [other, loss] of Object.entries(others))
      taken = addAmounts(taken, lostPieces(rivals, other, loss * count));
  }
  return taken;
}
