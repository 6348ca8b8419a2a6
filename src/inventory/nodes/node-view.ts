import type { Node } from '../../kube/types.ts';
import type { Claim } from '../../resources/instances/gpu-instance.ts';
import { sameJson } from '../../lib/json.ts';
import { isExtendedResource } from '../../kube/quantity.ts';
import { addAmounts, type Amounts, toAmounts } from '../amounts.ts';
import type { DeviceGroup } from '../devices/device-group.ts';
import { type HeldGpus, heldGpus } from '../devices/held-gpus.ts';
import { lostPieces, type Rivals, rivalsOf, unplaced, waitingFor } from '../devices/rivals.ts';
import { groupsFor, NO_DEVICES, type NodeDevices, toldNode } from '../devices/told-node.ts';
import { makerOn } from '../makers/makers.ts';
import { driverOf, type GpuResource, gpuResourcesOf, type Labels, type Maker } from './gpu-labels.ts';
import { isolationOn, type UserNamespaceSupport, userNamespaceSupport } from './isolation.ts';
import { type Architectures, isClosed, isGpuIsolationEnforced, isSimulated, tolerationsOf } from './node-state.ts';
import { type Pool, poolOf } from '../pools.ts';

/** What a node has, apart from what is taken. */
export interface NodeFacts {
  readonly name: string;
  /** Undefined when the node is not for rent. */
  readonly pool: Pool | undefined;
  /** Nothing new can be started here now. */
  readonly isClosed: boolean;
  readonly simulated: boolean;
  readonly resources: readonly GpuResource[];
  readonly allocatable: Amounts;
  /** Of devices, healthy or not. */
  readonly capacity: Amounts;
  /** What claims of devices take beside pods that run, each with its instance. */
  readonly claimed: readonly { readonly instance: string | undefined; readonly amounts: Amounts }[];
  /** The devices of pods that claims name, each with its instance; `sick`: those of them that nobody gets afterwards. */
  readonly located: readonly {
    readonly pod: string;
    readonly instance: string | undefined;
    readonly amounts: Amounts;
    readonly sick: Amounts;
  }[];
  /** What one piece of a resource may take of others, because they are parts of the same GPUs. */
  readonly rivals: Rivals;
  /** The GPUs that slices tell of, and who has what of them; undefined where they tell of none. */
  readonly held: HeldGpus | undefined;
  /** Whose GPUs count here, and the labels that tell of them. */
  readonly maker: Maker;
  readonly labels: Labels;
  /** Names of the images the node has. The kubelet reports at most 50 by default. */
  readonly images: ReadonlySet<string>;
  readonly driverVersion: string;
  readonly cudaVersion: string;
  readonly userNamespaces: UserNamespaceSupport;
  /** The operator says so: containers get the GPUs of their device plugin alone. */
  readonly isGpuIsolationEnforced: boolean;
}

/** A node with what is taken on it. */
export interface NodeView {
  readonly facts: NodeFacts;
  readonly used: Amounts;
  /** Nothing new is placed here for a while, because starts keep failing. */
  readonly quarantined: boolean;
  /** Nothing new is placed here while programs have GPUs that were switched under them. */
  readonly switched: boolean;
}

function heldOf(groups: readonly DeviceGroup[], rivals: Rivals): Pick<NodeFacts, 'claimed' | 'located'> {
  return {
    claimed: groups.flatMap(({ resourceName, claimed, blocked }) => [
      ...claimed.map(({ instance, gpus }) => ({ instance, amounts: { [resourceName]: gpus } })),
      { instance: undefined, amounts: lostPieces(rivals, resourceName, blocked) },
    ]),
    located: groups.flatMap(({ resourceName, located }) =>
      located.map(({ pod, instance, gpus, sick }) => ({
        pod,
        instance,
        amounts: { [resourceName]: gpus },
        sick: { [resourceName]: sick },
      })),
    ),
  };
}

