import type { GpuInstanceSpec } from '../resources/instances/gpu-instance.ts';
import { compareText } from '../lib/compare.ts';
import { sameJson } from '../lib/json.ts';
import { compareMoney } from '../resources/money.ts';
import type { FreePlaces } from './free-places.ts';
import { type IsolationNeeds, isolationOn } from './nodes/isolation.ts';
import { freeOf, hasLocalRoom, type NodeView, placesOn, type Share } from './nodes/node-view.ts';
import { diskOn, type HasStorage, hasImage, type OfferClass } from './offers.ts';
import type { GpuShare } from './tenant-holdings.ts';

/** The place that an instance asks for. */
export interface PlaceRequest {
  offerId: number | undefined;
  gpu: GpuInstanceSpec['gpu'];
  type: GpuInstanceSpec['type'];
  diskGb: number;
  /** GB of disk that the client saw in the offer. */
  offerDiskSpace: number | undefined;
  image: string;
  /** Nodes to use only when no other node fits. */
  avoid: ReadonlySet<string>;
  /** Nodes that the disk can be used on; undefined for all. */
  only: ReadonlySet<string> | undefined;
  /** GPUs that do not serve the request although they fit: a ceiling of the tenant has no room for them. */
  without?: readonly GpuShare[] | undefined;
  /** How the pod must be kept apart from its node; undefined: as the pool asks. */
  isolation?: IsolationNeeds | undefined;
}

export interface Place {
  offerClass: OfferClass;
  node: string;
  diskGbMax: number;
  diskPersistent: boolean;
}

export type RefusalReason = 'NoCapacity' | 'OfferNotFound' | 'OfferChanged' | 'DiskTooLarge';
export type Grant = { place: Place } | { refusal: RefusalReason; message: string };

/** What a grant depends on. */
export interface Market {
  classes: () => ReadonlyMap<number, OfferClass>;
  viewOf: (node: string) => NodeView | undefined;
  hasStorage: HasStorage;
  free: Pick<FreePlaces, 'members' | 'places'>;
}

/** Whether a class is what was asked for. What is not named may be anything. A MIG profile means an unshared slice. */
export function fits(
  offerClass: Pick<OfferClass, 'gpuCount' | 'product' | 'migProfile' | 'isolation' | 'memoryMb'>,
  gpu: PlaceRequest['gpu'],
): boolean {
  const isolation = gpu?.isolation ?? (gpu?.migProfile === undefined ? undefined : 'mig');
  return (
    offerClass.gpuCount === (gpu?.count ?? 1) &&
    (gpu?.product === undefined || offerClass.product === gpu.product) &&
    (gpu?.migProfile === undefined || offerClass.migProfile === gpu.migProfile) &&
    (isolation === undefined || offerClass.isolation === isolation) &&
    (gpu?.memoryMb === undefined || offerClass.memoryMb >= gpu.memoryMb)
  );
}

function priceFor(offerClass: OfferClass, type: PlaceRequest['type']): string {
  return type === 'Interruptible' ? offerClass.prices.interruptible : offerClass.prices.onDemand;
}

/** What the tenant holds with a place of a class. */
export function gpuShareOf({ pool, product, gpuCount }: OfferClass): GpuShare {
  return { pool: pool.name, product, gpus: gpuCount };
}

/** The classes that serve a request: the one it names, or all that fit. */
function classesFor(market: Market, { offerId, gpu, without = [] }: PlaceRequest): OfferClass[] {
  if (offerId === undefined) {
    const fitting = [...market.classes().values()].filter((offerClass) => fits(offerClass, gpu));
    if (without.length === 0) return fitting;
    return fitting.filter((offerClass) => without.every((share) => !sameJson(share, gpuShareOf(offerClass))));
  }
  const named = market.classes().get(offerId);
  return named === undefined ? [] : [named];
}

/** The classes that serve a request, the cheapest first. */
export function candidates(market: Market, request: PlaceRequest): OfferClass[] {
  return classesFor(market, request).toSorted(
    (a, b) => compareMoney(priceFor(a, request.type), priceFor(b, request.type)) || a.id - b.id,
  );
}

interface Scored {
  node: string;
  avoided: number;
  free: number;
  cold: number;
  diskGbMax: number;
  diskPersistent: boolean;
}

function better(a: Scored, b: Scored): number {
  return a.avoided - b.avoided || a.free - b.free || a.cold - b.cold || compareText(a.node, b.node);
}

/** The disk that a request gets on a node; undefined without a place there, or when its disk is too large. */
export function diskFor(
  market: Market,
  view: NodeView,
  share: Share,
  { only, diskGb, isolation }: PlaceRequest,
): ReturnType<typeof diskOn> | undefined {
  if (only !== undefined && !only.has(view.facts.name)) return undefined;
  if (typeof isolationOn(view.facts, isolation) === 'string') return undefined;
  if (placesOn(view, share) === 0) return undefined;
  const disk = diskOn(view.facts, share, market.hasStorage);
  if (diskGb > disk.maxGb) return undefined;
  return disk.persistent || hasLocalRoom(view, diskGb) ? disk : undefined;
}

