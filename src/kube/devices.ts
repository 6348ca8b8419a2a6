import type {
  ResourceV1ResourceClaim,
  V1beta2DeviceTaintRule,
  V1DeviceClass,
  V1ResourceSlice,
} from '@kubernetes/client-node';
import { type Served, v1 } from './types.ts';

// Dynamic Resource Allocation: devices that no device plugin counts. Kubernetes 1.34 and later serve these kinds.

export type ResourceSlice = Served<V1ResourceSlice>;
export type DeviceClass = Served<V1DeviceClass>;
export type ResourceClaim = Served<ResourceV1ResourceClaim>;
export type DeviceTaintRule = Served<V1beta2DeviceTaintRule>;

export const RESOURCE_SLICES = v1<ResourceSlice>('resource.k8s.io', 'ResourceSlice', 'resourceslices', false);
export const DEVICE_CLASSES = v1<DeviceClass>('resource.k8s.io', 'DeviceClass', 'deviceclasses', false);
export const RESOURCE_CLAIMS = v1<ResourceClaim>('resource.k8s.io', 'ResourceClaim', 'resourceclaims');

/** Taints that operators give devices (KEP 5055): from Kubernetes 1.37, and in 1.36 where it is switched on. */
export const DEVICE_TAINT_RULES = v1<DeviceTaintRule>('resource.k8s.io', 'DeviceTaintRule', 'devicetaintrules', false);
/** The version in which Kubernetes 1.36 serves them. */
export const EARLIER_TAINT_RULES = 'v1beta2';

/** `true` on a claim that the scheduler makes for a pod that asks for devices as an extended resource. */
export const EXTENDED_RESOURCE_CLAIM = 'resource.kubernetes.io/extended-resource-claim';
