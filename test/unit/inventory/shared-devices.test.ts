import { describe, expect, test } from 'vitest';
import type { DeviceClass, ResourceClaim, ResourceSlice } from '../../../src/kube/devices.ts';
import type { Pod } from '../../../src/kube/types.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { Chance } from '../../simulation/clock/chance.ts';
import {
  bareNode,
  deviceClass,
  gpuDevice,
  resourceClaim,
  resourceSlice,
  taintedDevice,
} from '../../support/device-world.ts';
import { claimOn, gpuInstance, gpuPod, gpuPool, inventoryOf, placeRequest } from '../../support/inventory-world.ts';
import {
  type Amounts,
  consumedBy,
  fitsInto,
  quantities,
  type Shape,
  sharedDevice,
  someShape,
} from '../../support/shared-gpus.ts';

// GPUs that several claims share: the capacity that each consumes is not there for others.

const RESOURCE = 'nvidia.com/gpu';
const PRICES = [{ product: '*', onDemand: '8.00', interruptible: '4.00' }];
const POOL = gpuPool('p', { prices: PRICES, devices: { deviceClassName: 'gpu.nvidia.com' } });
const { attributes: ATTRIBUTES } = gpuDevice('any');

interface Shared {
  name: string;
  shape: Shape;
  isTainted: boolean;
}

/** Somebody who has a part of a device, or waits for one. */
interface Holder {
  instance: GpuInstance | undefined;
  device: Shared | undefined;
  taken: Amounts;
}

/** The claim that the scheduler writes. */
function sharingClaim(name: string, { name: device, shape }: Shared, taken: Amounts, pod?: Pod): ResourceClaim {
  const claim = resourceClaim(name, 'n', [device], pod && { pod });
  const results = claim.status?.allocation?.devices?.results ?? [];
  const shared = results.map((one) => ({
    ...one,
    shareID: `share-${name}`,
    consumedCapacity: quantities(shape, taken),
  }));
  return { ...claim, status: { ...claim.status, allocation: { devices: { results: shared } } } };
}

class SharedNode {
  readonly #chance: Chance;
  readonly #devices: Shared[];
  readonly #holders = new Map<string, Holder>();
  readonly #world;
  #made = 0;
  #generation = 1;