/** `devices`: what ResourceSlices say of the node. `architectures`: which ones Berth's tools run on. */
export function nodeFacts(
  real: Node,
  pools: readonly Pool[],
  devices: NodeDevices = NO_DEVICES,
  architectures?: Architectures,
): NodeFacts {
  const pool = poolOf(real, pools, devices);
  const groups = groupsFor(real, devices, pool?.spec.devices);
  const rivals = rivalsOf(groups);
  const node = toldNode(real, groups);
  const maker = makerOn(node, pool?.spec);
  return {
    name: node.metadata.name,
    pool,
    isClosed: isClosed(node, tolerationsOf(pool?.spec), architectures),
    simulated: isSimulated(node),
    resources: gpuResourcesOf(node, maker),
    allocatable: toAmounts(node.status?.allocatable),
    capacity: toAmounts(node.status?.capacity),
    ...heldOf(groups, rivals),
    rivals,
    held: heldGpus(groups, rivals),
    maker,
    labels: node.metadata.labels ?? {},
    images: new Set(node.status?.images?.flatMap(({ names }) => names ?? [])),
    ...driverOf(node, maker),
    userNamespaces: userNamespaceSupport(node),
    isGpuIsolationEnforced: isGpuIsolationEnforced(node),
  };
}

export function sameForRent(a: NodeFacts | undefined, b: NodeFacts | undefined): boolean {
  return a?.pool === b?.pool && a?.simulated === b?.simulated && sameJson(a?.resources, b?.resources);
}

/** One part of a node: `count` pieces of one of its resources. */
export interface Share {
  resource: GpuResource;
  count: number;
}

const GIB = 2 ** 30;
// A quarter of CPU and memory is left to system pods, or the last instance of a node would not fit.
const REQUESTED_PART = 0.75;

const largest = new WeakMap<NodeFacts, readonly GpuResource[]>();

/** The resources of a node: of those that are parts of the same GPUs the one with the largest pieces. */
export function largestOf(facts: NodeFacts): readonly GpuResource[] {
  const known = largest.get(facts);
  if (known !== undefined) return known;
  const bySize = facts.resources.toSorted((a, b) => b.weight - a.weight);
  const found: GpuResource[] = [];
  for (const one of bySize) {
    const isPart = found.some(({ resourceName }) => one.resourceName in (facts.rivals[resourceName] ?? {}));
    if (!isPart) found.push(one);
  }
  largest.set(facts, found);
  return found;
}

function portion(facts: NodeFacts, { resource, count }: Share): number {
  // A GPU that is out of service for a while keeps its part: it could not be let when it is back.
  const all = ({ total, resourceName }: GpuResource): number => Math.max(total, facts.capacity[resourceName] ?? 0);
  const whole = largestOf(facts).reduce((sum, one) => sum + all(one) * one.weight, 0);
  return whole === 0 ? 0 : (count * resource.weight) / whole;
}

/** `cpu` in thousandths of a core; memory and local disk in bytes. */
interface Part {
  cpu: number;
  memory: number;
  disk: number;
}

// A grant looks at every node. Facts and views do not change, so what follows from them is computed once.
const parts: Known<NodeFacts, Part> = new WeakMap();
const places: Known<NodeView, number> = new WeakMap();

/** Values of facts or a view, by resource and count. */
type Known<K extends object, T> = WeakMap<K, Map<GpuResource, T[]>>;

function once<K extends object, T>(known: Known<K, T>, owner: K, { resource, count }: Share, work: () => T): T {
  let byResource = known.get(owner);
  if (byResource === undefined) known.set(owner, (byResource = new Map()));
  let byCount = byResource.get(resource);
  if (byCount === undefined) byResource.set(resource, (byCount = []));
  return (byCount[count] ??= work());
}

/** CPU, memory and local disk in proportion to the GPUs, as offers show them. */
export function shareOf(facts: NodeFacts, share: Share): Part {
  return once(parts, facts, share, () => partOf(facts, share));
}

function partOf(facts: NodeFacts, share: Share): Part {
  const part = portion(facts, share);
  const { cpu = 0, memory = 0, 'ephemeral-storage': disk = 0 } = facts.allocatable;
  return { cpu: Math.floor(cpu * part), memory: Math.floor(memory * part), disk: Math.floor(disk * part) };
}

