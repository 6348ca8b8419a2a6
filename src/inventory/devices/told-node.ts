import type { Node } from '../../kube/types.ts';
import { deviceClassNamesOf, type PoolDevices } from '../../resources/gpu-pool.ts';
import type { DeviceGroup } from './device-group.ts';

/** What the slices say of one node, by DeviceClass. */
export type NodeDevices = ReadonlyMap<string, DeviceGroup>;

export const NO_DEVICES: NodeDevices = new Map();

// Labels that no Node can have: a name with a colon is refused.
/** The resource that comes first in the pool of the node. */
export const DEVICE_RESOURCE = 'device:resource';

/** Labels with what the devices of a resource are. */
export const deviceLabels = {
  className: (resourceName: string) => `device:${resourceName}:class`,
  driver: (resourceName: string) => `device:${resourceName}:driver`,
  attribute: (resourceName: string, name: string) => `device:${resourceName}:attribute:${name}`,
  capacity: (resourceName: string, name: string) => `device:${resourceName}:capacity:${name}`,
  /** Only of devices that claims share. */
  share: (resourceName: string) => `device:${resourceName}:share`,
} as const;

/** The groups that a pool has of a node. Where a device plugin counts the resource, the scheduler asks no slices. */
export function groupsFor(node: Node, groups: NodeDevices, devices: PoolDevices | undefined): readonly DeviceGroup[] {
  if (groups.size === 0) return [];
  return deviceClassNamesOf(devices).flatMap((name) => {
    const group = groups.get(name);
    return group === undefined || Number(node.status?.allocatable?.[group.resourceName] ?? 0) > 0 ? [] : [group];
  });
}

function labelsOf({ deviceClassName, resourceName, driver, attributes, capacity, share }: DeviceGroup) {
  const told = [
    [deviceLabels.className(resourceName), deviceClassName],
    [deviceLabels.driver(resourceName), driver],
    ...Object.entries(attributes).map(([name, value]) => [deviceLabels.attribute(resourceName, name), value]),
    ...Object.entries(capacity).map(([name, value]) => [deviceLabels.capacity(resourceName, name), String(value)]),
    ...(share === undefined ? [] : [[deviceLabels.share(resourceName), share]]),
  ];
  return Object.fromEntries(told) as Record<string, string>;
}

function resourcesOf(groups: readonly DeviceGroup[], amountOf: (group: DeviceGroup) => number): Record<string, string> {
  return Object.fromEntries(groups.map((group) => [group.resourceName, String(amountOf(group))]));
}

/** A node as a device plugin and labels would tell of it, for a pool whose GPUs are in slices. */
export function toldNode(node: Node, groups: readonly DeviceGroup[]): Node {
  const [first] = groups;
  if (first === undefined) return node;
  const told = Object.assign({ [DEVICE_RESOURCE]: first.resourceName }, ...groups.map(labelsOf)) as Record<
    string,
    string
  >;
  return {
    ...node,
    metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...told } },
    status: {
      ...node.status,
      allocatable: { ...node.status?.allocatable, ...resourcesOf(groups, ({ healthy }) => healthy) },
      capacity: { ...node.status?.capacity, ...resourcesOf(groups, ({ total }) => total) },
    },
  };
}
