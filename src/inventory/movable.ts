import { compareText } from '../lib/compare.ts';
import { isTainted } from './devices/device-group.ts';
import { type ClaimHolding, isOwn } from './holdings.ts';
import type { NodeFacts, NodeView } from './nodes/node-view.ts';

export type ClaimsOn = (node: string) => readonly ClaimHolding[];

/** What could move on a node. */
export interface Movable {
  /** Interruptible instances, the newest first: the instance that has run longest keeps its place. */
  interruptible: readonly ClaimHolding[];
  leaving: readonly ClaimHolding[];
  /** By the ids of devices: who gives them back when it leaves. */
  owners: ReadonlyMap<string, ClaimHolding>;
  /** Those of interruptible instances whose pods have them for certain. */
  yielding: ReadonlyMap<string, ClaimHolding>;
  /** Devices of pods that have ended, whose instances are gone from the node, and whose claims go next. */
  orphaned: ReadonlySet<string>;
}

export function newestFirst(a: ClaimHolding, b: ClaimHolding): number {
  return compareText(b.claim.grantedAt, a.claim.grantedAt) || compareText(b.key, a.key);
}

function devicesOf({ held }: NodeFacts, claims: readonly ClaimHolding[]) {
  const owners = new Map<string, ClaimHolding>();
  const [placed, orphaned] = [new Set<string>(), new Set<string>()];
  const devices = held?.gpus.flatMap((gpu) => [...gpu.devices]) ?? [];
  // Nobody gets a device with a taint, nor what takes from it: whoever leaves it leaves nothing.
  for (const { id } of devices.filter(({ device }) => !isTainted(device))) {
    const holders = held?.holders.get(id) ?? [];
    const [first] = holders;
    if (first === undefined) continue;
    const owner = claims.find((claim) => isOwn(claim, first));
    if (owner !== undefined && holders.every((one) => isOwn(owner, one))) owners.set(id, owner);
    if (holders.every(({ stage }) => stage === 'placed')) placed.add(id);
    const isOrphan = owner === undefined && holders.every(({ stage, instance }) => stage === 'over' && instance);
    if (isOrphan) orphaned.add(id);
  }
  return { owners, placed, orphaned };
}

// A search looks at every node. A view lasts until its claims change.
const movables = new WeakMap<NodeView, Movable>();

export function movableOn(view: NodeView, claimsOn: ClaimsOn): Movable {
  const known = movables.get(view);
  if (known !== undefined) return known;
  const claims = claimsOn(view.facts.name);
  const { owners, placed, orphaned } = devicesOf(view.facts, claims);
  const interruptible = claims.filter((one) => one.interruptible && one.leavingSince === undefined);
  const movable = {
    interruptible: interruptible.toSorted(newestFirst),
    leaving: claims.filter(({ leavingSince }) => leavingSince !== undefined),
    owners,
    yielding: new Map([...owners].filter(([id, owner]) => placed.has(id) && interruptible.includes(owner))),
    orphaned,
  };
  movables.set(view, movable);
  return movable;
}
