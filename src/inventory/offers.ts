import { compareText } from '../lib/compare.ts';
import type { Isolation } from '../resources/instances/gpu-instance.ts';
import { offerId } from '../resources/ids.ts';
import { multiplyMoney } from '../resources/money.ts';
import type { GpuResource } from './nodes/gpu-labels.ts';
import { type NodeFacts, type NodeView, placesOn, type Share, shareOf } from './nodes/node-view.ts';
import { type Pool, priceOf } from './pools.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** A class of identical places, before what is free of them. */
export interface OfferClass {
  readonly id: number;
  readonly pool: Pool;
  readonly resourceName: string;
  readonly product: string;
  readonly memoryMb: number;
  readonly gpuCount: number;
  readonly isolation: Isolation;
  readonly migProfile: string | undefined;
  /** The part of a whole GPU that a time-sliced one is; undefined for all else. */
  readonly gpuShare: string | undefined;
  readonly simulated: boolean;
  /** Per hour, for one instance with all its GPUs. */
  readonly prices: { readonly onDemand: string; readonly interruptible: string; readonly currency: string };
  /** The nodes that have such places, free or not, by name. */
  readonly members: readonly { readonly node: string; readonly resource: GpuResource }[];
}

/** A class of identical places, with how many are free now. */
export interface Offer {
  readonly id: number;
  readonly pool: string;
  readonly resourceName: string;
  readonly product: string;
  readonly gpuCount: number;
  /** Memory of one GPU or slice, MiB. */
  readonly memoryMb: number;
  readonly isolation: Isolation;
  readonly migProfile: string | undefined;
  /** The part of a whole GPU that a time-sliced one is; undefined for all else. */
  readonly gpuShare: string | undefined;
  /** How many instances could start now. */
  readonly available: number;
  /** How many more on-demand instances would: interruptible ones end for them. */
  readonly availableByPreemption: number;
  readonly simulated: boolean;
  readonly prices: OfferClass['prices'];
  /** Share of the node that an instance gets: the smallest among the nodes that have a free place. */
  readonly cpuCores: number;
  readonly memoryMbHost: number;
  readonly diskGbMax: number;
  /** Whether the disk survives a stop. */
  readonly diskPersistent: boolean;
  /** The oldest among the nodes that have a free place; the empty string when no node says. */
  readonly driverVersion: string;
  readonly cudaVersion: string;
  /** Whether a node that has a free place has the image already. */
  readonly imageCached: (image: string) => boolean;
}

/**
 * The sizes in which a pool rents out a resource of a node. CUDA sees one MIG slice at a time, and device plugins refuse
 * more than one replica of a shared GPU (k8s-device-plugin README, failRequestsGreaterThanOne): only whole GPUs come in
 * sizes.
 */
export function sizesOf(pool: Pool, resource: GpuResource): readonly number[] {
  return resource.isolation === 'whole' ? pool.spec.sizes.filter((size) => size <= resource.total) : [1];
}

/** Whether so many of a resource could be rented out together, whatever sizes its pool offers. */
export function sizedAs(count: number): typeof sizesOf {
  return (_pool, { isolation, total }) => (count === 1 || (isolation === 'whole' && count <= total) ? [count] : []);
}

function classOf(facts: NodeFacts, pool: Pool, resource: GpuResource, gpuCount: number): Omit<OfferClass, 'members'> {
  const price = priceOf(pool, resource);
  const { resourceName, product, memoryMb, isolation, migProfile, share } = resource;
  const { simulated } = facts;
  // The names of other products say what part of a GPU they are.
  const gpuShare = isolation === 'time_sliced' ? share : undefined;
  return {
    id: offerId({ pool: pool.name, resourceName, product, memoryMb, gpuCount, simulated, gpuShare }),
    pool,
    resourceName,
    product,
    memoryMb,
    gpuCount,
    isolation,
    migProfile,
    gpuShare,
    simulated,
    prices: {
      onDemand: multiplyMoney(price.onDemand, gpuCount),
      interruptible: multiplyMoney(price.interruptible, gpuCount),
      currency: pool.spec.currency,
    },
  };
}

/** All classes of places of the nodes for rent, by offer id. They depend on what nodes have, not on what is free. */
export function offerClasses(nodes: Iterable<NodeFacts>, sizes = sizesOf): Map<number, OfferClass> {
  const classes = new Map<string, OfferClass & { members: OfferClass['members'][number][] }>();
  for (const facts of nodes) {
    const { pool, simulated } = facts;
    if (pool === undefined) continue;
    for (const resource of facts.resources) {
      for (const size of sizes(pool, resource)) {
        const { resourceName, product, memoryMb, share } = resource;
        const identity = [pool.name, resourceName, product, memoryMb, size, simulated, share].join('\0');
        let offerClass = classes.get(identity);
        if (offerClass === undefined) {
          offerClass = { ...classOf(facts, pool, resource, size), members: [] };
          classes.set(identity, offerClass);
        }
        offerClass.members.push({ node: facts.name, resource });
      }
    }
  }
  const byId = new Map<number, OfferClass>();
  for (const { members, ...rest } of classes.values()) {
    const sorted = members.toSorted((a, b) => compareText(a.node, b.node));
    // Two identities may have the same 31-bit hash. The first keeps the id: a claim must not mean two things.
    if (!byId.has(rest.id)) byId.set(rest.id, { ...rest, members: sorted });
  }
  return byId;
}

