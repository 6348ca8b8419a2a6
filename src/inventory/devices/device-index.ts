import {
  type DeviceClass,
  type DeviceTaintRule,
  EXTENDED_RESOURCE_CLAIM,
  type ResourceClaim,
  type ResourceSlice,
} from '../../kube/devices.ts';
import { parseQuantity } from '../../kube/quantity.ts';
import { keyOf, type Pod, refOf } from '../../kube/types.ts';
import { compareText } from '../../lib/compare.ts';
import type { ReadStore, StoreChange } from '../../kube/watch/store.ts';
import { type HeldDevice, LONGEST_DEVICE_UUID } from '../../resources/instances/held-devices.ts';
import { instanceOf, podHolding } from '../holdings.ts';
import { hasStopped } from '../nodes/pod-end.ts';
import { classGap, deviceGroup, type DeviceGroup, type DeviceSupply, type Holder, isTainted } from './device-group.ts';
import { counterKey } from './shared-counters.ts';
import { piecesOf, roomBeside } from './shared-capacity.ts';
import {
  type Device,
  devicesOn,
  type NamedDevice,
  newestSlices,
  type Part,
  poolKey,
  poolOfSlice,
  withTaints,
} from './slices.ts';
import { NO_DEVICES, type NodeDevices } from './told-node.ts';

/** What Kubernetes keeps of devices. They are empty where it does not serve these kinds. */
export interface DeviceStores {
  resourceSlices: ReadStore<ResourceSlice>;
  deviceClasses: ReadStore<DeviceClass>;
  resourceClaims: ReadStore<ResourceClaim>;
  deviceTaintRules: ReadStore<DeviceTaintRule>;
}

/** A device that a pod has. */
export interface PodDevice extends HeldDevice {
  /** The driver, or an operator, says that nothing is to use it. */
  isTainted: boolean;
}

/** What a claim has of a device. */
interface Taken {
  /** The class that was asked for. */
  deviceClassName: string | undefined;
  /** Of a device that it shares with others; undefined: all of it. */
  consumed: Readonly<Record<string, string>> | undefined;
}

/** The same with the key of the claim, and its pod. */
interface TakenBy extends Taken {
  claim: string;
  pod: Held['pod'];
}

/** A claim with its devices. */
interface Held {
  /** By the ids of devices. It may have several parts of one. */
  devices: ReadonlyMap<string, readonly Taken[]>;
  /** The pod that the scheduler made the claim for. It may be gone before its claim. */
  pod: { key: string; uid: string; instance: string | undefined } | undefined;
}

/** Whoever has parts of a device otherwise than by a pod that asks for one piece. */
const OTHERS: Holder = {
  askedAs: undefined,
  claim: '',
  requests: {},
  pod: undefined,
  instance: undefined,
  stage: undefined,
};

function add<K, V>(sets: Map<K, Set<V>>, key: K, value: V): void {
  const known = sets.get(key);
  if (known) known.add(value);
  else sets.set(key, new Set([value]));
}

function remove<K, V>(sets: Map<K, Set<V>>, key: K, value: V): void {
  const known = sets.get(key);
  known?.delete(value);
  if (known?.size === 0) sets.delete(key);
}

/** The id of a device, as slices.ts has it. */
function idOf({ driver, pool, device }: Pick<HeldDevice, 'driver' | 'pool' | 'device'>): string {
  return `${poolKey(driver, pool)}/${device}`;
}

