import type { PodDevice } from '../../../inventory/devices/device-index.ts';
import { compareText } from '../../../lib/compare.ts';
import type { UnhealthyGPU } from '../../../resources/instances/gpu-health.ts';
import type { Observed } from './observed.ts';
import { mainStatus } from './pod/pod-facts.ts';

/** A report names as many GPUs as the instance has. A longer one, or a longer id, is none of a device plugin. */
const MOST_GPUS = 64;
const LONGEST_ID = 128;

/** What the kubelet, or the driver in ResourceSlices, reports of the GPUs of an instance. */
export interface GPUHealth {
  /** By id. */
  unhealthy: readonly UnhealthyGPU[];
  /** Ids of those of which the kubelet does not know. */
  unknown: readonly string[];
}

/** GPUs that Dynamic Resource Allocation gave out: those that a taint keeps from others are unhealthy. */
function reportOf(devices: readonly PodDevice[]): { id: string; health: string }[] {
  return devices.map(({ pool, device, uuid, isTainted }) => ({
    id: uuid ?? `${pool}/${device}`,
    health: isTainted ? 'Unhealthy' : 'Healthy',
  }));
}

/**
 * The health of the GPUs that the pod of this start has; undefined where nobody says anything: without a pod, and before
 * Kubernetes 1.36 (pkg/kubelet/cm/devicemanager, UpdateAllocatedResourcesStatus). A restart of the device plugin
 * alone does not change it: the kubelet keeps what the plugin said last.
 */
export function gpuHealth({
  instance,
  pod,
  devices = [],
  now,
}: Pick<Observed, 'instance' | 'pod' | 'devices' | 'now'>): GPUHealth | undefined {
  const { claim, unhealthyGPUs: known = [] } = instance.status ?? {};
  const statuses = (pod && mainStatus(pod)?.allocatedResourcesStatus) ?? [];
  const resources = statuses.find(({ name }) => name === claim?.resourceName)?.resources ?? [];
  const told = resources.map(({ resourceID, health }) => ({ id: resourceID, health }));
  const report = devices.length > 0 ? reportOf(devices) : told;
  if (report.length === 0) return undefined;
  // The kubelet lists them in another order each time.
  const gpus = report
    .slice(0, MOST_GPUS)
    .map(({ id, health }) => ({ id: id.slice(0, LONGEST_ID), health }))
    .toSorted((a, b) => compareText(a.id, b.id));
  const seen = new Date(now).toISOString();
  return {
    unhealthy: gpus
      .filter(({ health }) => health === 'Unhealthy')
      .map(({ id }) => ({ id, since: known.find((one) => one.id === id)?.since ?? seen })),
    unknown: gpus.filter(({ health }) => health === 'Unknown').map(({ id }) => id),
  };
}
