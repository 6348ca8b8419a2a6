import type { DeviceClass } from '../../kube/devices.ts';
import { DEVICE_CLASS_RESOURCE, parseQuantity } from '../../kube/quantity.ts';
import { compareText } from '../../lib/compare.ts';
import type { Amounts } from '../amounts.ts';
import { readSelectors, selects } from './selectors.ts';
import { type Counters, fitTogether, roomFor, take } from './shared-counters.ts';
import type { Device, NamedDevice } from './slices.ts';

/** Devices that claims have. */
export interface DeviceHolding {
  /** Namespace and uid of the instance whose pod has them; undefined for those of others. */
  readonly instance: string | undefined;
  readonly gpus: number;
}

/** Devices that a pod has of those that it asked for by its class. */
export interface LocatedDevices {
  readonly pod: string;
  readonly instance: string | undefined;
  readonly gpus: number;
  /** Those of them that are tainted: nobody gets them afterwards. */
  readonly sick: number;
}

/** The devices of one class on one node. */
export interface DeviceGroup {
  readonly deviceClassName: string;
  /** What pods ask for: the extended resource of the class or, where it names none, the one that every class has. */
  readonly resourceName: string;
  readonly driver: string;
  readonly total: number;
  /** Those that are not tainted, or in use all the same. */
  readonly healthy: number;
  /** Those that claims have, and no pod that runs counts. */
  readonly claimed: readonly DeviceHolding[];
  /** Those that nobody has, and whose counters others use. */
  readonly blocked: number;
  readonly located: readonly LocatedDevices[];
  /** All of them. */
  readonly devices: readonly NamedDevice[];
  /** What the node has of all classes. */
  readonly supply: DeviceSupply;
  /** By name: the value that all devices have, or the empty string where they differ. */
  readonly attributes: Readonly<Record<string, string>>;
  /** By name: the least, in bytes or pieces. */
  readonly capacity: Readonly<Record<string, number>>;
  /** The part of a device that each is: 1/8. Undefined where each is a device. */
  readonly share: string | undefined;
}

/** A claim that has a device. */
export interface Holder {
  /** The class by which a pod asks for the device as an extended resource; else undefined. */
  readonly askedAs: string | undefined;
  /** The claim: a pod has one for all its devices. */
  readonly claim: string;
  /** What the pod counts on the node; nothing while it does not run, and where it is no pod's. */
  readonly requests: Amounts;
  /** The uid of the pod that the claim was made for. */
  readonly pod: string | undefined;
  /** The instance of the pod. */
  readonly instance: string | undefined;
  /**
   * `placed`: the pod is on its node, and names the claim, so it gives the device back when it ends. `over`: it has ended,
   * and the claim goes next.
   */
  readonly stage: 'placed' | 'over' | undefined;
}

/** What a node has of all classes, and who has it. */
export interface DeviceSupply {
  readonly devices: readonly NamedDevice[];
  /** All counters. */
  readonly counters: Readonly<Counters>;
  /** Who has which device now, by the ids of those that somebody has. */
  readonly holders: () => ReadonlyMap<string, readonly Holder[]>;
}