/** How good the places of a class on one node are for a request. */
function scoreMember(
  market: Market,
  offerClass: OfferClass,
  member: OfferClass['members'][number],
  request: PlaceRequest,
): Scored | undefined {
  const view = market.viewOf(member.node);
  if (view === undefined) return undefined;
  const disk = diskFor(market, view, { resource: member.resource, count: offerClass.gpuCount }, request);
  if (disk === undefined) return undefined;
  return {
    node: member.node,
    avoided: request.avoid.has(member.node) ? 1 : 0,
    free: freeOf(view, offerClass.resourceName),
    cold: hasImage(view.facts, request.image) ? 0 : 1,
    diskGbMax: disk.maxGb,
    diskPersistent: disk.persistent,
  };
}

function bestPlace(market: Market, offerClass: OfferClass, request: PlaceRequest): Place | undefined {
  let best: Scored | undefined;
  for (const member of market.free.members(offerClass)) {
    const scored = scoreMember(market, offerClass, member, request);
    if (scored !== undefined && (best === undefined || better(scored, best) < 0)) best = scored;
  }
  if (best === undefined) return undefined;
  return { offerClass, node: best.node, diskGbMax: best.diskGbMax, diskPersistent: best.diskPersistent };
}

/** Size in GB of the largest disk on each node of these classes, node by node: mostly the first is large enough. */
function* diskSizes(market: Market, classes: readonly OfferClass[]): Generator<number> {
  for (const offerClass of classes) {
    for (const { node, resource } of offerClass.members) {
      const facts = market.viewOf(node)?.facts;
      if (facts !== undefined) yield diskOn(facts, { resource, count: offerClass.gpuCount }, market.hasStorage).maxGb;
    }
  }
}

function describe(request: PlaceRequest): string {
  const { gpu, offerId } = request;
  if (offerId !== undefined) return `offer ${offerId}`;
  const memory = gpu?.memoryMb === undefined ? undefined : `with ${gpu.memoryMb} MiB`;
  const words = [gpu?.product ?? 'GPU', gpu?.migProfile, gpu?.isolation, memory];
  const what = words.filter((word) => word !== undefined).join(' ');
  return `${gpu?.count ?? 1} x ${what}`;
}

function refuse(market: Market, request: PlaceRequest, classes: readonly OfferClass[]): Grant | undefined {
  if (classes.length === 0 && request.offerId !== undefined) {
    const message = `There is no offer ${request.offerId}. List the offers and choose another.`;
    return { refusal: 'OfferNotFound', message };
  }
  if (classes.length === 0) {
    const message = `No node has ${describe(request)}. Ask for what the offers show, or add a node that has it.`;
    return { refusal: 'NoCapacity', message };
  }
  const wanted = Math.max(request.diskGb, request.offerDiskSpace ?? 0);
  for (const size of diskSizes(market, classes)) if (size >= wanted) return undefined;
  const disk = Math.max(0, ...diskSizes(market, classes));
  if (request.offerDiskSpace !== undefined && disk < request.offerDiskSpace) {
    const message = `The offer now has ${disk} GB of disk, not ${request.offerDiskSpace}. List the offers again.`;
    return { refusal: 'OfferChanged', message };
  }
  return {
    refusal: 'DiskTooLarge',
    message: `The disk can have at most ${disk} GB here, not ${request.diskGb}. Lower diskGb, or choose another offer.`,
  };
}

/**
 * The place for a request: in the cheapest class that has one, on the node with the fewest free GPUs that still fits
 * (large places stay whole), a node that has the image before others, then by name. Pure and deterministic.
 */
export function grant(market: Market, request: PlaceRequest): Grant {
  const classes = candidates(market, request);
  const refusal = refuse(market, request, classes);
  if (refusal !== undefined) return refusal;
  for (const offerClass of classes) {
    const place = bestPlace(market, offerClass, request);
    if (place !== undefined) return { place };
  }
  return {
    refusal: 'NoCapacity',
    message: `No place for ${describe(request)} is free. Wait, or choose another offer.`,
  };
}

/** What each place that would serve a request adds to what its tenant holds, the cheapest first. */
export function sharesFor(market: Market, request: PlaceRequest): GpuShare[] {
  return candidates(market, request).map(gpuShareOf);
}

/** Whether {@link grant} would find a place: the first one will do. */
export function hasPlace(market: Market, request: PlaceRequest): boolean {
  const classes = classesFor(market, request);
  const isFree = classes.some((offerClass) => {
    for (const member of market.free.members(offerClass)) {
      if (scoreMember(market, offerClass, member, request) !== undefined) return true;
    }
    return false;
  });
  return isFree && refuse(market, request, classes) === undefined;
}

/** How many instances like this one free places would serve at most, whatever their disks. */
export function placesFor(market: Market, request: PlaceRequest): number {
  return classesFor(market, request).reduce((sum, offerClass) => sum + market.free.places(offerClass), 0);
}