function heldBy({ metadata, spec, status }: ResourceClaim): Held | undefined {
  const results = status?.allocation?.devices?.results ?? [];
  const classes = new Map(spec.devices?.requests?.map(({ name, exactly }) => [name, exactly?.deviceClassName]));
  const devices = new Map<string, readonly Taken[]>();
  for (const result of results) {
    // An administrator's look at a device takes it from nobody.
    if (result.adminAccess === true) continue;
    const consumed = result.shareID === undefined ? undefined : result.consumedCapacity;
    const taken = { deviceClassName: classes.get(result.request), consumed };
    devices.set(idOf(result), [...(devices.get(idOf(result)) ?? []), taken]);
  }
  if (devices.size === 0) return undefined;
  const isOfPod = metadata.annotations?.[EXTENDED_RESOURCE_CLAIM] === 'true';
  const owner = isOfPod ? metadata.ownerReferences?.find(({ kind }) => kind === 'Pod') : undefined;
  const key = keyOf({ namespace: metadata.namespace, name: owner?.name ?? '' });
  const pod = owner && { key, uid: owner.uid, instance: undefined };
  return { devices, pod };
}

/** The devices of each node by their classes, and what claims have of them; worked out at the first look after a change. */
export class DeviceIndex {
  readonly #stores: DeviceStores;
  readonly #pods: ReadStore<Pod>;
  readonly #onChange: (nodes: Iterable<string>) => void;
  /** By driver and pool. */
  readonly #slices = new Map<string, Set<ResourceSlice>>();
  /** Driver and pool of the slices of a node. */
  readonly #poolsOf = new Map<string, Set<string>>();
  readonly #held = new Map<string, Held>();
  /** Keys of claims, by the id of a device. */
  readonly #holders = new Map<string, Set<string>>();
  /** Keys of claims, by the pod that they were made for. */
  readonly #claimsOf = new Map<string, Set<string>>();
  readonly #known = new Map<string, NodeDevices>();
  /** By node, until its slices change. */
  readonly #supplies = new Map<string, DeviceSupply>();
  readonly #stops: (() => void)[];

