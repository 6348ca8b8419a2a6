import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject, type Node, type Pod, type StorageClass } from '../kube/types.ts';
import type { Claim, GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { GpuPool } from '../resources/gpu-pool.ts';
import { isSwitchedOff } from '../resources/instances/instance-state.ts';
import type { Clock } from '../lib/clock.ts';
import { sameJson } from '../lib/json.ts';
import { Assumptions } from './assumptions.ts';
import { DeviceIndex, type DeviceStores, type PodDevice } from './devices/device-index.ts';
import { NO_DEVICES } from './devices/told-node.ts';
import { FreePlaces } from './free-places.ts';
import {
  beside,
  candidates,
  classIdsFor,
  type GpuWish,
  grant,
  type Grant,
  hasPlace,
  type Market,
  placesFor,
  type PlaceRequest,
  type ReservedOn,
  sharesFor,
} from './grant.ts';
import { claimHolding, podHolding, reservedFor } from './holdings.ts';
import { nodeFacts, type NodeFacts, type NodeView, sameForRent, type Share } from './nodes/node-view.ts';
import { NodeViews } from './nodes/node-views.ts';
import { type Offer, type OfferClass, offerClasses, offerOf, type OfferParts, sizedAs } from './offers.ts';
import { type ListedPool, orderPools, type Pool, storageClassOf } from './pools.ts';
import { placesByPreemption, preempt, type Preemption, type PreemptOptions } from './preempt.ts';
import type { Architectures } from './nodes/node-state.ts';
import { nodeFailuresOf } from './nodes/quarantine.ts';
import { type GpuShare, TenantHoldings } from './tenant-holdings.ts';

interface InventoryOptions {
  /** Which ones Berth's tools run on. */
  architectures?: Architectures;
}

interface InventoryStores {
  nodes: ReadStore<Node>;
  pods: ReadStore<Pod>;
  pools: ReadStore<GpuPool>;
  instances: ReadStore<GpuInstance>;
  storageClasses: ReadStore<StorageClass>;
  /** Absent: no GPU is in ResourceSlices. */
  devices?: DeviceStores | undefined;
}

type PreemptionSearch = Partial<Pick<PreemptOptions, 'reservedOn' | 'isAnyGood' | 'orFree'>>;

/** Calls `update` for every object of a watch cache, and after each change. Returns the function that ends this. */
function follow<T extends KubeObject>(
  store: ReadStore<T>,
  update: (key: string, after: T | undefined) => void,
): () => void {
  for (const object of store.values()) update(keyOf(object), object);
  return store.onChange(({ key, after }) => update(key, after));
}

/** What is for rent and what is free, kept up to date change by change and answered without waiting. */
export class Inventory {
  readonly #stores: InventoryStores;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #architectures: Architectures;
  readonly #nodes: NodeViews;
  readonly #devices: DeviceIndex | undefined;
  readonly #free: FreePlaces;
  readonly #assumptions = new Assumptions();
  readonly #holdings = new TenantHoldings();
  readonly #listeners = new Set<() => void>();
  readonly #deviceListeners = new Set<(nodes: Iterable<string>) => void>();
  readonly #stops: (() => void)[];
  readonly #market: Market;
  #version = 0;
  #listed: readonly ListedPool[] = [];
  #pools: readonly Pool[] = [];
  #hasStorage = new WeakMap<Pool, boolean>();
  #offerParts: OfferParts = new WeakMap();
  #classes: ReadonlyMap<number, OfferClass> | undefined;
  /** The classes of a size, by size: offered, or such as were rented before. */
  readonly #sized = new Map<number, readonly OfferClass[]>();
  #offers: readonly Offer[] | undefined;

  constructor(stores: InventoryStores, clock: Pick<Clock, 'now'>, { architectures }: InventoryOptions = {}) {
    this.#stores = stores;
    this.#clock = clock;
    this.#architectures = architectures;
    this.#nodes = new NodeViews(clock, (node) => this.#nodeChanged(node));
    const [classes, viewOf] = [() => this.#currentClasses(), (node: string) => this.#nodes.viewOf(node)];
    this.#free = new FreePlaces({ classes, viewOf });
    const hasStorage = (pool: Pool): boolean => this.#poolHasStorage(pool);
    const classesOf = (gpuCount: number) => this.#classesOf(gpuCount);
    this.#market = { classes, classesOf, viewOf, hasStorage, free: this.#free };
    const { nodes, pods, devices } = stores;
    this.#devices =
      devices &&
      new DeviceIndex(devices, pods, (names) => {
        for (const name of names) this.#lookAt(nodes.get(name));
        for (const listener of this.#deviceListeners) listener(names);
      });
    this.#refreshPools();
    this.#stops = [
      () => this.#devices?.close(),
      follow(stores.nodes, (name, node) => this.#setNode(name, node && this.#factsOf(node))),
      follow(stores.pods, (key, pod) => this.#nodes.setPod(key, pod && podHolding(pod))),
      follow(stores.instances, (key) => this.#instanceChanged(key)),
      stores.pools.onChange(() => this.#refreshPools()),
      stores.storageClasses.onChange(() => {
        this.#hasStorage = new WeakMap();
        this.#offerParts = new WeakMap();
        this.#changed();
      }),
    ];
  }

  /**
   * All offers, also those without a free place, by product, size and id. What others leave for a waiting instance is in
   * none. The same array until something changes.
   */
  offers(): readonly Offer[] {
    this.#expire();
    const sources = {
      viewOf: (node: string) => this.#nodes.offeredOf(node),
      hasStorage: this.#market.hasStorage,
      byPreemption: (view: NodeView, share: Share) =>
        placesByPreemption(view, share, (node) => this.#nodes.claimsOn(node)),
      parts: this.#offerParts,
    };
    this.#offers ??= [...this.#currentClasses().values()]
      .map((offerClass) => offerOf(offerClass, sources))
      .toSorted((a, b) => a.product.localeCompare(b.product) || a.gpuCount - b.gpuCount || a.id - b.id);
    return this.#offers;
  }

  /** The place that a request would get now, of what is not reserved. Takes nothing: {@link assume} does. */
  grant(request: PlaceRequest, reservedOn?: ReservedOn): Grant {
    this.#expire();
    return grant(beside(this.#market, reservedOn), request);
  }

  /** Whether {@link grant} would find a place: cheaper, above all when the cluster is full. */
  hasPlace(request: PlaceRequest, reservedOn?: ReservedOn): boolean {
    this.#expire();
    return hasPlace(beside(this.#market, reservedOn), request);
  }

  /** How many instances like this one free places would serve at most, reserved ones among them. */
  placesFor(request: PlaceRequest): number {
    this.#expire();
    return placesFor(this.#market, request);
  }

  /** What each place that would serve a request, free or not, adds to what its tenant holds; the cheapest first. */
  sharesFor(request: PlaceRequest): GpuShare[] {
    return sharesFor(this.#market, request);
  }

  /** The classes that serve a wish, free or not: the cheapest first or, of what was rented, the nearest. */
  candidates(wish: GpuWish): OfferClass[] {
    return candidates(this.#market, wish);
  }

  /** The one of {@link candidates} that comes first. */
  cheapest(wish: GpuWish): OfferClass | undefined {
    return this.candidates(wish)[0];
  }

  /** The ids of the offers that serve a request, free or not. They change with {@link classes} alone. */
  offerIdsFor(request: PlaceRequest): readonly number[] {
    return classIdsFor(this.#market, request);
  }

  /** The devices that Dynamic Resource Allocation gave a pod, by driver, pool and name. */
  devicesOf(pod: Pod): readonly PodDevice[] {
    return this.#devices?.devicesOf(pod) ?? [];
  }

  /** Another object when nodes have other GPUs for rent. */
  get classes(): object {
    return this.#currentClasses();
  }

  /** Another number after every change of what may be free. */
  get version(): number {
    this.#expire();
    return this.#version;
  }

  /** What would make room for an on-demand request; undefined when nothing would. */
  preempt(request: PlaceRequest, options: PreemptionSearch = {}): Preemption | undefined {
    this.#expire();
    const { reservedOn = () => [], isAnyGood = false, orFree = false } = options;
    const claimsOn = (node: string) => this.#nodes.claimsOn(node);
    const now = this.#clock.now();
    return preempt(this.#market, request, { claimsOn, reservedOn, isAnyGood, orFree, now });
  }

  /** Counts a claim from now on, before the watch cache shows it. */
  assume(instance: GpuInstance, claim: Claim, disk: { gb: number; persistent: boolean }): void {
    const { ending: _ending, ...status } = instance.status ?? {};
    const assumed = { ...instance, status: { ...status, claim, diskGb: disk.gb, diskPersistent: disk.persistent } };
    const key = keyOf(instance);
    this.#assumptions.add(key, assumed);
    this.#nodes.setClaim(key, claimHolding(key, assumed));
    this.#holdings.set(key, claim);
  }

  /** The assumed claim was written: it is assumed until the instance is shown with it, or what was written is shown. */
  written(key: string, isShown: () => boolean): void {
    this.#assumptions.confirm(key, isShown);
    this.#instanceChanged(key);
  }

  /** The assumed claim was not written. */
  forget(key: string): void {
    this.#assumptions.delete(key);
    this.#instanceChanged(key);
  }

  /** The caches are known to show every claim that was written: none is assumed any more. */
  forgetAll(): void {
    for (const key of this.#assumptions.keys()) this.forget(key);
  }

  /** The instance with a claim that was decided and may or may not have been written; undefined when there is none. */
  undecided(key: string): GpuInstance | undefined {
    return this.#assumptions.pending(key);
  }

  /** The instance with a claim that was written or may have been, while no cache shows it; undefined when there is none. */
  unseen(key: string): GpuInstance | undefined {
    return this.#assumptions.unseen(key);
  }

  /** The instances of a namespace with claims that no cache shows yet. */
  assumedIn(namespace: string): readonly GpuInstance[] {
    return this.#assumptions.in(namespace);
  }

  /**
   * The GPUs that a namespace holds by its claims, also those that the cache does not show yet, and those that others
   * leave for it. `except`: without those of the instance of this key.
   */
  heldBy(namespace: string, except?: string): readonly GpuShare[] {
    return this.#holdings.of(namespace, except);
  }

  /** Calls the listener with the namespace after each claim that is given back. Returns the function to stop. */
  onRelease(listener: (namespace: string) => void): () => void {
    return this.#holdings.onRelease(listener);
  }

  viewOf(node: string): NodeView | undefined {
    this.#expire();
    return this.#nodes.viewOf(node);
  }

  /** The claims on a node, also those that the cache does not show yet. */
  claimsOn(node: string): Claim[] {
    return this.#nodes.claimsOn(node).map(({ claim }) => claim);
  }

  /** Why the devices of a DeviceClass are not for rent on any node; undefined when they may be. */
  deviceClassGap(name: string): string | undefined {
    return this.#devices?.gapOf(name);
  }

  nodes(): IterableIterator<NodeFacts> {
    return this.#nodes.facts();
  }

  /** When the offers change by time alone, milliseconds since the epoch; Infinity for never. */
  get staleAt(): number {
    return this.#nodes.staleAt;
  }

  /** Calls the listener after every change of what may be free. It must only enqueue. Returns the function to stop. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listener with the nodes on which claims or devices changed. It must only enqueue. Returns the function to stop. */
  onDevices(listener: (nodes: Iterable<string>) => void): () => void {
    this.#deviceListeners.add(listener);
    return () => this.#deviceListeners.delete(listener);
  }

  /** Stops listening to the caches. */
  close(): void {
    for (const stop of this.#stops) stop();
    this.#listeners.clear();
    this.#deviceListeners.clear();
  }

  #poolHasStorage(pool: Pool): boolean {
    const known = this.#hasStorage.get(pool);
    if (known !== undefined) return known;
    const has = storageClassOf(pool.spec, this.#stores.storageClasses.values()) !== undefined;
    this.#hasStorage.set(pool, has);
    return has;
  }

  #currentClasses(): ReadonlyMap<number, OfferClass> {
    if (this.#classes === undefined) {
      this.#classes = offerClasses(this.#nodes.facts());
      this.#sized.clear();
    }
    return this.#classes;
  }

  #classesOf(gpuCount: number): readonly OfferClass[] {
    const offered = this.#currentClasses();
    const known = this.#sized.get(gpuCount);
    if (known !== undefined) return known;
    const all = offerClasses(this.#nodes.facts(), sizedAs(gpuCount));
    const found = [...all].map(([id, offerClass]) => offered.get(id) ?? offerClass);
    this.#sized.set(gpuCount, found);
    return found;
  }

  #refreshPools(): void {
    const listed = [...this.#stores.pools.values()].map(({ metadata: { name, deletionTimestamp }, spec }) => ({
      metadata: { name, deletionTimestamp },
      spec,
    }));
    // Their status is written all the time. What they rent out changes rarely.
    if (!sameJson(listed, this.#listed)) {
      this.#listed = listed;
      this.#pools = orderPools(listed);
      for (const node of this.#stores.nodes.values()) this.#lookAt(node);
      this.#classes = undefined;
    }
    this.#changed();
  }

  #factsOf(node: Node): NodeFacts {
    const devices = this.#devices?.of(node.metadata.name) ?? NO_DEVICES;
    return nodeFacts(node, this.#pools, devices, this.#architectures);
  }

  #lookAt(node: Node | undefined): void {
    if (node !== undefined) this.#setNode(node.metadata.name, this.#factsOf(node));
  }

  #setNode(name: string, facts: NodeFacts | undefined): void {
    // Heartbeats change nodes all the time. What a node has for rent changes rarely.
    if (!sameForRent(this.#nodes.factsOf(name), facts)) this.#classes = undefined;
    this.#nodes.setFacts(name, facts);
  }

  #instanceChanged(key: string): void {
    const { instances } = this.#stores;
    const instance = this.#assumptions.newest(key, instances.get(key), instances.resourceVersion);
    this.#nodes.setClaim(key, instance && claimHolding(key, instance));
    const reserved = instance && reservedFor(instance);
    this.#nodes.setReserved(key, reserved);
    this.#holdings.set(key, instance?.status?.claim ?? reserved);
    this.#nodes.setFailures(key, instance === undefined ? [] : nodeFailuresOf(instance));
    this.#nodes.setWanting(key, instance !== undefined && !isSwitchedOff(instance));
  }

  #nodeChanged(node: string | undefined): void {
    this.#free.touch(node);
    this.#changed();
  }

  #changed(): void {
    this.#version += 1;
    this.#offers = undefined;
    for (const listener of this.#listeners) listener();
  }

  #expire(): void {
    if (!this.#nodes.expire()) return;
    this.#version += 1;
    this.#free.touch();
    this.#offers = undefined;
  }
}
