import { expect, test } from 'vitest';
import type { ResourceSlice } from '../../../src/kube/devices.ts';
import type { Node, Pod } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import {
  bareNode,
  deviceClass,
  gpuDevice,
  resourceClaim,
  resourceSlice,
  taintedDevice,
} from '../../support/device-world.ts';
import {
  claimOn,
  gpuInstance,
  gpuNode,
  gpuPod,
  gpuPool,
  inventoryOf,
  placeRequest,
} from '../../support/inventory-world.ts';
import { Chance } from '../../simulation/clock/chance.ts';

const PRODUCTS = ['NVIDIA A100-SXM4-80GB', 'NVIDIA H100 80GB HBM3', 'NVIDIA L4'];
const PRICES = [{ product: '*', onDemand: '2.00', interruptible: '1.00' }];

interface Machine {
  name: string;
  product: string;
  gpus: string[];
  tainted: Set<string>;
  cordoned: boolean;
  generation: number;
}

/** Who has which devices of a machine. */
interface Holding {
  machine: Machine;
  gpus: number;
  devices: string[];
  instance: GpuInstance | undefined;
  pod: Pod | undefined;
}

/** One random fleet, told once by labels and once by slices. */
class TwoFleets {
  readonly #chance: Chance;
  readonly #machines: Machine[];
  readonly #holdings = new Map<string, Holding>();
  readonly #labels;
  readonly #slices;
  #made = 0;

