import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type KubeObject, type Node, type Pod, refOf, type StorageClass } from '../kube/types.ts';
import type { Claim, GpuInstance } from '../resources/gpu-instance.ts';
import type { GpuPool } from '../resources/gpu-pool.ts';
import type { Clock } from '../lib/clock.ts';
import { Assumptions } from './assumptions.ts';
import { grant, type Grant, type Market, type PlaceRequest } from './grant.ts';
import { claimHolding, type ClaimHolding, podHolding, type PodHolding, takenOn } from './holdings.ts';
import { nodeFacts, type NodeFacts, type NodeView } from './nodes/node-view.ts';
import { type Offer, type OfferClass, offerClasses, offerOf } from './offers.ts';
import { orderPools, type Pool } from './pools.ts';
import { preempt, type Preemption } from './preempt.ts';
import { type NodeFailure, nodeFailuresOf, quarantinedUntil } from './nodes/quarantine.ts';
import { storageClassOf } from './storage.ts';
import { TwoKeyMap } from './two-key-map.ts';

/** The watch caches that the inventory lives on. */
export interface InventoryStores {
  nodes: ReadStore<Node>;
  pods: ReadStore<Pod>;
  pools: ReadStore<GpuPool>;
  instances: ReadStore<GpuInstance>;
  storageClasses: ReadStore<StorageClass>;
}

/** Objects of the watch caches, at the start and after each change. */
function follow<T extends KubeObject>(
  store: ReadStore<T>,
  update: (key: string, before: T | undefined, after: T | undefined) => void,
): () => void {
  for (const object of store.values()) update(keyOf(object), undefined, object);
  return store.onChange(({ key, before, after }) => update(key, before, after));
}

/**
 * What is for rent and what is free, kept up to date change by change and answered synchronously. Sums are kept per
 * node and only nodes that something happened to are summed up again.
 */
export class Inventory {
  readonly #stores: InventoryStores;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #facts = new Map<string, NodeFacts>();
  readonly #views = new Map<string, NodeView>();
  readonly #pods = new TwoKeyMap<PodHolding>();
  readonly #claims = new TwoKeyMap<ClaimHolding>();
  readonly #failures = new TwoKeyMap<NodeFailure>();
  /** Keys of the instances that run or want to, by namespace. */
  readonly #tenants = new Map<string, Set<string>>();
  readonly #assumptions = new Assumptions();
  readonly #listeners = new Set<() => void>();
  readonly #stops: (() => void)[];
  readonly #market: Market;
  #pools: readonly Pool[] = [];
  #hasStorage = new WeakMap<Pool, boolean>();
  #classes: ReadonlyMap<number, OfferClass> | undefined;
  #offers: readonly Offer[] | undefined;
  /** When the first quarantine ends, and with it what was computed. */
  #staleAt = Number.POSITIVE_INFINITY;

