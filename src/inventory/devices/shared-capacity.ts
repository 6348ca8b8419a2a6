import { parseQuantity } from '../../kube/quantity.ts';
import type { Device, NamedDevice, Part } from './slices.ts';

/** Quantities as claims and devices name them. */
type Quantities = Readonly<Record<string, string>>;

/** A device of more pieces is offered as so many: no node runs more pods. */
const MOST_PIECES = 128;
/** A bill has no larger number in the part of a GPU (src/resources/money.ts). */
const MOST_OF = 999_999;

// Whole thousandths: what is finer counts as more taken, and less there.
function atLeast(quantity: string): number {
  return Math.ceil((parseQuantity(quantity) ?? Number.POSITIVE_INFINITY) * 1000);
}

function atMost(quantity: string): number {
  return Math.floor((parseQuantity(quantity) ?? 0) * 1000);
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/** A capacity of a device, and how much of it a request takes that names none. */
interface Portion {
  name: string;
  all: number;
  piece: number;
}

/** Those that such a request takes something of (kubernetes dynamic-resource-allocation/structured, consumable_capacity.go). */
function portionsOf({ capacity = {} }: Device): Portion[] {
  const all = Object.entries(capacity).map(([name, { value, requestPolicy }]) => {
    return { name, all: atMost(value), piece: atLeast(requestPolicy?.default ?? value) };
  });
  return all.filter(({ piece }) => piece !== 0);
}

function roomIn(portions: readonly Portion[], taken: readonly Quantities[]): number {
  const rooms = portions.map(({ name, all, piece }) => {
    const used = taken.reduce((sum, consumed) => sum + atLeast(consumed[name] ?? '0'), 0);
    return Math.floor((all - used) / piece);
  });
  return Math.max(0, Math.min(...rooms));
}

/** The part of the device that a piece is: of the capacity of which it takes the most. Undefined where no bill could say it. */
function shareOf(portions: readonly Portion[]): string | undefined {
  const [most] = portions.toSorted((a, b) => b.piece / b.all - a.piece / a.all);
  if (most === undefined || !Number.isSafeInteger(most.all) || !Number.isSafeInteger(most.piece)) return undefined;
  const by = divisor(most.all, most.piece);
  const [parts, all] = [most.piece / by, most.all / by];
  if (all > MOST_OF) return undefined;
  return all === 1 ? String(parts) : `${parts}/${all}`;
}

function pieceOf(device: Device): Device {
  const { capacity = {}, ...rest } = device;
  const pieces = Object.entries(capacity).map(([name, { value, requestPolicy }]) => {
    return [name, { value: requestPolicy?.default ?? value }] as const;
  });
  return { ...rest, capacity: Object.fromEntries(pieces) };
}

/**
 * A device that several claims may share as its pieces: what pods get that ask by an extended resource, which names no
 * capacity. One that nobody can share is itself, and so is one whose pieces cannot be counted: that is not sold.
 */
export function piecesOf(one: NamedDevice): readonly NamedDevice[] {
  const { device, id } = one;
  if (device.allowMultipleAllocations !== true) return [one];
  const portions = portionsOf(device);
  const share = shareOf(portions);
  // Its first claim takes all its counters, and the others none.
  if (share === undefined || portions.some(({ piece }) => piece < 0) || (device.consumesCounters ?? []).length > 0)
    return [one];
  const count = Math.min(MOST_PIECES, roomIn(portions, []));
  const [piece, part] = [pieceOf(device), { id, device, share, count }];
  return Array.from({ length: count }, (_, index) => {
    return { ...one, id: `${id}#${index}`, device: piece, part: { ...part, index } };
  });
}

/** How many pieces of a device others than these may have. `taken`: by claim, what it has of it; undefined: all. */
export function roomBeside({ device }: Part, taken: readonly (Quantities | undefined)[]): number {
  const parts = taken.filter((consumed) => consumed !== undefined);
  return parts.length < taken.length ? 0 : Math.min(MOST_PIECES, roomIn(portionsOf(device), parts));
}
