import { describe, expect, test } from 'vitest';
import { gpuCounts } from '../../../src/inventory/nodes/gpu-counts.ts';
import { placesOn } from '../../../src/inventory/nodes/node-view.ts';
import { parseQuantity } from '../../../src/kube/quantity.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { bareNode, deviceClass, gpuDevice, resourceClaim, resourceSlice } from '../../support/device-world.ts';
import { claimOn, gpuInstance, gpuPod, gpuPool, inventoryOf, placeRequest } from '../../support/inventory-world.ts';
import { KINDS, migClass, migNode, PROFILES } from '../../support/mig-node.ts';
import { Chance } from '../../simulation/clock/chance.ts';

// Whole GPUs and slices of the same GPUs, for rent side by side.

const PREFIX = 'deviceclass.resource.kubernetes.io/';
const PRICES = [{ product: '*', onDemand: '7.00', interruptible: '3.50' }];

function classNameOf(kind: string): string {
  return kind.replace('.', '-');
}

function resourceOf(kind: string): string {
  return PREFIX + classNameOf(kind);
}

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

class Fleet {
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
    const gpu = { count: 1, ...(kind === 'gpu' ? { isolation: 'whole' as const } : { migProfile: kind }) };
    const found = this.inventory.grant(placeRequest({ gpu }));
    if (!('place' in found)) return;
    const { node } = found.place;
    const name = this.#name('i');
    const shape = kind === 'gpu' ? {} : { isolation: 'mig' as const, migProfile: kind };
    const claim = claimOn(node, { pool: 'p', resourceName: resourceOf(kind), ...shape });
    const instance = gpuInstance(name, {}, { claim, diskGb: 10, diskPersistent: false });
    this.#world.caches.instances.upsert(instance);
    this.#rented.set(name, { kind, node, instance, part: undefined });
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
    const pod = { ...made, metadata: { ...made.metadata, uid: `uid-${name}-1` } };
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

test.each(Array.from({ length: 12 }, (_, index) => index + 1))(
  'in fleet %i the scheduler places what is offered, whatever it chooses',
  (seed) => {
    const fleet = new Fleet(seed);
    const steps = new Set<string>();
    for (let index = 0; index < 50; index += 1) {
      fleet.checkAll();
      steps.add(fleet.step());
    }
    expect(steps.size).toBe(4);
  },
);

/** One node with two GPUs. `held`: devices that claims of pods without an instance have. */
function twoGpus(...held: string[]) {
  const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classNameOf);
  return inventoryOf({
    nodes: [bareNode('n')],
    pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
    resourceSlices: migNode('n', 2),
    deviceClasses: KINDS.map((kind) => migClass(classNameOf(kind), kind)),
    resourceClaims: held.map((name) => resourceClaim(name, 'n', [name], { deviceClassName: 'other' })),
  });
}

function offered({ inventory }: ReturnType<typeof twoGpus>): Record<string, number> {
  const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  return Object.fromEntries(ones.map(({ resourceName, available }) => [resourceName.slice(PREFIX.length), available]));
}

const ALL = { gpu: 2, '1g-10gb': 14, '2g-20gb': 6, '3g-40gb': 4 };

