import { hash32 } from './hash.ts';

const VNODES = 256;
/** An endpoint may have at most this many times the average load (Mirrokni, Thorup, Zadimoghaddam 2016). */
export const LOAD_BOUND = 1.25;

/** Points of every endpoint on a circle of 32-bit hashes. A new endpoint moves only the keys that it takes over. */
export interface Ring {
  /** Ascending. */
  points: Uint32Array;
  /** Index of the endpoint that owns the point at the same position. */
  owners: Uint16Array;
  size: number;
}

/** @param names of the endpoints, at most 65,535, distinct */
export function buildRing(names: readonly string[]): Ring {
  const all: { point: number; owner: number }[] = [];
  for (const [owner, name] of names.entries()) {
    for (let vnode = 0; vnode < VNODES; vnode += 1) all.push({ point: hash32(`${name}#${vnode}`), owner });
  }
  // Equal points are ordered by name: every replica of the gateway builds the same ring.
  all.sort((a, b) => a.point - b.point || ((names[a.owner] ?? '') < (names[b.owner] ?? '') ? -1 : 1));
  return {
    points: Uint32Array.from(all, ({ point }) => point),
    owners: Uint16Array.from(all, ({ owner }) => owner),
    size: names.length,
  };
}

/**
 * Consistent hashing with bounded loads: walks the ring from the key and takes the first endpoint that is allowed and
 * has at most 1.25 times the average of the loads (requests under way, in the order of the names), this one included.
 * Returns its index, or -1 when none is allowed.
 */
export function pickBounded(
  ring: Ring,
  key: number,
  loads: readonly number[],
  allowed: (index: number) => boolean,
): number {
  let candidates = 0;
  let total = 1;
  for (let index = 0; index < ring.size; index += 1) {
    if (!allowed(index)) continue;
    candidates += 1;
    total += loads[index] ?? 0;
  }
  if (candidates === 0) return -1;
  const bound = Math.ceil((total / candidates) * LOAD_BOUND);
  const count = ring.points.length;
  for (let step = 0, at = lowerBound(ring.points, key); step < count; step += 1, at += 1) {
    const owner = ring.owners[at >= count ? at - count : at] ?? 0;
    if ((loads[owner] ?? 0) < bound && allowed(owner)) return owner;
  }
  return -1;
}

function lowerBound(points: Uint32Array, key: number): number {
  let low = 0;
  let high = points.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((points[middle] ?? 0) < key) low = middle + 1;
    else high = middle;
  }
  return low === points.length ? 0 : low;
}