/** Whether the disks of a pool are PersistentVolumeClaims. */
export type HasStorage = (pool: Pool) => boolean;

/** Largest disk of an instance on this node in GB, and whether it survives a stop. Simulated nodes mount nothing. */
export function diskOn(
  facts: NodeFacts,
  share: { resource: GpuResource; count: number },
  hasStorage: HasStorage,
): { maxGb: number; persistent: boolean } {
  const limit = facts.pool?.spec.disk.maxGb ?? 0;
  if (facts.pool !== undefined && !facts.simulated && hasStorage(facts.pool)) return { maxGb: limit, persistent: true };
  const { disk } = shareOf(facts, share);
  return { maxGb: disk === 0 ? limit : Math.min(limit, Math.floor(disk / GIB)), persistent: false };
}

function leastVersion(versions: readonly string[]): string {
  // Most nodes of a fleet have the same one, and to compare two is slow.
  const known = new Set(versions.filter((version) => version !== ''));
  return [...known].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }))[0] ?? '';
}

function least(values: readonly number[]): number {
  return values.length === 0 ? 0 : Math.min(...values);
}

/** What a node adds to an offer. */
interface Part {
  readonly view: NodeView;
  readonly places: number;
  readonly byPreemption: number;
  readonly cpu: number;
  readonly memory: number;
  readonly maxGb: number;
  readonly persistent: boolean;
}

/** By members of classes: a view lasts until something changes on its node, and few do between two looks at the offers. */
export type OfferParts = WeakMap<OfferClass['members'][number], Part>;

interface OfferSources {
  viewOf: (node: string) => NodeView | undefined;
  hasStorage: HasStorage;
  byPreemption: (view: NodeView, share: Share) => number;
  /** Others once `hasStorage` answers otherwise. */
  parts: OfferParts;
}

/** The offer of a class for what is free on its nodes. */
export function offerOf(offerClass: OfferClass, { viewOf, hasStorage, byPreemption, parts }: OfferSources): Offer {
  let available = 0;
  let availableByPreemption = 0;
  const all: Part[] = [];
  for (const member of offerClass.members) {
    const view = viewOf(member.node);
    if (view === undefined) continue;
    let part = parts.get(member);
    if (part?.view !== view) {
      const share = { resource: member.resource, count: offerClass.gpuCount };
      const { cpu, memory } = shareOf(view.facts, share);
      const disk = diskOn(view.facts, share, hasStorage);
      part = { view, places: placesOn(view, share), byPreemption: byPreemption(view, share), cpu, memory, ...disk };
      parts.set(member, part);
    }
    available += part.places;
    availableByPreemption += part.byPreemption;
    all.push(part);
  }
  const free = all.filter(({ places }) => places > 0);
  const shown = free.length > 0 ? free : all;
  const { pool, members: _members, ...rest } = offerClass;
  return {
    ...rest,
    pool: pool.name,
    available,
    availableByPreemption,
    cpuCores: Math.floor(least(shown.map(({ cpu }) => cpu)) / 100) / 10,
    memoryMbHost: Math.floor(least(shown.map(({ memory }) => memory)) / MIB),
    diskGbMax: least(shown.map(({ maxGb }) => maxGb)),
    diskPersistent: shown.length > 0 && shown.every(({ persistent }) => persistent),
    driverVersion: leastVersion(shown.map(({ view: { facts } }) => facts.driverVersion)),
    cudaVersion: leastVersion(shown.map(({ view: { facts } }) => facts.cudaVersion)),
    imageCached: (image) => free.some(({ view: { facts } }) => hasImage(facts, image)),
  };
}

/**
 * Whether a node has an image, by its short or its full name: users leave out docker.io/library/. A tag
 * beside a digest means nothing, and the kubelet lists the two apart.
 */
export function hasImage(facts: Pick<NodeFacts, 'images'>, image: string): boolean {
  if (image === '') return false;
  const name = image.replace(/:[^/:@]*@/, '@');
  const tagged = name.includes('@') || name.lastIndexOf(':') > name.lastIndexOf('/') ? name : `${name}:latest`;
  return [tagged, `docker.io/${tagged}`, `docker.io/library/${tagged}`].some((name) => facts.images.has(name));
}