  constructor(stores: InventoryStores, clock: Pick<Clock, 'now'>) {
    this.#stores = stores;
    this.#clock = clock;
    const classesNow = (): ReadonlyMap<number, OfferClass> => this.#currentClasses();
    this.#market = {
      get classes() {
        return classesNow();
      },
      viewOf: (node) => this.viewOf(node),
      hasStorage: (pool) => this.#poolHasStorage(pool),
    };
    this.#refreshPools();
    this.#stops = [
      follow(stores.nodes, (name, _before, after) => this.#nodeChanged(name, after)),
      follow(stores.pods, (key, _before, after) => this.#podChanged(key, after)),
      follow(stores.instances, (key, _before, after) => this.#instanceChanged(key, after)),
      stores.pools.onChange(() => this.#refreshPools()),
      stores.storageClasses.onChange(() => {
        this.#hasStorage = new WeakMap();
        this.#changed();
      }),
    ];
  }

  /** Every offer, those without a free place too, by product, size and id. The same array until something changes. */
  offers(): readonly Offer[] {
    this.#expire();
    this.#offers ??= [...this.#currentClasses().values()]
      .map((klass) => offerOf(klass, this.#market.viewOf, this.#market.hasStorage))
      .toSorted((a, b) => a.product.localeCompare(b.product) || a.gpuCount - b.gpuCount || a.id - b.id);
    return this.#offers;
  }

  /** The offer with this id, or undefined. */
  offer(id: number): Offer | undefined {
    return this.offers().find((offer) => offer.id === id);
  }

  /** The place a request would get now. Takes nothing: {@link assume} does. */
  grant(request: PlaceRequest): Grant {
    this.#expire();
    return grant(this.#market, request);
  }

  /** What would make room for an on-demand request. */
  preempt(request: PlaceRequest): Preemption | undefined {
    this.#expire();
    return preempt(this.#market, request, (node) => [...this.#claims.of(node)]);
  }

  /** Counts a claim from now on, before the watch cache shows it. */
  assume(instance: GpuInstance, claim: Claim, disk: { gb: number; persistent: boolean }): void {
    const status = { ...instance.status, claim, diskGb: disk.gb, diskPersistent: disk.persistent };
    const { ending: _ending, ...rest } = status;
    const key = keyOf(instance);
    this.#assumptions.add(key, { ...instance, status: rest });
    this.#setClaim(key, claimHolding(key, { ...instance, status: rest }));
  }

  /** The assumed claim was written: the cache takes over when it reaches this version. */
  written(instance: GpuInstance): void {
    const key = keyOf(instance);
    this.#assumptions.confirm(key, instance.metadata.resourceVersion ?? '');
    this.#instanceChanged(key, this.#stores.instances.get(key));
  }

  /** The assumed claim was not written. */
  forget(key: string): void {
    this.#assumptions.delete(key);
    this.#instanceChanged(key, this.#stores.instances.get(key));
  }

  /** Whether a claim of this instance was decided and it is not known yet whether it was written. */
  isUndecided(key: string): boolean {
    return this.#assumptions.isPending(key);
  }

  /** A node with what is taken on it; undefined when it is unknown. */
  viewOf(node: string): NodeView | undefined {
    const known = this.#views.get(node);
    if (known !== undefined) return known;
    const facts = this.#facts.get(node);
    if (facts === undefined) return undefined;
    const until = quarantinedUntil(this.#failures.of(node), this.#clock.now(), (namespace) =>
      [...this.#tenants.keys()].every((tenant) => tenant === namespace),
    );
    if (until !== undefined) this.#staleAt = Math.min(this.#staleAt, until);
    const view = {
      facts,
      quarantined: until !== undefined,
      ...takenOn(facts, this.#pods.of(node), this.#claims.of(node)),
    };
    this.#views.set(node, view);
    return view;
  }

  nodes(): IterableIterator<NodeFacts> {
    return this.#facts.values();
  }

  /** When waiting alone changes the offers, milliseconds since the epoch; Infinity when it does not. */
  get staleAt(): number {
    return this.#staleAt;
  }

  get market(): Market {
    return this.#market;
  }

  /** Calls the listener after every change of what may be free; it must only enqueue. Returns the way out. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Stops listening to the caches. */
  close(): void {
    for (const stop of this.#stops) stop();
    this.#listeners.clear();
  }

  #poolHasStorage(pool: Pool): boolean {
    const known = this.#hasStorage.get(pool);
    if (known !== undefined) return known;
    const has = storageClassOf(pool.spec, this.#stores.storageClasses.values()) !== undefined;
    this.#hasStorage.set(pool, has);
    return has;
  }

  #currentClasses(): ReadonlyMap<number, OfferClass> {
    this.#classes ??= offerClasses(this.#facts.values());
    return this.#classes;
  }

  #refreshPools(): void {
    this.#pools = orderPools(this.#stores.pools.values());
    for (const node of this.#stores.nodes.values()) this.#facts.set(node.metadata.name, nodeFacts(node, this.#pools));
    this.#views.clear();
    this.#classes = undefined;
    this.#changed();
  }

  #nodeChanged(name: string, node: Node | undefined): void {
    const before = this.#facts.get(name);
    const after = node && nodeFacts(node, this.#pools);
    if (after === undefined) this.#facts.delete(name);
    else this.#facts.set(name, after);
    // Heartbeats change nodes all the time; what they are changes rarely.
    if (!sameResources(before, after)) this.#classes = undefined;
    this.#touch(name);
  }

  #podChanged(key: string, pod: Pod | undefined): void {
    const holding = pod && podHolding(pod);
    const before = this.#pods.get(key);
    if (before === undefined && holding === undefined) return;
    this.#pods.set(key, holding?.node, holding);
    if (before !== undefined) this.#touch(before.node);
    if (holding !== undefined && holding.node !== before?.node) this.#touch(holding.node);
  }

  #instanceChanged(key: string, stored: GpuInstance | undefined): void {
    const instance = this.#assumptions.newest(key, stored, this.#stores.instances.resourceVersion);
    this.#setClaim(key, instance && claimHolding(key, instance));
    const failures = instance === undefined ? [] : nodeFailuresOf(instance);
    const nodes = new Set([...this.#failures.nodesOf(key), ...failures.map(({ node }) => node)]);
    this.#failures.replace(key, new Map(failures.map((failure) => [failure.node, failure])));
    for (const node of nodes) this.#touch(node);
    this.#setTenant(key, instance);
  }

  #setTenant(key: string, instance: GpuInstance | undefined): void {
    const { namespace = '' } = refOf(key);
    const wanting = this.#tenants.get(namespace) ?? new Set();
    const before = this.#tenants.size;
    if (instance?.spec.powerState === 'Running') wanting.add(key);
    else wanting.delete(key);
    if (wanting.size > 0) this.#tenants.set(namespace, wanting);
    else this.#tenants.delete(namespace);
    const after = this.#tenants.size;
    // Whether a tenant is alone decides about quarantines.
    if (before === after || Math.min(before, after) > 1) return;
    this.#views.clear();
    this.#changed();
  }

  #setClaim(key: string, holding: ClaimHolding | undefined): void {
    const before = this.#claims.get(key);
    if (before === undefined && holding === undefined) return;
    this.#claims.set(key, holding?.claim.node, holding);
    if (before !== undefined) this.#touch(before.claim.node);
    if (holding !== undefined && holding.claim.node !== before?.claim.node) this.#touch(holding.claim.node);
  }

  #touch(node: string): void {
    this.#views.delete(node);
    this.#changed();
  }

  #changed(): void {
    this.#offers = undefined;
    for (const listener of this.#listeners) listener();
  }

  #expire(): void {
    if (this.#clock.now() < this.#staleAt) return;
    this.#staleAt = Number.POSITIVE_INFINITY;
    this.#views.clear();
    this.#offers = undefined;
  }
}

function sameResources(a: NodeFacts | undefined, b: NodeFacts | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  if (a.pool !== b.pool || a.simulated !== b.simulated || a.resources.length !== b.resources.length) return false;
  return a.resources.every((resource, index) => {
    const other = b.resources[index];
    return (
      other !== undefined &&
      Object.entries(resource).every(([name, value]) => other[name as keyof typeof other] === value)
    );
  });
}