  constructor(seed: number) {
    this.#chance = new Chance(seed);
    const shape = someShape(this.#chance);
    this.#devices = Array.from({ length: this.#chance.int(1, 3) }, (_, index) => ({
      name: `gpu-${index}`,
      shape,
      isTainted: false,
    }));
    this.#world = inventoryOf({
      nodes: [bareNode('n')],
      pools: [POOL],
      resourceSlices: [this.#slice()],
      deviceClasses: [deviceClass()],
    });
  }

  #slice(): ResourceSlice {
    const devices = this.#devices.map(({ name, shape, isTainted }) => {
      const device = sharedDevice(name, shape, ATTRIBUTES);
      return isTainted ? taintedDevice(device) : device;
    });
    const slice = resourceSlice('n', devices, {
      pool: { name: 'n', generation: this.#generation, resourceSliceCount: 1 },
    });
    return { ...slice, metadata: { ...slice.metadata, name: 's', resourceVersion: String(this.#generation) } };
  }

  get #waiting(): [string, Holder][] {
    return [...this.#holders].filter(([, { device }]) => device === undefined);
  }

  #takenOf(device: Shared): Amounts[] {
    return [...this.#holders.values()].filter((one) => one.device === device).map(({ taken }) => taken);
  }

  #fitting(asked?: Amounts, taken = (device: Shared) => this.#takenOf(device)): Shared[] {
    return this.#devices.filter((device) => {
      const more = consumedBy(device.shape, asked);
      return more !== undefined && !device.isTainted && fitsInto(device.shape, taken(device), more);
    });
  }

  /** How many pods the scheduler places that ask as those of instances do, whichever devices it takes. */
  placed(): number {
    const more = new Map(this.#devices.map((device) => [device, this.#takenOf(device)]));
    for (let count = 0; ; count += 1) {
      const fitting = this.#fitting(undefined, (device) => more.get(device) ?? []);
      if (fitting.length === 0) return count;
      const device = this.#chance.one(fitting);
      more.get(device)?.push(consumedBy(device.shape) ?? {});
    }
  }

  get #offer() {
    return this.#world.inventory.offers()[0];
  }

  get #free(): number {
    return Math.max(0, this.placed() - this.#waiting.length);
  }

  check(): void {
    expect(this.#offer?.available ?? 0).toBe(this.#free);
    const whole = this.#world.inventory.grant(placeRequest({ gpu: { count: 1, isolation: 'whole' } }));
    expect('place' in whole).toBe(false);
  }

  step(): string {
    const step = this.#chance.one(['rent', 'rent', 'bind', 'bind', 'claim', 'pod', 'end', 'taint'] as const);
    this[step]();
    return step;
  }

  rent(): void {
    const found = this.#world.inventory.grant(placeRequest());
    expect('place' in found).toBe((this.#offer?.available ?? 0) > 0);
    if (!('place' in found)) return;
    const { product, isolation } = found.place.offerClass;
    const gpuShare = found.place.offerClass.members[0]?.resource.share ?? '';
    const claim = claimOn('n', { pool: 'p', product, isolation, gpuShare });
    const name = this.#name('i');
    const type = this.#chance.one(['OnDemand', 'Interruptible'] as const);
    const instance = gpuInstance(name, { type }, { claim, diskGb: 10, diskPersistent: true });
    this.#world.caches.instances.upsert(instance);
    this.#holders.set(name, { instance, device: undefined, taken: {} });
  }

  bind(): void {
    const [name, holder] = this.#chance.of(this.#waiting) ?? [];
    const fitting = this.#fitting();
    if (name === undefined || holder === undefined || fitting.length === 0) return;
    this.#allocate(name, holder, this.#chance.one(fitting));
  }

  /** A pod of others that asks for the same resource. */
  pod(): void {
    if (this.placed() <= this.#waiting.length) return;
    const holder: Holder = { instance: undefined, device: undefined, taken: {} };
    const name = this.#name('pod');
    this.#holders.set(name, holder);
    this.#allocate(name, holder, this.#chance.one(this.#fitting()));
  }

  /** Another claim, which may name what it wants of each capacity, or take several parts of one device. */
  claim(): void {
    if (this.#waiting.length > 0) return;
    const asked = Object.fromEntries(
      Object.entries(this.#devices[0]?.shape ?? {}).flatMap(([name, { value }]) =>
        this.#chance.is(0.7) ? [[name, this.#chance.int(1, Math.ceil(value / 2))]] : [],
      ),
    );
    const device = this.#chance.of(this.#fitting(asked));
    const taken = device && consumedBy(device.shape, asked);
    if (device === undefined || taken === undefined) return;
    const name = this.#name('claim');
    this.#holders.set(name, { instance: undefined, device, taken });
    this.#world.caches.resourceClaims.upsert(sharingClaim(`${name}-1`, device, taken));
  }

  #allocate(name: string, holder: Holder, device: Shared): void {
    const { instance } = holder;
    const shape = { resource: RESOURCE, ...(instance && { instanceUid: instance.metadata.uid ?? '' }) };
    const made = gpuPod(`${name}-1`, 'n', shape);
    const extendedResourceClaimStatus = { resourceClaimName: `${name}-1`, requestMappings: [] };
    const pod = {
      ...made,
      metadata: { ...made.metadata, uid: `uid-${name}-1` },
      status: { ...made.status, extendedResourceClaimStatus },
    };
    holder.device = device;
    holder.taken = consumedBy(device.shape) ?? {};
    const claim = sharingClaim(`${name}-1`, device, holder.taken, pod);
    const { pods, resourceClaims } = this.#world.caches;
    const told = [() => pods.upsert(pod), () => resourceClaims.upsert(claim)].toSorted(() => this.#chance.next() - 0.5);
    const [first, second] = told;
    first?.();
    // The claim of a pod that nobody knows yet may count beside its instance.
    expect(this.#offer?.available ?? 0).toBeLessThanOrEqual(this.#free);
    second?.();
    this.check();
  }

  end(): void {
    const [name, holder] = this.#chance.of([...this.#holders]) ?? [];
    if (name !== undefined && holder !== undefined) this.#forget(name, holder);
  }

  #forget(name: string, { instance }: Holder): void {
    const { pods, resourceClaims, instances } = this.#world.caches;
    const [pod, claim] = [pods, resourceClaims].map(({ store }) => store.get(`default/${name}-1`));
    const gone = [
      () => pod && pods.remove(pod as Pod),
      () => claim && resourceClaims.remove(claim as ResourceClaim),
      () => instance && instances.remove(instance),
    ].toSorted(() => this.#chance.next() - 0.5);
    for (const forget of gone) forget();
    this.#holders.delete(name);
  }

  taint(): void {
    const device = this.#chance.one(this.#devices);
    device.isTainted = !device.isTainted && this.#chance.is(0.5);
    this.#generation += 1;
    this.#world.caches.resourceSlices.upsert(this.#slice());
  }

  /** On demand on a full node: one interruptible instance ends whose device the scheduler can then give out, or nobody. */
  displace(): boolean {
    if ((this.#offer?.available ?? 0) > 0 || this.placed() !== this.#waiting.length) return false;
    const able = [...this.#holders].filter(
      ([, { instance, device }]) => instance?.spec.type === 'Interruptible' && device?.isTainted !== true,
    );
    const found = this.#world.inventory.preempt(placeRequest());
    expect(found?.victims.length).toBe(able.length === 0 ? undefined : 1);
    const name = found?.victims[0]?.key.replace('default/', '') ?? '';
    const victim = this.#holders.get(name);
    if (victim === undefined) return false;
    expect(able.map(([one]) => one)).toContain(name);
    this.#forget(name, victim);
    expect('place' in this.#world.inventory.grant(placeRequest())).toBe(true);
    return true;
  }

  #name(prefix: string): string {
    this.#made += 1;
    return `${prefix}-${this.#made}`;
  }
}

test('of random shared GPUs so many pieces are offered as the scheduler then places, whatever others have of them', () => {
  const steps = new Set<string>();
  let displaced = 0;
  for (let seed = 1; seed <= 60; seed += 1) {
    const node = new SharedNode(seed);
    for (let index = 0; index < 40; index += 1) {
      node.check();
      steps.add(node.step());
      if (node.displace()) displaced += 1;
    }
  }
  expect(steps.size).toBe(6);
  expect(displaced).toBeGreaterThan(20);
});

const EIGHTH: Shape = {
  memory: { value: 80, unit: 'Gi', byDefault: 10 },
  cores: { value: 100, unit: '', byDefault: 5 },
};

function nodeWith(devices: Parameters<typeof resourceSlice>[1], claims: ResourceClaim[] = [], classes?: DeviceClass[]) {
  return inventoryOf({
    nodes: [bareNode('n')],
    pools: [POOL],
    resourceSlices: [resourceSlice('n', devices)],
    deviceClasses: classes ?? [deviceClass()],
    resourceClaims: claims,
  });
}

function offered({ inventory }: ReturnType<typeof inventoryOf>) {
  const ones = inventory.offers().filter(({ gpuCount }) => gpuCount === 1);
  return ones.map(({ product, isolation, available }) => [product, isolation, available]);
}

const A100 = 'NVIDIA-A100-SXM4-80GB';
const shared = (name: string, shape = EIGHTH) => sharedDevice(name, shape, ATTRIBUTES);

describe('a GPU that several claims share', () => {
  test('is told as a device plugin tells of one, with the memory, the node and the price of the part that a pod gets', () => {
    const { inventory } = nodeWith([shared('gpu-0'), shared('gpu-1')]);
    const [one, ...others] = inventory.offers();
    expect(others).toEqual([]);
    expect(one).toMatchObject({
      product: `${A100}-SHARED`,
      isolation: 'time_sliced',
      memoryMb: 10_240,
      gpuCount: 1,
      available: 16,
      cpuCores: 4,
      prices: { onDemand: '1.00', interruptible: '0.50' },
    });
  });

  test.each<[what: string, shape: Shape, share: string]>([
    ['the capacity of which it takes the most', { ...EIGHTH, cores: { value: 100, unit: '', byDefault: 30 } }, '3/10'],
    ['all of it, where no default says less', { memory: { value: 80, unit: 'Gi' } }, '1'],
    ['thousandths', { memory: { value: 1500, unit: 'm', byDefault: 500 } }, '1/3'],
  ])('has a part that is exact: %s', (_, shape, share) => {
    const { inventory } = nodeWith([shared('gpu-0', shape)]);
    expect(inventory.viewOf('n')?.facts.resources.map((one) => one.share)).toEqual([share]);
  });

  test.each<[what: string, device: ReturnType<typeof shared>]>([
    ['it has no capacity: any number of claims may share it', { ...shared('gpu-0'), capacity: {} }],
    ['a claim takes nothing of it', shared('gpu-0', { memory: { value: 80, unit: 'Gi', byDefault: 0 } })],
    ['a claim takes more than it has', shared('gpu-0', { memory: { value: 80, unit: 'Gi', byDefault: 81 } })],
    ['no bill could say its part', shared('gpu-0', { memory: { value: 1_000_003, unit: '', byDefault: 10 } })],
    [
      'it takes counters, which its first claim takes for all',
      { ...shared('gpu-0'), consumesCounters: [{ counterSet: 'c', counters: { memory: { value: '1' } } }] },
    ],
    [
      'it is a MIG slice',
      sharedDevice('gpu-0', EIGHTH, { ...ATTRIBUTES, type: { string: 'mig' }, profile: { string: '1g.10gb' } }),
    ],
  ])('is not sold where %s', (_, device) => {
    const classes = [
      deviceClass(undefined, { selectors: [{ cel: { expression: "device.driver == 'gpu.nvidia.com'" } }] }),
    ];
    expect(offered(nodeWith([device], [], classes))).toEqual([]);
  });

  test('withholds the others of its class: the scheduler may give either', () => {
    expect(offered(nodeWith([shared('gpu-0'), gpuDevice('gpu-1')]))).toEqual([]);
    expect(
      offered(
        nodeWith([shared('gpu-0'), shared('gpu-1', { ...EIGHTH, cores: { value: 100, unit: '', byDefault: 50 } })]),
      ),
    ).toEqual([]);
  });

  test('is told from whole ones by a class that says so', () => {
    const that = (is: boolean) => [
      deviceClass(undefined, {
        selectors: [
          { cel: { expression: `device.driver == 'gpu.nvidia.com' && device.allowMultipleAllocations == ${is}` } },
        ],
      }),
    ];
    const devices = [shared('gpu-0'), gpuDevice('gpu-1'), gpuDevice('gpu-2')];
    const mine = { name: 'gpu-0', shape: EIGHTH, isTainted: false };
    const claims = [sharingClaim('a', mine, { memory: 1, cores: 1 })];
    expect(offered(nodeWith(devices, claims, that(false)))).toEqual([[A100, 'whole', 2]]);
    expect(offered(nodeWith(devices, claims, that(true)))).toEqual([[`${A100}-SHARED`, 'time_sliced', 7]]);
  });

  test('is no whole one for others while a claim has a part of it from before', () => {
    const mine = { name: 'gpu-0', shape: EIGHTH, isTainted: false };
    const claims = [sharingClaim('a', mine, { memory: 1, cores: 1 })];
    expect(offered(nodeWith([gpuDevice('gpu-0'), gpuDevice('gpu-1')], claims))).toEqual([[A100, 'whole', 1]]);
  });

  test('has no piece left when one claim has all of it', () => {
    expect(offered(nodeWith([shared('gpu-0'), shared('gpu-1')], [resourceClaim('a', 'n', ['gpu-0'])]))).toEqual([
      [`${A100}-SHARED`, 'time_sliced', 8],
    ]);
  });

  test('is all of a claim without a share, whatever that says of capacity', () => {
    const { status, ...claim } = sharingClaim('a', { name: 'gpu-0', shape: EIGHTH, isTainted: false }, { memory: 1 });
    const results = status?.allocation?.devices?.results?.map(({ shareID: _none, ...result }) => result) ?? [];
    const all = { ...claim, status: { allocation: { devices: { results } } } };
    expect(offered(nodeWith([shared('gpu-0')], [all]))).toEqual([[`${A100}-SHARED`, 'time_sliced', 0]]);
  });

  test('counts each of the parts that one claim has', () => {
    const mine = { name: 'gpu-0', shape: EIGHTH, isTainted: false };
    const [one, other] = ['a', 'b'].map((name) => sharingClaim(name, mine, { memory: 20, cores: 1 }));
    const results = [one, other].flatMap((claim) => claim?.status?.allocation?.devices?.results ?? []);
    const both = { ...one, status: { allocation: { devices: { results } } } } as ResourceClaim;
    expect(offered(nodeWith([shared('gpu-0')], [both]))).toEqual([[`${A100}-SHARED`, 'time_sliced', 4]]);
  });

  test('is counted once where two classes of a pool have it', () => {
    const plain = 'deviceclass.resource.kubernetes.io/other';
    const world = inventoryOf({
      nodes: [bareNode('n')],
      pools: [gpuPool('p', { devices: { deviceClassName: 'gpu.nvidia.com', partitionClassNames: ['other'] } })],
      resourceSlices: [resourceSlice('n', [shared('gpu-0')])],
      deviceClasses: [deviceClass(), deviceClass('other', { extendedResourceName: undefined as never })],
    });
    const left = () => Object.fromEntries(world.inventory.offers().map((one) => [one.resourceName, one.available]));
    expect(left()).toEqual({ [RESOURCE]: 8, [plain]: 8 });
    const claim = claimOn('n', { pool: 'p', resourceName: plain, isolation: 'time_sliced', gpuShare: '1/8' });
    world.caches.instances.upsert(gpuInstance('i', {}, { claim, diskPersistent: true }));
    expect(left()).toEqual({ [RESOURCE]: 7, [plain]: 7 });
    const made = gpuPod('i-1', 'n', { resource: plain, instanceUid: 'uid-i' });
    const extendedResourceClaimStatus = { resourceClaimName: 'i-1', requestMappings: [] };
    const pod = {
      ...made,
      metadata: { ...made.metadata, uid: 'uid-i-1' },
      status: { ...made.status, extendedResourceClaimStatus },
    };
    const mine = { name: 'gpu-0', shape: EIGHTH, isTainted: false };
    const byClass = sharingClaim('i-1', mine, { memory: 10, cores: 5 }, pod);
    const [request] = byClass.spec.devices?.requests ?? [];
    if (request?.exactly) request.exactly.deviceClassName = 'other';
    world.caches.pods.upsert(pod);
    world.caches.resourceClaims.upsert(byClass);
    expect(left()).toEqual({ [RESOURCE]: 7, [plain]: 7 });
    world.caches.resourceClaims.upsert(sharingClaim('big', mine, { memory: 70, cores: 5 }));
    expect(left()).toEqual({ [RESOURCE]: 0, [plain]: 0 });
  });

  test('is free of what an administrator looks at', () => {
    const claim = resourceClaim('a', 'n', ['gpu-0'], { adminAccess: true });
    expect(offered(nodeWith([shared('gpu-0')], [claim]))).toEqual([[`${A100}-SHARED`, 'time_sliced', 8]]);
  });

  test('is as many pieces as a node could run pods', () => {
    expect(offered(nodeWith([shared('gpu-0', { memory: { value: 500, unit: 'Gi', byDefault: 1 } })]))).toEqual([
      [`${A100}-SHARED`, 'time_sliced', 110],
    ]);
  });
});