  constructor(stores: DeviceStores, pods: ReadStore<Pod>, onChange: (nodes: Iterable<string>) => void) {
    this.#stores = stores;
    this.#pods = pods;
    this.#onChange = onChange;
    for (const slice of stores.resourceSlices.values()) this.#setSlice(undefined, slice);
    for (const claim of stores.resourceClaims.values()) this.#setClaim(keyOf(claim), claim);
    this.#stops = [
      stores.resourceSlices.onChange(({ before, after }) => this.#changed(this.#setSlice(before, after))),
      stores.resourceClaims.onChange(({ key, after }) => this.#changed(this.#setClaim(key, after))),
      stores.deviceClasses.onChange(() => this.#changed([...this.#poolsOf.keys()])),
      stores.deviceTaintRules.onChange(() => {
        this.#supplies.clear();
        this.#changed([...this.#poolsOf.keys()]);
      }),
      pods.onChange((change) => this.#podChanged(change)),
    ];
  }

  of(node: string): NodeDevices {
    if (!this.#poolsOf.has(node)) return NO_DEVICES;
    const known = this.#known.get(node) ?? this.#groupsOf(node);
    this.#known.set(node, known);
    return known;
  }

  /** Why the devices of a class are not for rent anywhere; undefined when they may be. */
  gapOf(deviceClassName: string): string | undefined {
    return classGap(deviceClassName, [...this.#stores.deviceClasses.values()]);
  }

  /** The devices that a pod has, as its claim and the slices say, by driver, pool and name. */
  devicesOf({ metadata, status }: Pod): readonly PodDevice[] {
    // The scheduler names the claim. Anybody may make one that looks as if it were of this pod.
    const name = status?.extendedResourceClaimStatus?.resourceClaimName;
    const claim = name && this.#stores.resourceClaims.get(keyOf({ namespace: metadata.namespace, name }));
    if (!claim || !claim.status?.reservedFor?.some(({ uid }) => uid === metadata.uid)) return [];
    const results = claim.status.allocation?.devices?.results ?? [];
    return results
      .map(({ driver, pool, device }) => {
        const told = this.#deviceOf(poolKey(driver, pool), device);
        const uuid = told?.attributes?.['uuid']?.string;
        const isKept = uuid !== undefined && uuid.length <= LONGEST_DEVICE_UUID;
        return { driver, pool, device, ...(isKept && { uuid }), isTainted: told !== undefined && isTainted(told) };
      })
      .toSorted((a, b) => compareText(idOf(a), idOf(b)));
  }

  #deviceOf(pool: string, device: string): Device | undefined {
    for (const slice of newestSlices([...(this.#slices.get(pool) ?? [])])) {
      const told = slice.spec.devices?.find(({ name }) => name === device);
      if (told !== undefined) return withTaints(told, slice, this.#stores.deviceTaintRules.values());
    }
    return undefined;
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  #groupsOf(node: string): NodeDevices {
    const supply = this.#supplies.get(node) ?? this.#supplyOf(node);
    this.#supplies.set(node, supply);
    const classes = [...this.#stores.deviceClasses.values()];
    const groups = classes.flatMap((deviceClass) => {
      const gap = classGap(deviceClass.metadata.name, classes);
      const group = gap === undefined ? deviceGroup(deviceClass, supply) : undefined;
      return group === undefined ? [] : [[deviceClass.metadata.name, group] as [string, DeviceGroup]];
    });
    return new Map(groups);
  }

  #supplyOf(node: string): DeviceSupply {
    const slices = [...(this.#poolsOf.get(node) ?? [])].map((pool) =>
      newestSlices([...(this.#slices.get(pool) ?? [])]),
    );
    const counters = slices.flat().flatMap((slice) =>
      (slice.spec.sharedCounters ?? []).flatMap((set) =>
        Object.entries(set.counters).map(([name, { value }]) => {
          return [counterKey(poolOfSlice(slice), set.name, name), parseQuantity(value) ?? 0] as const;
        }),
      ),
    );
    const rules = [...this.#stores.deviceTaintRules.values()];
    const devices = slices.flatMap((ofPool) => devicesOn(node, ofPool, rules)).flatMap(piecesOf);
    return { devices, counters: new Map(counters), holders: () => this.#holdersOn(devices) };
  }

  #holdersOn(devices: readonly NamedDevice[]): Map<string, readonly Holder[]> {
    const pieces = new Map<string, readonly Holder[]>();
    const found = devices.map(({ id, part }) => {
      if (part === undefined) return [id, this.#holdersOf(id)] as const;
      const all = pieces.get(part.id) ?? this.#holdersOfPieces(part);
      pieces.set(part.id, all);
      return [id, all.slice(part.index, part.index + 1)] as const;
    });
    return new Map(found.filter(([, holders]) => holders.length > 0));
  }

  #takenOf(id: string): TakenBy[] {
    return [...(this.#holders.get(id) ?? [])].flatMap((claim) => {
      const { devices, pod } = this.#held.get(claim) ?? {};
      return (devices?.get(id) ?? []).map((taken) => ({ ...taken, claim, pod }));
    });
  }

  #holdersOf(id: string): Holder[] {
    const byClaim = new Map(this.#takenOf(id).map((taken) => [taken.claim, this.#holder(taken)]));
    return [...byClaim.values()];
  }

  /**
   * Whoever has the pieces of a device, in their order: pods that asked for one and, for as many as what else is taken of
   * it leaves no room for, others.
   */
  #holdersOfPieces(part: Part): Holder[] {
    const all = this.#takenOf(part.id);
    const asked = all.filter(({ pod }) => pod !== undefined).map((taken) => this.#holder(taken));
    const room = roomBeside(
      part,
      all.map(({ consumed }) => consumed),
    );
    const others = Math.max(0, part.count - room - asked.length);
    return [...asked, ...Array.from({ length: others }, () => OTHERS)];
  }

  #holder({ claim, pod, deviceClassName }: TakenBy): Holder {
    const found = pod && this.#pods.get(pod.key);
    const holding = found?.metadata.uid === pod?.uid && found !== undefined ? podHolding(found) : undefined;
    const isOver = found === undefined || found.metadata.uid !== pod?.uid || hasStopped(found);
    const isPlaced =
      holding !== undefined && found?.status?.extendedResourceClaimStatus?.resourceClaimName === refOf(claim).name;
    return {
      askedAs: pod && deviceClassName,
      claim,
      requests: holding?.amounts ?? {},
      pod: pod?.uid,
      instance: pod?.instance,
      stage: isPlaced ? 'placed' : isOver ? 'over' : undefined,
    };
  }

  /** The nodes of the pools of devices. */
  #nodesOf(pools: Iterable<string>): string[] {
    return [...pools].flatMap((pool) => [...(this.#slices.get(pool) ?? [])].flatMap(({ spec }) => spec.nodeName ?? []));
  }

  #setSlice(before: ResourceSlice | undefined, after: ResourceSlice | undefined): string[] {
    const pools = [before, after].flatMap((slice) => (slice === undefined ? [] : poolOfSlice(slice)));
    const touched = new Set(this.#nodesOf(pools));
    if (before !== undefined) {
      remove(this.#slices, poolOfSlice(before), before);
      this.#forgetPool(before);
    }
    if (after !== undefined) {
      add(this.#slices, poolOfSlice(after), after);
      if (after.spec.nodeName !== undefined) add(this.#poolsOf, after.spec.nodeName, poolOfSlice(after));
    }
    for (const node of this.#nodesOf(pools)) touched.add(node);
    for (const node of touched) this.#supplies.delete(node);
    return [...touched];
  }

  #forgetPool(slice: ResourceSlice): void {
    const { nodeName } = slice.spec;
    if (nodeName === undefined) return;
    const others = [...(this.#slices.get(poolOfSlice(slice)) ?? [])];
    if (!others.some(({ spec }) => spec.nodeName === nodeName)) remove(this.#poolsOf, nodeName, poolOfSlice(slice));
  }

  #setClaim(key: string, claim: ResourceClaim | undefined): string[] {
    const before = this.#held.get(key);
    const after = claim && heldBy(claim);
    for (const id of before?.devices.keys() ?? []) remove(this.#holders, id, key);
    if (before?.pod) remove(this.#claimsOf, before.pod.key, key);
    if (after?.pod) {
      after.pod.instance = before?.pod?.uid === after.pod.uid ? before.pod.instance : undefined;
      this.#noteInstance(after.pod, this.#pods.get(after.pod.key));
    }
    if (after === undefined) this.#held.delete(key);
    else this.#held.set(key, after);
    for (const id of after?.devices.keys() ?? []) add(this.#holders, id, key);
    if (after?.pod) add(this.#claimsOf, after.pod.key, key);
    return this.#nodesWith([before, after]);
  }

  #nodesWith(held: readonly (Held | undefined)[]): string[] {
    const ids = held.flatMap((one) => [...(one?.devices.keys() ?? [])]);
    return this.#nodesOf(new Set(ids.map((id) => id.slice(0, id.lastIndexOf('/')))));
  }

  #podChanged({ key, before, after }: StoreChange<Pod>): void {
    const claims = this.#claimsOf.get(key);
    if (claims === undefined) return;
    const held = [...claims].flatMap((claim) => this.#held.get(claim) ?? []);
    for (const { pod } of held) if (pod) this.#noteInstance(pod, after ?? before);
    const counts = (pod: Pod | undefined): boolean => pod !== undefined && podHolding(pod) !== undefined;
    if (before?.metadata.uid === after?.metadata.uid && counts(before) === counts(after)) return;
    this.#changed(this.#nodesWith(held));
  }

  #noteInstance(pod: NonNullable<Held['pod']>, seen: Pod | undefined): void {
    if (seen?.metadata.uid === pod.uid) pod.instance = instanceOf(seen);
  }

  #changed(nodes: readonly string[]): void {
    if (nodes.length === 0) return;
    for (const node of nodes) this.#known.delete(node);
    this.#onChange(new Set(nodes));
  }
}
