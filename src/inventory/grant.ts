import type { GpuInstanceSpec } from '../resources/instances/gpu-instance.ts';
import type { Reserved } from '../resources/instances/line.ts';
import type { PriceLimit, RentedGpus } from '../resources/instances/rented.ts';
import { compareText } from '../lib/compare.ts';
import { sameJson } from '../lib/json.ts';
import { compareMoney } from '../resources/money.ts';
import { addAmounts, type Amounts } from './amounts.ts';
import type { FreePlaces } from './free-places.ts';
import { type IsolationNeeds, isolationOn } from './nodes/isolation.ts';
import { breaksWhole, freeOf, hasLocalRoom, type NodeView, placesOn, type Share } from './nodes/node-view.ts';
import { diskOn, type HasStorage, hasImage, type OfferClass } from './offers.ts';
import type { GpuShare } from './tenant-holdings.ts';

/** The GPUs that an instance asks for. */
export interface GpuWish {
  offerId: number | undefined;
  gpu: GpuInstanceSpec['gpu'];
  /** What the instance rented before: it asks for that again, and for no offer. */
  rented?: RentedGpus | undefined;
  type: GpuInstanceSpec['type'];
  /** What it may cost; undefined: whatever it does. */
  maxPrice?: PriceLimit | undefined;
  /** GPUs that do not serve the request although they fit: a ceiling of the tenant has no room for them. */
  without?: readonly GpuShare[] | undefined;
  /** Ids of offers that do not serve it either: a budget or a quota of the tenant has no room for them. */
  withoutOffers?: readonly number[] | undefined;
}

/** The place that an instance asks for. */
export interface PlaceRequest extends GpuWish {
  diskGb: number;
  /** GB of disk that the client saw in the offer. */
  offerDiskSpace: number | undefined;
  image: string;
  /** Nodes to use only when no other node fits. */
  avoid: ReadonlySet<string>;
  /** Nodes that the disk can be used on; undefined for all. */
  only: ReadonlySet<string> | undefined;
  /** Whether there is a disk that the place must be able to mount. */
  persistent?: boolean | undefined;
  /** How the pod must be kept apart from its node; undefined: as the pool asks. */
  isolation?: IsolationNeeds | undefined;
}

export interface Place {
  offerClass: OfferClass;
  node: string;
  diskGbMax: number;
  diskPersistent: boolean;
}

export type RefusalReason = 'NoCapacity' | 'PriceTooHigh' | 'OfferNotFound' | 'OfferChanged' | 'DiskTooLarge';
export type Grant = { place: Place } | { refusal: RefusalReason; message: string };

/** What a grant depends on. */
export interface Market {
  classes: () => ReadonlyMap<number, OfferClass>;
  /** The classes of a size, also those that their pools do not offer. */
  classesOf: (gpuCount: number) => readonly OfferClass[];
  viewOf: (node: string) => NodeView | undefined;
  hasStorage: HasStorage;
  free: Pick<FreePlaces, 'members' | 'places'>;
}

/** A place that a waiting instance is to get of a node when others have left it. */
export interface Reservation {
  takes: Amounts;
  /** Keys of the instances that leave for it, also while they have not been told yet. */
  victims: ReadonlySet<string>;
}

/** What is reserved on a node for others, and counts as taken. */
export type ReservedOn = (node: string) => Iterable<Reservation>;

/** The market as a request sees it that leaves to others what is reserved for them. */
export function beside(market: Market, reservedOn: ReservedOn | undefined): Market {
  if (reservedOn === undefined) return market;
  const viewOf = (node: string): NodeView | undefined => {
    const view = market.viewOf(node);
    const reserved = view === undefined ? [] : [...reservedOn(node)];
    if (view === undefined || reserved.length === 0) return view;
    return { ...view, used: reserved.reduce((used, { takes }) => addAmounts(used, takes), view.used) };
  };
  return { ...market, viewOf };
}