/** What a pod requests of what the node counts. `ephemeralGb`: its disk on the node, 0 for a PersistentVolumeClaim. */
export function requestsOf(facts: NodeFacts, share: Share, ephemeralGb: number): Amounts {
  const { cpu, memory } = shareOf(facts, share);
  const requests: Record<string, number> = { pods: 1, [share.resource.resourceName]: share.count };
  if (cpu > 0) requests['cpu'] = Math.max(1, Math.floor(cpu * REQUESTED_PART));
  if (memory > 0) requests['memory'] = Math.floor(memory * REQUESTED_PART);
  if (ephemeralGb > 0 && facts.allocatable['ephemeral-storage'] !== undefined) {
    requests['ephemeral-storage'] = ephemeralGb * GIB;
  }
  return requests;
}

/** What a place takes of a node before the scheduler has chosen its devices. */
export function takesOf(facts: NodeFacts, share: Share, ephemeralGb: number): Amounts {
  const { resource, count } = share;
  return addAmounts(requestsOf(facts, share, ephemeralGb), unplaced(facts.rivals, { [resource.resourceName]: count }));
}

/** What a claim takes from its node before its pod exists. */
export function amountsOfClaim(
  facts: NodeFacts | undefined,
  claim: Pick<Claim, 'resourceName' | 'gpuCount'>,
  ephemeralGb: number,
): Amounts {
  const resource = facts?.resources.find(({ resourceName }) => resourceName === claim.resourceName);
  if (facts === undefined || resource === undefined) return { [claim.resourceName]: claim.gpuCount, pods: 1 };
  return requestsOf(facts, { resource, count: claim.gpuCount }, ephemeralGb);
}

/** Free pieces of a resource, never below 0. */
export function freeOf(view: NodeView, resourceName: string): number {
  return Math.max(0, (view.facts.allocatable[resourceName] ?? 0) - (view.used[resourceName] ?? 0));
}

/** Whether all that is free of a resource on a node is parts of GPUs that are whole. */
export function breaksWhole(view: NodeView, { resourceName, weight }: GpuResource): boolean {
  const larger = largestOf(view.facts).find((one) => resourceName in (view.facts.rivals[one.resourceName] ?? {}));
  if (larger === undefined || larger.weight <= weight) return false;
  const perWhole = view.facts.rivals[larger.resourceName]?.[resourceName] ?? 0;
  return freeOf(view, resourceName) <= freeOf(view, larger.resourceName) * perWhole;
}

/** How many instances with these requests fit beside what is taken. */
function timesThatFit(view: NodeView, { resource, count }: Share): number {
  const requests = requestsOf(view.facts, { resource, count }, 0);
  let times = Number.POSITIVE_INFINITY;
  // Those that have no devices yet must find some, whichever the scheduler takes for this one.
  for (const [name, loss] of Object.entries(view.facts.rivals[resource.resourceName] ?? {})) {
    if (waitingFor(view.used, name) > 0) times = Math.min(times, Math.floor(freeOf(view, name) / (loss * count)));
  }
  for (const [name, amount] of Object.entries(requests)) {
    const have = view.facts.allocatable[name];
    // A resource that the node does not count has no limit, devices aside.
    if (have === undefined && name !== 'pods' && !isExtendedResource(name)) continue;
    if (amount <= 0 || (have === undefined && name === 'pods')) continue;
    times = Math.min(times, Math.floor(((have ?? 0) - (view.used[name] ?? 0)) / amount));
  }
  return Math.max(0, times);
}

/** Whether anything new can be placed on a node: not when it is closed, quarantined, switched, not for rent or not as its pool asks. */
export function isOpen({ facts, quarantined, switched }: NodeView): boolean {
  if (facts.pool === undefined || facts.isClosed || quarantined || switched) return false;
  return typeof isolationOn(facts) !== 'string';
}

/** How many instances with this share fit: 0 on a node that is not open. */
export function placesOn(view: NodeView, share: Share): number {
  if (!isOpen(view)) return 0;
  return once(places, view, share, () => timesThatFit(view, share));
}

/** Whether the node itself has room for a disk of this many GB. */
export function hasLocalRoom({ facts, used }: NodeView, gb: number): boolean {
  const have = facts.allocatable['ephemeral-storage'];
  return have === undefined || have - (used['ephemeral-storage'] ?? 0) >= gb * GIB;
}
