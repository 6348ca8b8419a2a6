import type { DeviceClass } from '../../kube/devices.ts';
import { parseQuantity } from '../../kube/quantity.ts';
import { compareText } from '../../lib/compare.ts';
import { readSelectors, selects } from './selectors.ts';
import type { Device, NamedDevice } from './slices.ts';

/** Devices that claims have. */
export interface DeviceHolding {
  /** Namespace and uid of the instance whose pod has them; undefined for those of others. */
  readonly instance: string | undefined;
  readonly gpus: number;
}

/** The devices of one class on one node. */
export interface DeviceGroup {
  /** What pods ask for: the extended resource of the class. */
  readonly resourceName: string;
  readonly driver: string;
  readonly total: number;
  /** Those that are not tainted, or in use all the same. */
  readonly healthy: number;
  /** Those that claims have or block, and no pod that runs counts. */
  readonly claimed: readonly DeviceHolding[];
  /** By name: the value that all devices have, or the empty string where they differ. */
  readonly attributes: Readonly<Record<string, string>>;
  /** By name: the least, in bytes or pieces. */
  readonly capacity: Readonly<Record<string, number>>;
}

/** A claim that has a device. */
export interface Holder {
  /** The class by which a pod asks for the device as an extended resource; else undefined. */
  readonly askedAs: string | undefined;
  /** Whether the pod counts on the node by its requests. */
  readonly isCounted: boolean;
  /** The instance of the pod. */
  readonly instance: string | undefined;
}

/** Counters of a pool, by set and name. */
type Counters = Map<string, number>;

/** What a node has of all classes, and who has it. */
export interface DeviceSupply {
  readonly devices: readonly NamedDevice[];
  /** All counters. */
  readonly counters: Readonly<Counters>;
  /** Who has a device, by its id. */
  readonly holdersOf: (id: string) => readonly Holder[];
}

export function counterKey(pool: string, set: string, name: string): string {
  return [pool, set, name].join('\0');
}

/** What a device takes of counters. */
function* needsOf({ pool, device }: NamedDevice): Generator<[string, number]> {
  for (const { counterSet, counters } of device.consumesCounters ?? []) {
    for (const [name, { value }] of Object.entries(counters)) {
      yield [counterKey(pool, counterSet, name), parseQuantity(value) ?? 0];
    }
  }
}

function fits(left: Counters, device: NamedDevice): boolean {
  return [...needsOf(device)].every(([key, amount]) => (left.get(key) ?? 0) >= amount);
}

function take(left: Counters, device: NamedDevice): void {
  for (const [key, amount] of needsOf(device)) left.set(key, (left.get(key) ?? 0) - amount);
}

/** Whether all of them can be in use at once: whole GPUs can, a GPU and its partitions cannot. */
function fitTogether(counters: Readonly<Counters>, devices: readonly NamedDevice[]): boolean {
  const left = new Map(counters);
  for (const device of devices) take(left, device);
  return [...left.values()].every((amount) => amount >= 0);
}

function isTainted({ taints = [] }: Device): boolean {
  return taints.some(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
}

function textOf({ attributes = {} }: Device, name: string): string {
  const { string, version } = attributes[name] ?? {};
  return string ?? version ?? '';
}

function commonAttributes(devices: readonly Device[]): Record<string, string> {
  const names = new Set(devices.flatMap(({ attributes = {} }) => Object.keys(attributes)));
  return Object.fromEntries(
    [...names].map((name) => {
      const values = new Set(devices.map((device) => textOf(device, name)));
      const [first = ''] = values;
      return [name, values.size === 1 ? first : ''];
    }),
  );
}

function leastCapacity(devices: readonly Device[]): Record<string, number> {
  const names = new Set(devices.flatMap(({ capacity = {} }) => Object.keys(capacity)));
  const amountOf = ({ capacity = {} }: Device, name: string) => parseQuantity(capacity[name]?.value ?? '0') ?? 0;
  return Object.fromEntries(
    [...names].map((name) => [name, Math.min(...devices.map((device) => amountOf(device, name)))]),
  );
}

/**
 * The class by which the scheduler finds devices for an extended resource when several have it: the newest, and of
 * those the first by name (kubernetes dynamic-resource-allocation/deviceclass/extendedresourcecache).
 */
function classOf(resourceName: string, classes: readonly DeviceClass[]): string | undefined {
  const age = ({ metadata }: DeviceClass): string => metadata.creationTimestamp ?? '';
  return classes
    .filter(({ spec }) => spec.extendedResourceName === resourceName)
    .toSorted((a, b) => compareText(age(b), age(a)) || compareText(a.metadata.name, b.metadata.name))[0]?.metadata.name;
}

/** Why the devices of a class cannot be sold on any node; undefined when they can. */
export function classGap(name: string, classes: readonly DeviceClass[]): string | undefined {
  const deviceClass = classes.find(({ metadata }) => metadata.name === name);
  if (deviceClass === undefined)
    return `Berth reads no DeviceClass ${name}. Install the driver that makes it. Kubernetes must be 1.34 or later, and dra.enabled of the chart must be on.`;
  if (deviceClass.spec.extendedResourceName === undefined)
    return `DeviceClass ${name} has no spec.extendedResourceName, so no instance can ask for its devices. Set one, for example nvidia.com/gpu.`;
  if (readSelectors(deviceClass) === undefined)
    return `Berth cannot count the devices of DeviceClass ${name}: its selectors are more than device.driver and device.attributes compared with == and joined with &&. Name a simpler class.`;
  const asked = classOf(deviceClass.spec.extendedResourceName, classes);
  if (asked !== name)
    return `Pods that ask for ${deviceClass.spec.extendedResourceName} get devices of DeviceClass ${asked}, which has this name too. Name that class, or give ${name} another spec.extendedResourceName.`;
  return undefined;
}

/**
 * The devices of a class on a node; undefined when it has none, or none that can be told apart from parts: devices that
 * several claims share, or that take from each other, are not sold.
 */
export function deviceGroup(
  deviceClass: DeviceClass,
  { devices, counters, holdersOf }: DeviceSupply,
): DeviceGroup | undefined {
  const { extendedResourceName: resourceName } = deviceClass.spec;
  const selectors = readSelectors(deviceClass);
  if (resourceName === undefined || selectors === undefined) return undefined;
  const verdicts = devices.map((one) => selects(selectors, one));
  const own = devices.filter((_, index) => verdicts[index] === true);
  const [first] = own;
  if (first === undefined || verdicts.includes('unknown')) return undefined;
  if (own.some(({ driver, device }) => driver !== first.driver || device.allowMultipleAllocations === true)) {
    return undefined;
  }
  if (!fitTogether(counters, own)) return undefined;
  const left = new Map(counters);
  for (const one of devices) if (holdersOf(one.id).length > 0) take(left, one);
  let healthy = 0;
  const claimed = new Map<string | undefined, number>();
  for (const one of own) {
    const holders = holdersOf(one.id);
    const isHeld = holders.length > 0;
    if (!isHeld && isTainted(one.device)) continue;
    healthy += 1;
    if (!isHeld && fits(left, one)) continue;
    const asked = holders.find(({ askedAs }) => askedAs === deviceClass.metadata.name);
    if (asked?.isCounted !== true) claimed.set(asked?.instance, (claimed.get(asked?.instance) ?? 0) + 1);
  }
  const all = own.map(({ device }) => device);
  return {
    resourceName,
    driver: first.driver,
    total: own.length,
    healthy,
    claimed: [...claimed].map(([instance, gpus]) => ({ instance, gpus })),
    attributes: commonAttributes(all),
    capacity: leastCapacity(all),
  };
}
