import type { Node } from '../../kube/types.ts';
import type { PoolDevices } from '../../resources/gpu-pool.ts';
import type { DeviceGroup } from './device-group.ts';

/** What the slices say of one node, by DeviceClass. */
export type NodeDevices = ReadonlyMap<string, DeviceGroup>;

export const NO_DEVICES: NodeDevices = new Map();

// Labels that no Node can have: a name with a colon is refused.
export const DEVICE_RESOURCE = 'device:resource';
export const DEVICE_DRIVER = 'device:driver';
export const DEVICE_ATTRIBUTE = 'device:attribute:';
export const DEVICE_CAPACITY = 'device:capacity:';

function prefixed(prefix: string, values: Readonly<Record<string, string | number>>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [prefix + name, String(value)]));
}

/** The group that a pool has of a node. Where a device plugin counts the resource, the scheduler asks no slices. */
export function groupFor(node: Node, groups: NodeDevices, devices: PoolDevices | undefined): DeviceGroup | undefined {
  const group = groups.get(devices?.deviceClassName ?? '');
  return group === undefined || Number(node.status?.allocatable?.[group.resourceName] ?? 0) > 0 ? undefined : group;
}

/** A node as a device plugin and labels would tell of it, for a pool whose GPUs are in slices. */
export function toldNode(node: Node, group: DeviceGroup | undefined): Node {
  if (group === undefined) return node;
  const { resourceName, driver, total, healthy, attributes, capacity } = group;
  return {
    ...node,
    metadata: {
      ...node.metadata,
      labels: {
        ...node.metadata.labels,
        [DEVICE_RESOURCE]: resourceName,
        [DEVICE_DRIVER]: driver,
        ...prefixed(DEVICE_ATTRIBUTE, attributes),
        ...prefixed(DEVICE_CAPACITY, capacity),
      },
    },
    status: {
      ...node.status,
      allocatable: { ...node.status?.allocatable, [resourceName]: String(healthy) },
      capacity: { ...node.status?.capacity, [resourceName]: String(total) },
    },
  };
}