/** Whether the scheduler gives a device to nobody, whatever is free. */
export function isTainted({ taints = [] }: Device): boolean {
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

/** Characters of the name of a resource after its slash (kubernetes pkg/api/validate/content, IsLabelKey). */
const MOST_NAME = 63;

/** By which resource pods ask for devices of a class. */
function resourceOf({ metadata, spec }: DeviceClass): string {
  return spec.extendedResourceName ?? DEVICE_CLASS_RESOURCE + metadata.name;
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
  if (readSelectors(deviceClass) === undefined)
    return `Berth cannot count the devices of DeviceClass ${name}: its selectors are more than device.driver, device.allowMultipleAllocations and device.attributes compared with == and joined with &&. Name a simpler class.`;
  const { extendedResourceName } = deviceClass.spec;
  if (extendedResourceName === undefined && name.length > MOST_NAME)
    return `DeviceClass ${name} has no spec.extendedResourceName, and its own name is longer than the ${MOST_NAME} characters of a resource. Set one, for example nvidia.com/gpu.`;
  const asked = extendedResourceName === undefined ? name : classOf(extendedResourceName, classes);
  if (asked !== name)
    return `Pods that ask for ${deviceClass.spec.extendedResourceName} get devices of DeviceClass ${asked}, which has this name too. Name that class, or give ${name} another spec.extendedResourceName.`;
  return undefined;
}

// A claim changes what is free of a node all the time, and which devices it has rarely.
const selected = new WeakMap<DeviceSupply, WeakMap<DeviceClass, readonly NamedDevice[]>>();

function select(deviceClass: DeviceClass, { devices, counters }: DeviceSupply): readonly NamedDevice[] {
  const selectors = readSelectors(deviceClass);
  if (selectors === undefined) return [];
  const verdicts = devices.map((one) => selects(selectors, one));
  const own = devices.filter((_, index) => verdicts[index] === true);
  if (verdicts.includes('unknown') || new Set(own.map(({ driver }) => driver)).size > 1) return [];
  const isUncounted = own.some(({ device, part }) => device.allowMultipleAllocations === true && part === undefined);
  const areAlike = new Set(own.map(({ part }) => part?.share)).size === 1;
  return isUncounted || !areAlike || !fitTogether(counters, own) ? [] : own;
}

/** The devices of a class on a node; none where they cannot be counted. */
function selectOnce(deviceClass: DeviceClass, supply: DeviceSupply): readonly NamedDevice[] {
  const known = selected.get(supply) ?? new WeakMap<DeviceClass, readonly NamedDevice[]>();
  selected.set(supply, known);
  const own = known.get(deviceClass) ?? select(deviceClass, supply);
  known.set(deviceClass, own);
  return own;
}

/**
 * The devices of a class on a node; undefined when it has none, or none that can be counted: devices that take from each
 * other are not sold. Slices of one MIG profile leave each other room, and so do pieces of devices that claims share.
 */
export function deviceGroup(deviceClass: DeviceClass, supply: DeviceSupply): DeviceGroup | undefined {
  const resourceName = resourceOf(deviceClass);
  const deviceClassName = deviceClass.metadata.name;
  const { devices, counters } = supply;
  const own = selectOnce(deviceClass, supply);
  const [first] = own;
  if (first === undefined) return undefined;
  const holders = supply.holders();
  const left = new Map(counters);
  for (const one of devices) if (holders.has(one.id)) take(left, one);
  const uncounted = new Map<string, number>();
  const claimed = new Map<string | undefined, number>();
  const located = new Map<string, LocatedDevices>();
  const held = own.filter(({ id }) => holders.has(id));
  for (const { id, device } of held) {
    const asked = holders.get(id)?.find(({ askedAs }) => askedAs === deviceClassName);
    const { pod, instance } = asked ?? {};
    if (pod !== undefined) {
      const { gpus, sick } = located.get(pod) ?? { gpus: 0, sick: 0 };
      located.set(pod, { pod, instance, gpus: gpus + 1, sick: sick + (isTainted(device) ? 1 : 0) });
    }
    // Pods may ask for devices of a class by either of its names: the requests of one name are those of so many devices.
    const counted = asked && (uncounted.get(asked.claim) ?? asked.requests[resourceName] ?? 0);
    if (asked && counted) uncounted.set(asked.claim, counted - 1);
    else claimed.set(instance, (claimed.get(instance) ?? 0) + 1);
  }
  const rest = own.filter(({ id, device }) => !holders.has(id) && !isTainted(device));
  const all = own.map(({ device }) => device);
  return {
    deviceClassName,
    resourceName,
    driver: first.driver,
    total: own.length,
    healthy: held.length + rest.length,
    claimed: [...claimed].map(([instance, gpus]) => ({ instance, gpus })),
    blocked: rest.length - roomFor(left, rest),
    located: [...located.values()],
    devices: own,
    supply,
    attributes: commonAttributes(all),
    capacity: leastCapacity(all),
    share: first.part?.share,
  };
}