  constructor(seed: number, machines?: number) {
    this.#chance = new Chance(seed);
    this.#machines = Array.from({ length: machines ?? this.#chance.int(4, 7) }, (_, index) => ({
      name: `n${index}`,
      product: this.#chance.one(PRODUCTS),
      gpus: Array.from({ length: this.#chance.int(1, 8) }, (_one, gpu) => `gpu-${gpu}`),
      tainted: new Set<string>(),
      cordoned: false,
      generation: 1,
    }));
    this.#labels = inventoryOf({
      nodes: this.#machines.map((one) => this.#labelled(one)),
      pools: [gpuPool('p', { prices: PRICES })],
    });
    this.#slices = inventoryOf({
      nodes: this.#machines.map((one) => this.#bare(one)),
      pools: [gpuPool('p', { prices: PRICES, devices: { deviceClassName: 'gpu.nvidia.com' } })],
      resourceSlices: this.#machines.map((one) => this.#slice(one)),
      deviceClasses: [deviceClass()],
    });
  }

  get offers() {
    return [this.#labels, this.#slices].map(({ inventory }) =>
      inventory.offers().map(({ imageCached: _cached, ...offer }) => offer),
    );
  }

  /** One step, by name. */
  step(): string {
    const step = this.#chance.one([
      'rent',
      'rent',
      'bind',
      'bind',
      'other',
      'claim',
      'end',
      'taint',
      'cordon',
    ] as const);
    this[step]();
    return step;
  }

  rent(): void {
    const request = placeRequest({ gpu: { count: this.#chance.one([1, 1, 2, 4]) } });
    const [byLabels, bySlices] = [this.#labels, this.#slices].map(({ inventory }) => inventory.grant(request));
    expect(bySlices).toMatchObject(
      byLabels !== undefined && 'place' in byLabels ? { place: { node: byLabels.place.node } } : (byLabels ?? {}),
    );
    if (byLabels === undefined || !('place' in byLabels)) return;
    const { node, offerClass } = byLabels.place;
    const claim = claimOn(node, { product: offerClass.product, gpuCount: offerClass.gpuCount, pool: 'p' });
    const name = this.#name('i');
    const instance = gpuInstance(name, {}, { claim, diskGb: 10, diskPersistent: false });
    for (const { caches } of [this.#labels, this.#slices]) caches.instances.upsert(instance);
    const machine = this.#machineOf(node);
    this.#holdings.set(name, { machine, gpus: claim.gpuCount, devices: [], instance, pod: undefined });
  }

  /** The scheduler gives the pod of an instance its devices, and binds it. */
  bind(): void {
    const waiting = [...this.#holdings].filter(([, { pod, instance }]) => pod === undefined && instance !== undefined);
    const [name, holding] = this.#chance.of(waiting) ?? [];
    if (name === undefined || holding === undefined) return;
    this.#allocate(`${name}-1`, holding, holding.instance?.metadata.uid);
  }

  /** A pod of somebody else asks for GPUs. */
  other(): void {
    const machine = this.#chance.one(this.#machines);
    const gpus = this.#chance.int(1, 2);
    // Nobody takes what Berth has granted: the scheduler would, and the pod of the instance would wait.
    if (this.#unclaimed(machine) < gpus) return;
    const name = this.#name('pod');
    const holding = { machine, gpus, devices: [], instance: undefined, pod: undefined };
    this.#holdings.set(name, holding);
    this.#allocate(name, holding);
  }

  /** A claim of somebody else, which no device plugin knows: there it is a pod. */
  claim(): void {
    const machine = this.#chance.one(this.#machines);
    if (this.#unclaimed(machine) < 1) return;
    const name = this.#name('claim');
    const devices = this.#freeDevices(machine).slice(0, 1);
    const pod = gpuPod(name, machine.name);
    this.#labels.caches.pods.upsert(pod);
    this.#slices.caches.resourceClaims.upsert(resourceClaim(name, machine.name, devices));
    this.#holdings.set(name, { machine, gpus: 1, devices, instance: undefined, pod });
  }

  end(): void {
    const [name, holding] = this.#chance.of([...this.#holdings]) ?? [];
    if (name === undefined || holding === undefined) return;
    this.#holdings.delete(name);
    for (const { caches } of [this.#labels, this.#slices]) {
      if (holding.instance) caches.instances.remove(holding.instance);
      if (holding.pod) caches.pods.remove(holding.pod);
    }
    const claims = [...this.#slices.caches.resourceClaims.store.values()];
    const own = claims.find(({ metadata }) => metadata.name === name || metadata.name === `${name}-1`);
    if (own) this.#slices.caches.resourceClaims.remove(own);
  }

  /** A device that nobody has falls sick, or is well again. */
  taint(): void {
    const machine = this.#chance.one(this.#machines);
    const [sick] = machine.tainted;
    const [free] = this.#freeDevices(machine);
    if (sick !== undefined && this.#chance.next() < 0.5) machine.tainted.delete(sick);
    else if (free !== undefined && this.#unclaimed(machine) > 0) machine.tainted.add(free);
    const before = this.#slice(machine);
    machine.generation += 1;
    this.#slices.caches.resourceSlices.upsert(this.#slice(machine));
    this.#slices.caches.resourceSlices.remove(before);
    this.#labels.caches.nodes.upsert(this.#newer(this.#labelled(machine)));
  }

  cordon(): void {
    const machine = this.#chance.one(this.#machines);
    machine.cordoned = !machine.cordoned;
    this.#labels.caches.nodes.upsert(this.#newer(this.#labelled(machine)));
    this.#slices.caches.nodes.upsert(this.#newer(this.#bare(machine)));
  }

  /** A cache takes an object of a version that it knows for the same. */
  #newer(node: Node): Node {
    this.#made += 1;
    return { ...node, metadata: { ...node.metadata, resourceVersion: String(this.#made) } };
  }

  #allocate(name: string, holding: Holding, instanceUid?: string): void {
    const devices = this.#freeDevices(holding.machine).slice(0, holding.gpus);
    if (devices.length < holding.gpus) {
      if (instanceUid === undefined) this.#holdings.delete(name);
      return;
    }
    const shape = { gpus: holding.gpus, ...(instanceUid !== undefined && { instanceUid }) };
    const made = gpuPod(name, holding.machine.name, shape);
    holding.pod = { ...made, metadata: { ...made.metadata, uid: `uid-${name}` } };
    holding.devices = devices;
    const claim = resourceClaim(name, holding.machine.name, devices, { pod: holding.pod });
    // The two come in any order.
    const told = [
      () => this.#slices.caches.pods.upsert(holding.pod as Pod),
      () => this.#slices.caches.resourceClaims.upsert(claim),
    ];
    for (const tell of this.#chance.next() < 0.5 ? told : told.toReversed()) tell();
    this.#labels.caches.pods.upsert(holding.pod);
  }

  /** What the scheduler could still give. */
  #freeDevices(machine: Machine): string[] {
    const taken = new Set(this.#on(machine).flatMap(({ devices }) => devices));
    return machine.gpus.filter((gpu) => !taken.has(gpu) && !machine.tainted.has(gpu));
  }

  /** The same, without what Berth has granted. */
  #unclaimed(machine: Machine): number {
    const waiting = this.#on(machine).filter(({ pod }) => pod === undefined);
    return this.#freeDevices(machine).length - waiting.reduce((sum, { gpus }) => sum + gpus, 0);
  }

  #on(machine: Machine): Holding[] {
    return [...this.#holdings.values()].filter((one) => one.machine === machine);
  }

  #labelled(machine: Machine): Node {
    const { name, product, gpus, tainted, cordoned } = machine;
    const labels = {
      'nvidia.com/gpu.product': product.replaceAll(' ', '-'),
      'nvidia.com/cuda.driver-version.full': '580.95.5',
      'nvidia.com/cuda.runtime-version.full': '13.0',
    };
    const allocatable = { 'nvidia.com/gpu': String(gpus.length - tainted.size) };
    const node = gpuNode(name, { labels, allocatable, cordoned });
    const capacity = { ...node.status?.allocatable, 'nvidia.com/gpu': String(gpus.length) };
    return { ...node, status: { ...node.status, capacity } };
  }

  #bare({ name, cordoned }: Machine): Node {
    return bareNode(name, { cordoned });
  }

  #slice({ name, product, gpus, tainted, generation }: Machine): ResourceSlice {
    const devices = gpus.map((gpu) => {
      const device = gpuDevice(gpu, product);
      return tainted.has(gpu) ? taintedDevice(device) : device;
    });
    return resourceSlice(name, devices, { pool: { name, generation, resourceSliceCount: 1 } });
  }

  #machineOf(node: string): Machine {
    const found = this.#machines.find(({ name }) => name === node);
    if (found === undefined) throw new Error(`There is no machine ${node}.`);
    return found;
  }

  #name(prefix: string): string {
    this.#made += 1;
    return `${prefix}-${this.#made}`;
  }
}

test.each(Array.from({ length: 10 }, (_, index) => index + 1))(
  'fleet %i has the same offers by labels and by slices',
  (seed) => {
    const fleets = new TwoFleets(seed);
    const steps: string[] = [];
    for (let index = 0; index < 200; index += 1) {
      const [byLabels, bySlices] = fleets.offers;
      expect(bySlices, `after ${steps.slice(-5).join(', ')}`).toEqual(byLabels);
      steps.push(fleets.step());
    }
    expect(new Set(steps).size).toBeGreaterThan(6);
  },
);

test('fleets of a hundred nodes have the same offers after a thousand rents, ends, taints and cordons', () => {
  const fleets = new TwoFleets(100, 100);
  const steps = new Map<string, number>();
  for (let index = 0; index < 1000; index += 1) {
    const step = fleets.step();
    steps.set(step, (steps.get(step) ?? 0) + 1);
    if (index % 10 > 0) continue;
    const [byLabels, bySlices] = fleets.offers;
    expect(bySlices, `after ${index + 1} steps, the last of which was ${step}`).toEqual(byLabels);
  }
  const [byLabels, bySlices] = fleets.offers;
  expect(bySlices).toEqual(byLabels);
  expect(Math.min(...steps.values())).toBeGreaterThan(50);
});