describe('whole GPUs and their slices', () => {
  test.each([
    [[], ALL],
    [['gpu-0'], { gpu: 1, '1g-10gb': 7, '2g-20gb': 3, '3g-40gb': 2 }],
    [['gpu-0-1g-10gb-0'], { gpu: 1, '1g-10gb': 13, '2g-20gb': 5, '3g-40gb': 3 }],
    [['gpu-0-3g-40gb-4', 'gpu-1-2g-20gb-0'], { gpu: 0, '1g-10gb': 9, '2g-20gb': 4, '3g-40gb': 2 }],
  ])('leave of each other beside %j what is free', (held, free) => {
    expect(offered(twoGpus(...held))).toEqual(free);
  });

  test('have the part of the node that they have of a GPU, and prices by it', () => {
    const { inventory } = twoGpus();
    const offers = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
    const told = offers.map(({ product, cpuCores, prices }) => [product, cpuCores, prices.onDemand]);
    expect(told).toEqual([
      ['NVIDIA-A100-SXM4-80GB', 32, '7.00'],
      ['NVIDIA-A100-SXM4-80GB-MIG-1g.10gb', 4.5, '1.00'],
      ['NVIDIA-A100-SXM4-80GB-MIG-2g.20gb', 9.1, '2.00'],
      ['NVIDIA-A100-SXM4-80GB-MIG-3g.40gb', 13.7, '3.00'],
    ]);
  });

  test('count once in the fleet, and pieces of GPUs that are in use otherwise are nobody else\u2019s', () => {
    const { inventory } = twoGpus('gpu-0-1g-10gb-0');
    const view = inventory.viewOf('n');
    const counts = view === undefined ? [] : gpuCounts(view, []);
    expect(
      counts.map(({ resourceName, total, others, free }) => [resourceName.slice(PREFIX.length), total, others, free]),
    ).toEqual([
      ['1g-10gb', 14, 1, 13],
      ['2g-20gb', 6, 0, 5],
      ['3g-40gb', 4, 0, 3],
      ['gpu', 2, 0, 1],
    ]);
  });

  test('go where a GPU is in slices before they break a whole one', () => {
    const [deviceClassName = '', ...partitionClassNames] = KINDS.map(classNameOf);
    const { inventory } = inventoryOf({
      nodes: ['a', 'b'].map((name) => bareNode(name)),
      pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName, partitionClassNames } })],
      resourceSlices: [...migNode('a', 1), ...migNode('b', 2)],
      deviceClasses: KINDS.map((kind) => migClass(classNameOf(kind), kind)),
      resourceClaims: [resourceClaim('c', 'b', ['gpu-0-1g-10gb-3'], { deviceClassName: 'other' })],
    });
    const nodeFor = (migProfile: string) => {
      const found = inventory.grant(placeRequest({ gpu: { count: 1, migProfile } }));
      return 'place' in found ? found.place.node : found.message;
    };
    expect(Object.keys(PROFILES).map((profile) => nodeFor(profile))).toEqual(['b', 'b', 'b']);
  });
});

test('slices that others leave room for one by one, and not all together, are offered as far as they fit together', () => {
  const memory = (value: string) => [{ counterSet: 'c', counters: { memory: { value } } }];
  const slice = (name: string, profile: string, value: string) =>
    gpuDevice(name, undefined, {
      attributes: { type: { string: 'mig' }, profile: { string: profile }, productName: { string: 'NVIDIA A30' } },
      consumesCounters: memory(value),
    });
  const pool = { name: 'n', generation: 1, resourceSliceCount: 2 };
  const sets = resourceSlice('n', [], {
    pool,
    sharedCounters: [{ name: 'c', counters: { memory: { value: '24Gi' } } }],
  });
  const parts = [slice('a', '2g.12gb', '12Gi'), slice('b', '2g.12gb', '12Gi'), slice('small', '1g.6gb', '6Gi')];
  const ofDriver = "device.driver == 'gpu.nvidia.com'";
  const expression = `${ofDriver} && device.attributes['gpu.nvidia.com'].profile == '2g.12gb'`;
  const { inventory } = inventoryOf({
    nodes: [bareNode('n')],
    pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName: 'gpu.nvidia.com' } })],
    resourceSlices: [{ ...sets, metadata: { name: 'counters' } }, resourceSlice('n', parts, { pool })],
    deviceClasses: [deviceClass(undefined, { selectors: [{ cel: { expression } }] })],
    resourceClaims: [resourceClaim('c', 'n', ['small'], { deviceClassName: 'other' })],
  });
  expect(inventory.offers().map(({ available }) => available)).toEqual([1]);
});
