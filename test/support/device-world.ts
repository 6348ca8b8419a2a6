import type { DeviceClass, ResourceClaim, ResourceSlice } from '../../src/kube/devices.ts';
import type { Node, Pod } from '../../src/kube/types.ts';
import { gpuNode } from './inventory-world.ts';

const DRIVER = 'gpu.nvidia.com';

type Device = NonNullable<ResourceSlice['spec']['devices']>[number];

/** A whole GPU as the driver of NVIDIA tells of it. */
export function gpuDevice(name: string, product = 'NVIDIA A100-SXM4-80GB', over: Partial<Device> = {}): Device {
  return {
    name,
    attributes: {
      type: { string: 'gpu' },
      productName: { string: product },
      uuid: { string: `GPU-${name}` },
      driverVersion: { version: '580.95.5' },
      cudaDriverVersion: { version: '13.0.0' },
    },
    capacity: { memory: { value: '80Gi' } },
    ...over,
  };
}

export function taintedDevice(device: Device, effect = 'NoSchedule'): Device {
  return { ...device, taints: [{ key: 'gpu.nvidia.com/xid', value: '79', effect }] };
}

/** The slice of a node whose pool has no other. */
export function resourceSlice(
  nodeName: string,
  devices: Device[],
  spec: Partial<ResourceSlice['spec']> = {},
): ResourceSlice {
  const { driver = DRIVER, pool = { name: nodeName, generation: 1, resourceSliceCount: 1 } } = spec;
  const name = `${nodeName}-${driver}-${pool.generation}`;
  return { metadata: { name }, spec: { driver, nodeName, pool, devices, ...spec } };
}

/** The class of whole GPUs, as the driver's chart has it. */
export function deviceClass(name = DRIVER, spec: Partial<DeviceClass['spec']> = {}): DeviceClass {
  const expression = `device.driver == '${DRIVER}' && device.attributes['${DRIVER}'].type == 'gpu'`;
  return {
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { selectors: [{ cel: { expression } }], extendedResourceName: 'nvidia.com/gpu', ...spec },
  };
}

interface ClaimShape {
  /** The pod for which the scheduler made it. */
  pod?: Pod;
  deviceClassName?: string;
  adminAccess?: boolean;
}

/** A claim that has devices of a node. */
export function resourceClaim(
  name: string,
  node: string,
  devices: readonly string[],
  { pod, deviceClassName = DRIVER, adminAccess }: ClaimShape = {},
): ResourceClaim {
  const request = 'container-0-request-0';
  const results = devices.map((device) => ({
    request,
    driver: DRIVER,
    pool: node,
    device,
    ...(adminAccess !== undefined && { adminAccess }),
  }));
  return {
    metadata: {
      name,
      namespace: 'default',
      ...(pod && {
        annotations: { 'resource.kubernetes.io/extended-resource-claim': 'true' },
        ownerReferences: [
          { apiVersion: 'v1', kind: 'Pod', name: pod.metadata.name, uid: pod.metadata.uid ?? '', controller: true },
        ],
      }),
    },
    spec: { devices: { requests: [{ name: request, exactly: { deviceClassName, count: devices.length } }] } },
    status: {
      allocation: { devices: { results } },
      ...(pod && {
        reservedFor: [{ resource: 'pods', name: pod.metadata.name, uid: pod.metadata.uid ?? '' }],
      }),
    },
  };
}

/** A node that neither a device plugin nor feature discovery tells of. */
export function bareNode(name: string, shape: Parameters<typeof gpuNode>[1] = {}): Node {
  const { metadata, status, spec } = gpuNode(name, shape);
  const { 'nvidia.com/gpu': _none, ...allocatable } = status?.allocatable ?? {};
  return {
    metadata: { ...metadata, labels: shape.labels ?? {} },
    ...(spec && { spec }),
    status: { ...status, allocatable },
  };
}