/** Whether a class is what was asked for. What is not named may be anything. A MIG profile means an unshared slice. */
export function fits(
  offerClass: Pick<OfferClass, 'gpuCount' | 'product' | 'isolation' | 'memoryMb'> & { migProfile?: string | undefined },
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

/** Of memory that was rented, so much will do: what a GPU reports changes by some MiB with the driver. */
const LEAST_MEMORY = 0.98;

/** Whether a class is what was rented, whatever it is called now and whoever offers it. */
export function isAsRented(
  offerClass: Pick<
    OfferClass,
    'gpuCount' | 'product' | 'migProfile' | 'gpuShare' | 'isolation' | 'memoryMb' | 'simulated'
  >,
  rented: RentedGpus,
): boolean {
  return (
    offerClass.gpuCount === rented.gpuCount &&
    offerClass.product === rented.product &&
    offerClass.migProfile === rented.migProfile &&
    offerClass.isolation === rented.isolation &&
    (rented.gpuShare === undefined || offerClass.gpuShare === rented.gpuShare) &&
    offerClass.simulated === rented.simulated &&
    // Without its label nobody says how much a product has, and it is the same product.
    (offerClass.memoryMb === 0 || offerClass.memoryMb >= rented.memoryMb * LEAST_MEMORY)
  );
}

/** What a start of this type costs per hour. */
export function priceFor({ prices }: Pick<OfferClass, 'prices'>, type: GpuWish['type']): string {
  return type === 'Interruptible' ? prices.interruptible : prices.onDemand;
}

/** Whether a class costs no more than the instance may. */
export function isWithin(
  offerClass: Pick<OfferClass, 'prices'>,
  { type, maxPrice }: Pick<GpuWish, 'type' | 'maxPrice'>,
) {
  if (maxPrice === undefined) return true;
  const { perHour, currency = offerClass.prices.currency } = maxPrice;
  return currency === offerClass.prices.currency && compareMoney(priceFor(offerClass, type), perHour) <= 0;
}

/** What the tenant holds with a place of a class. */
export function gpuShareOf({ pool, product, gpuCount }: OfferClass): GpuShare {
  return { pool: pool.name, product, gpus: gpuCount };
}

/** A place as the status of the instance has it that it is reserved for. */
export function reservedOf({ node, offerClass }: Pick<Place, 'node' | 'offerClass'>): Reserved {
  const { pool, product, resourceName, gpuCount } = offerClass;
  return { pool: pool.name, node, product, resourceName, gpuCount };
}

/** The classes that serve a request, whatever they cost: what was rented, the offer that it names, or all that fit. */
function classesFor(market: Market, { offerId, gpu, rented, without = [], withoutOffers = [] }: GpuWish): OfferClass[] {
  if (rented === undefined && offerId !== undefined) {
    const named = market.classes().get(offerId);
    return named === undefined ? [] : [named];
  }
  const fitting =
    rented === undefined
      ? [...market.classes().values()].filter((offerClass) => fits(offerClass, gpu))
      : market.classesOf(rented.gpuCount).filter((offerClass) => isAsRented(offerClass, rented));
  if (without.length === 0 && withoutOffers.length === 0) return fitting;
  const isOut = (offerClass: OfferClass): boolean =>
    withoutOffers.includes(offerClass.id) || without.some((share) => sameJson(share, gpuShareOf(offerClass)));
  return fitting.filter((offerClass) => !isOut(offerClass));
}

/** The ids of the classes that serve a request, free or not: requests with the same ids compete for the same places. */
export function classIdsFor(market: Market, request: PlaceRequest): number[] {
  return affordable(market, request).map(({ id }) => id);
}

/** How far a class is from what was rented: what is offered comes first, then its own pool, then its own offer. */
function distance(market: Market, { id, pool }: OfferClass, rented: RentedGpus): number {
  const isOffered = market.classes().has(id);
  return (isOffered ? 0 : 4) + (pool.name === rented.pool ? 0 : 2) + (id === rented.offerId ? 0 : 1);
}

function affordable(market: Market, request: GpuWish): OfferClass[] {
  return classesFor(market, request).filter((offerClass) => isWithin(offerClass, request));
}

/** The classes that serve a request, the nearest to what was rented and then the cheapest first. */
export function candidates(market: Market, request: GpuWish): OfferClass[] {
  const { rented, type } = request;
  const far = (offerClass: OfferClass): number => (rented === undefined ? 0 : distance(market, offerClass, rented));
  return affordable(market, request).toSorted(
    (a, b) => far(a) - far(b) || compareMoney(priceFor(a, type), priceFor(b, type)) || a.id - b.id,
  );
}

interface Scored {
  node: string;
  avoided: number;
  /** Whether only GPUs that are whole have room for a part. */
  breaks: number;
  free: number;
  cold: number;
  diskGbMax: number;
  diskPersistent: boolean;
}

function better(a: Scored, b: Scored): number {
  return (
    a.avoided - b.avoided || a.breaks - b.breaks || a.free - b.free || a.cold - b.cold || compareText(a.node, b.node)
  );
}

/** The disk that a request gets on a node; undefined without a place there, or when its disk is too large. */
export function diskFor(
  market: Market,
  view: NodeView,
  share: Share,
  { only, persistent, diskGb, isolation }: PlaceRequest,
): ReturnType<typeof diskOn> | undefined {
  if (only !== undefined && !only.has(view.facts.name)) return undefined;
  if (typeof isolationOn(view.facts, isolation) === 'string') return undefined;
  if (placesOn(view, share) === 0) return undefined;
  const disk = diskOn(view.facts, share, market.hasStorage);
  if (diskGb > disk.maxGb || (persistent === true && !disk.persistent)) return undefined;
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
    breaks: breaksWhole(view, member.resource) ? 1 : 0,
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
  const { gpu, offerId, rented } = request;
  if (rented !== undefined) {
    const { gpuCount, product, migProfile, isolation } = rented;
    return [`${gpuCount} x ${product}`, migProfile, isolation].filter((word) => word !== undefined).join(' ');
  }
  if (offerId !== undefined) return `offer ${offerId}`;
  const memory = gpu?.memoryMb === undefined ? undefined : `with ${gpu.memoryMb} MiB`;
  const words = [gpu?.product ?? 'GPU', gpu?.migProfile, gpu?.isolation, memory];
  const what = words.filter((word) => word !== undefined).join(' ');
  return `${gpu?.count ?? 1} x ${what}`;
}

/** Where a place must be, and what to do while there is none. */
function whereOnly({ only }: PlaceRequest): string {
  if (only === undefined) return '. Wait, or choose another offer.';
  const [node] = only;
  const where = only.size === 1 ? `node ${node}, and no other node` : 'the nodes that';
  return ` on ${where} can mount the disk of this instance. It starts when one is.`;
}

function tooDear(request: PlaceRequest, { perHour, currency }: PriceLimit, cheapest: OfferClass): Grant {
  const price = `${priceFor(cheapest, request.type)} ${cheapest.prices.currency}`;
  const most = currency === undefined ? perHour : `${perHour} ${currency}`;
  const message = `${describe(request)} costs ${price} per hour now, and the instance may cost ${most}. It starts when the price falls. To pay more, set spec.maxPricePerHour, or max_price_per_hour over HTTP, anew.`;
  return { refusal: 'PriceTooHigh', message: message.charAt(0).toUpperCase() + message.slice(1) };
}

function refuse(market: Market, request: PlaceRequest, classes: readonly OfferClass[]): Grant | undefined {
  const { maxPrice, ...rest } = request;
  const [cheapest] = classes.length > 0 || maxPrice === undefined ? [] : candidates(market, rest);
  if (cheapest !== undefined && maxPrice !== undefined) return tooDear(request, maxPrice, cheapest);
  if (classes.length === 0 && request.rented !== undefined) {
    const message = `No node has ${describe(request)} now, and the instance asks for no other GPUs.`;
    return { refusal: 'NoCapacity', message };
  }
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
 * The place for a request: in the cheapest class that has one on a node that the request does not avoid, on the node with
 * the fewest free GPUs that still fits (large places stay whole, and parts come first where a GPU is in parts), a node that has the image before others, then by name.
 * Only where no other fits, a node that is to be avoided. Pure and deterministic.
 */
export function grant(market: Market, request: PlaceRequest): Grant {
  const classes = candidates(market, request);
  const refusal = refuse(market, request, classes);
  if (refusal !== undefined) return refusal;
  let avoided: Place | undefined;
  for (const offerClass of classes) {
    const place = bestPlace(market, offerClass, request);
    if (place !== undefined && !request.avoid.has(place.node)) return { place };
    avoided ??= place;
  }
  if (avoided !== undefined) return { place: avoided };
  return { refusal: 'NoCapacity', message: `No place for ${describe(request)} is free${whereOnly(request)}` };
}

/** What each place that would serve a request adds to what its tenant holds, the cheapest first. */
export function sharesFor(market: Market, request: PlaceRequest): GpuShare[] {
  return candidates(market, request).map(gpuShareOf);
}

/** Whether {@link grant} would find a place: the first one will do. */
export function hasPlace(market: Market, request: PlaceRequest): boolean {
  const classes = affordable(market, request);
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
  return affordable(market, request).reduce((sum, offerClass) => sum + market.free.places(offerClass), 0);
}
