import { expect } from 'vitest';
import type { PlaceRequest } from '../../src/inventory/grant.ts';
import { placesOn } from '../../src/inventory/nodes/node-view.ts';
import { parseQuantity } from '../../src/kube/quantity.ts';
import type { Claim, GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { Chance } from '../simulation/clock/chance.ts';
import { bareNode, resourceClaim } from './device-world.ts';
import { claimOn, gpuInstance, gpuPod, gpuPool, inventoryOf, placeRequest } from './inventory-world.ts';
import { KINDS, migClass, migNode } from './mig-node.ts';

// Nodes with whole GPUs and slices of the same GPUs, and a scheduler that takes any device that fits.

export const PREFIX = 'deviceclass.resource.kubernetes.io/';
export const PRICES = [{ product: '*', onDemand: '7.00', interruptible: '3.50' }];

export function classNameOf(kind: string): string {
  return kind.replace('.', '-');
}

export function resourceOf(kind: string): string {
  return PREFIX + classNameOf(kind);
}

/** A request for one of a kind. */
export function requestFor(kind: string): PlaceRequest {
  const gpu = { count: 1, ...(kind === 'gpu' ? { isolation: 'whole' as const } : { migProfile: kind }) };
  return placeRequest({ gpu });
}

/** What a claim says of one of a kind. */
export function claimedAs(kind: string): Partial<Claim> {
  const ofSlice = { isolation: 'mig' as const, migProfile: kind, gpuShare: `${kind[0]}/7` };
  return { resourceName: resourceOf(kind), ...(kind !== 'gpu' && ofSlice) };
}

/** Steps in which an instance ends. */
const STEPS = 4;

/** A device of the fleet with the counters that it needs. */
interface Part {
  node: string;
  name: string;
  kind: string;
  needs: ReadonlyMap<string, number>;
}

/** What the scheduler knows: it takes any device that fits. */
class Allocations {
  readonly #left: Map<string, number>;
  readonly #taken: Set<Part>;

  constructor(left: Iterable<[string, number]>, taken: Iterable<Part> = []) {
    this.#left = new Map(left);
    this.#taken = new Set(taken);
  }

  copy(): Allocations {
    return new Allocations(this.#left, this.#taken);
  }

  fitting(parts: readonly Part[]): Part[] {
    return parts.filter(
      (part) => !this.#taken.has(part) && [...part.needs].every(([key, need]) => (this.#left.get(key) ?? 0) >= need),
    );
  }

  take(part: Part): void {
    this.#taken.add(part);
    for (const [key, need] of part.needs) this.#left.set(key, (this.#left.get(key) ?? 0) - need);
  }

  give(part: Part): void {
    this.#taken.delete(part);
    for (const [key, need] of part.needs) this.#left.set(key, (this.#left.get(key) ?? 0) + need);
  }
}

interface Rented {
  kind: string;
  node: string;
  instance: GpuInstance | undefined;
  part: Part | undefined;
}

export class Fleet {
  readonly #chance: Chance;
  readonly #parts: Part[];
  readonly #allocations: Allocations;
  readonly #rented = new Map<string, Rented>();
  readonly #world;
  readonly nodes: string[];
  #made = 0;

  constructor(seed: number) {
    this.#chance = new Chance(seed);
    this.nodes = Array.from({ length: this.#chance.int(1, 2) }, (_, index) => `n${index}`);
    const slices = this.nodes.flatMap((node) => migNode(node, this.#chance.int(1, 3)));
    const counts = slices.flatMap(({ spec: { nodeName = '', sharedCounters = [] } }) =>
      sharedCounters.flatMap(({ name, counters }) => [...amounts(nodeName, name, counters)]),
    );
    this.#allocations = new Allocations(counts);
    this.#parts = slices.flatMap(({ spec: { nodeName: node = '', devices = [] } }) =>
      devices.map(({ name, attributes, consumesCounters = [] }) => ({
        node,
        name,
        kind: attributes?.['profile']?.string ?? 'gpu',
        needs: new Map(consumesCounters.flatMap((one) => [...amounts(node, one.counterSet, one.counters)])),
      })),
    );
    const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classNameOf);
    this.#world = inventoryOf({
      nodes: this.nodes.map((name) => bareNode(name)),
      pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
      resourceSlices: slices,
      deviceClasses: KINDS.map((kind) => migClass(classNameOf(kind), kind)),
    });
  }

  get inventory() {
    return this.#world.inventory;
  }

  available(kind: string): number {
    const found = this.inventory.offers().find((one) => one.gpuCount === 1 && one.resourceName === resourceOf(kind));
    if (found === undefined) throw new Error(`There is no offer of ${kind}.`);
    return found.available;
  }

  get #waiting(): [string, Rented][] {
    return [...this.#rented].filter(([, { part }]) => part === undefined);
  }

  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Places of a kind by node, as Berth grants them. */
  #places(kind: string): string[] {
    return this.nodes.flatMap((node) => {
      const view = this.inventory.viewOf(node);
      const resource = view?.facts.resources.find(({ resourceName }) => resourceName === resourceOf(kind));
      const places = view && resource ? placesOn(view, { resource, count: 1 }) : 0;
      return Array.from({ length: places }, () => node);
    });
  }

  /** How many of these the scheduler places, in some order beside those that wait; undefined when one of these found no place. */
  placed(kind: string, nodes: readonly string[]): number | undefined {
    const world = this.#allocations.copy();
    const waiting = this.#waiting.map(([, one]) => ({ kind: one.kind, node: one.node, isNew: false }));
    const asked = [...waiting, ...nodes.map((node) => ({ kind, node, isNew: true }))];
    let more = 0;
    for (const asking of asked.toSorted(() => this.#chance.next() - 0.5)) {
      const meant = this.#parts.filter((one) => one.kind === asking.kind && one.node === asking.node);
      const fitting = world.fitting(meant);
      if (fitting.length > 0) world.take(this.#chance.one(fitting));
      else if (!asking.isNew) return undefined;
      if (fitting.length > 0 && asking.isNew) more += 1;
    }
    return more;
  }

  step(): string {
    const step = this.#chance.one(['rent', 'rent', 'rent', 'bind', 'bind', 'bind', 'other', 'end', 'end'] as const);
    this[step]();
    return step;
  }

  rent(): void {
    const kind = this.#chance.one(KINDS);
    const found = this.inventory.grant(requestFor(kind));
    if ('place' in found) this.#grant(kind, found.place.node, this.#made % 3 === 0 ? 'OnDemand' : 'Interruptible');
  }

  #grant(kind: string, node: string, type: GpuInstance['spec']['type']): void {
    const name = this.#name('i');
    const grantedAt = new Date(Date.UTC(2026, 0, 1, 0, 0, this.#made)).toISOString();
    const claim = claimOn(node, { pool: 'p', grantedAt, ...claimedAs(kind) });
    const instance = gpuInstance(name, { type }, { claim, diskGb: 10, diskPersistent: false });
    this.#world.caches.instances.upsert(instance);
    this.#rented.set(name, { kind, node, instance, part: undefined });
  }

  /** The interruptible instances that have devices, GPU by GPU. */
  get #movable(): Rented[][] {
    const groups = new Map<string, Rented[]>();
    for (const one of this.#rented.values()) {
      if (one.instance?.spec.type !== 'Interruptible' || one.part === undefined) continue;
      const gpu = `${one.node}/${one.part.name.slice(0, 'gpu-0'.length)}`;
      groups.set(gpu, [...(groups.get(gpu) ?? []), one]);
    }
    return [...groups.values()];
  }

  /** How many interruptible instances must end at least, so that the scheduler has a device of a kind; Infinity: none would do. */
  fewest(kind: string): number {
    const sizes = this.#movable.flatMap((ofGpu) =>
      Array.from({ length: 2 ** ofGpu.length }, (_, bits) => {
        const gone = ofGpu.filter((_one, index) => (bits >> index) % 2 === 1);
        const world = this.#allocations.copy();
        for (const { part } of gone) if (part) world.give(part);
        const { node } = ofGpu[0] ?? {};
        const isFree = world.fitting(this.#parts.filter((one) => one.kind === kind && one.node === node)).length > 0;
        return isFree ? gone.length : Number.POSITIVE_INFINITY;
      }),
    );
    return Math.min(...sizes, Number.POSITIVE_INFINITY);
  }

  /**
   * An instance on demand, for which no place is free: looks who ends for it, lets them end in some order, and looks after
   * each step. Resolves with how many ended.
   */
  displace(kind: string): number {
    const request = requestFor(kind);
    if ('place' in this.inventory.grant(request)) return 0;
    const found = this.inventory.preempt(request);
    const fewest = this.fewest(kind);
    if (!this.isWaiting) expect(found?.victims.length ?? Number.POSITIVE_INFINITY, kind).toBe(fewest);
    if (found === undefined) return 0;
    const { node } = found.place;
    const steps = found.victims.map(({ key }) => this.#ending(key.replace('default/', '')));
    expect(found.victims.length).toBeGreaterThan(0);
    while (steps.length > 0) {
      const one = this.#chance.one(steps);
      one.shift()?.();
      if (one.length === 0) steps.splice(steps.indexOf(one), 1);
      // The next one is told by the line, which has their names.
      if (steps.some(({ length }) => length === STEPS)) continue;
      const granted = this.inventory.grant(request);
      const next = 'place' in granted ? { place: granted.place, victims: [] } : this.inventory.preempt(request);
      expect(next, `${kind} on ${node}`).toMatchObject({ place: { node }, victims: [] });
    }
    expect(this.inventory.grant(request), kind).toMatchObject({ place: { node } });
    for (let look = 0; look < 3; look += 1) expect(this.placed(kind, [node]), kind).toBe(1);
    this.#grant(kind, node, 'OnDemand');
    return found.victims.length;
  }

  /** What becomes of an instance that ends, step by step. */
  #ending(name: string): (() => void)[] {
    const { pods, resourceClaims, instances } = this.#world.caches;
    const { instance, part } = this.#rented.get(name) ?? {};
    if (instance === undefined || part === undefined) throw new Error(`${name} has no device, and ends.`);
    const pod = pods.store.get(`default/${name}-1`);
    const claim = resourceClaims.store.get(`default/${name}-1`);
    if (instance.spec.type !== 'Interruptible' || pod === undefined || claim === undefined)
      throw new Error(`${name} is not to end.`);
    const ending = { reason: 'Preempted' as const, message: '', at: '2026-01-01T00:00:00Z' };
    const metadata = { ...instance.metadata, resourceVersion: '2' };
    const gone = [() => instances.remove(instance), () => resourceClaims.remove(claim)];
    const [first, second] = gone.toSorted(() => this.#chance.next() - 0.5);
    return [
      () => instances.upsert({ ...instance, metadata, status: { ...instance.status, ending } }),
      () => pods.remove(pod),
      () => first?.(),
      () => {
        second?.();
        this.#rented.delete(name);
        this.#allocations.give(part);
      },
    ];
  }

  bind(): void {
    const waiting = this.#waiting;
    const [name, rented] = this.#chance.of(waiting) ?? [];
    if (name === undefined || rented === undefined) return;
    const meant = this.#parts.filter(({ kind, node }) => kind === rented.kind && node === rented.node);
    const fitting = this.#allocations.fitting(meant);
    if (fitting.length === 0) throw new Error(`${name} has no device.`);
    this.#allocate(name, rented, this.#chance.one(fitting));
  }

  /** A pod of somebody else. Nobody takes what Berth has granted: the pod of the instance would wait. */
  other(): void {
    const kind = this.#chance.one(KINDS);
    if (this.available(kind) === 0 || this.isWaiting) return;
    const fitting = this.#allocations.fitting(this.#parts.filter((one) => one.kind === kind));
    const part = this.#chance.one(fitting);
    const name = this.#name('pod');
    const rented = { kind, node: part.node, instance: undefined, part: undefined };
    this.#rented.set(name, rented);
    this.#allocate(name, rented, part);
  }

  end(): void {
    const all = [...this.#rented];
    const [name, rented] = this.#chance.of(all) ?? [];
    if (name === undefined || rented === undefined) return;
    const { pods, resourceClaims, instances } = this.#world.caches;
    const pod = pods.store.get(`default/${name}-1`);
    const claim = resourceClaims.store.get(`default/${name}-1`);
    const gone = [
      () => pod && pods.remove(pod),
      () => claim && resourceClaims.remove(claim),
      () => rented.instance && instances.remove(rented.instance),
    ].toSorted(() => this.#chance.next() - 0.5);
    for (const forget of gone) forget();
    this.#rented.delete(name);
    if (rented.part) this.#allocations.give(rented.part);
  }

  #allocate(name: string, rented: Rented, part: Part): void {
    const { instance, kind } = rented;
    const shape = { resource: resourceOf(kind), ...(instance && { instanceUid: instance.metadata.uid ?? '' }) };
    const made = gpuPod(`${name}-1`, part.node, shape);
    const extendedResourceClaimStatus = { resourceClaimName: `${name}-1`, requestMappings: [] };
    const pod = {
      ...made,
      metadata: { ...made.metadata, uid: `uid-${name}-1` },
      status: { ...made.status, extendedResourceClaimStatus },
    };
    const claim = resourceClaim(`${name}-1`, part.node, [part.name], { pod, deviceClassName: classNameOf(kind) });
    const { pods, resourceClaims } = this.#world.caches;
    const told = [() => pods.upsert(pod), () => resourceClaims.upsert(claim)].toSorted(() => this.#chance.next() - 0.5);
    this.#allocations.take(part);
    const [first, second] = told;
    first?.();
    // The other watch comes later, and meanwhile the offers hold too.
    rented.part = part;
    this.check();
    second?.();
  }

  /** What is offered, the scheduler places, whatever it chooses; and when nobody waits, nothing more. */
  check(): void {
    for (const kind of KINDS) {
      const places = this.#places(kind);
      expect(this.available(kind)).toBe(places.length);
      for (let look = 0; look < 3; look += 1) expect(this.placed(kind, places), kind).toBe(places.length);
    }
  }

  checkAll(): void {
    this.check();
    if (this.isWaiting) return;
    const everywhere = this.nodes.flatMap((node) => Array.from({ length: 30 }, () => node));
    for (const kind of KINDS) expect(this.placed(kind, everywhere), kind).toBe(this.available(kind));
  }

  #name(prefix: string): string {
    this.#made += 1;
    return `${prefix}-${this.#made}`;
  }
}

function* amounts(node: string, set: string, counters: Record<string, { value: string }>): Generator<[string, number]> {
  for (const [name, { value }] of Object.entries(counters)) {
    yield [[node, set, name].join('/'), parseQuantity(value) ?? 0];
  }
}
