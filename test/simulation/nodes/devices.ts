import {
  DEVICE_CLASSES,
  DEVICE_TAINT_RULES,
  type DeviceClass,
  RESOURCE_CLAIMS,
  type ResourceClaim,
  RESOURCE_SLICES,
  type ResourceSlice,
} from '../../../src/kube/devices.ts';
import { DEVICE_CLASS_RESOURCE } from '../../../src/kube/quantity.ts';
import type { ApiServer } from '../api/server.ts';
import { GPUS } from './amounts.ts';
import { type Device, DEVICE_CLASS, DRIVER } from './driver.ts';

/** The names of the devices of a node that a claim has. */
export function devicesOf({ status }: ResourceClaim): { node: string; device: string }[] {
  return status?.allocation?.devices?.results?.map(({ pool, device }) => ({ node: pool, device })) ?? [];
}

/** What slices tell of devices and which of them claims have, as kube-scheduler knows it. */
export class Devices {
  readonly #api: ApiServer;
  readonly #slices = new Map<string, Map<string, ResourceSlice>>();
  /** By node: devices that slices ever told of, */
  readonly #known = new Map<string, Set<string>>();
  /** those that claims have, */
  readonly #taken = new Map<string, Set<string>>();
  /** and by pod: those that are to be written into its claim. */
  readonly #planned = new Map<string, { node: string; devices: readonly string[] }>();

  constructor(api: ApiServer) {
    this.#api = api;
    api.follow(({ kind, before, after }) => {
      if (kind.type.kind === RESOURCE_SLICES.kind) this.#seeSlice(before as ResourceSlice, after as ResourceSlice);
      if (kind.type.kind === RESOURCE_CLAIMS.kind) this.#seeClaim(before as ResourceClaim, after as ResourceClaim);
    });
  }

  /** The DeviceClass by which pods ask for a resource. */
  classOf(resourceName: string): DeviceClass | undefined {
    if (!this.#api.servesDevices) return undefined;
    return this.#api
      .list(DEVICE_CLASSES)
      .find(({ metadata, spec }) =>
        [spec.extendedResourceName, DEVICE_CLASS_RESOURCE + metadata.name].includes(resourceName),
      );
  }

  /** How many devices a node has, whatever is wrong with them. */
  total(node: string): number {
    return this.#known.get(node)?.size ?? 0;
  }

  /** The devices of a node that the scheduler may give out, had by claims or not. */
  usable(node: string): Device[] {
    const slices = [...(this.#slices.get(node)?.values() ?? [])];
    const newest = Math.max(...slices.map(({ spec }) => spec.pool.generation));
    const current = slices.filter(({ spec }) => spec.pool.generation === newest);
    if (current.length === 0 || current.length !== current[0]?.spec.pool.resourceSliceCount) return [];
    const rules = this.#api.list(DEVICE_TAINT_RULES).map(({ spec }) => spec.deviceSelector);
    return current
      .flatMap(({ spec }) => spec.devices ?? [])
      .filter(({ name, taints = [] }) => {
        return taints.length === 0 && !rules.some((rule) => rule?.pool === node && rule.device === name);
      });
  }

  /** Those that nobody has. */
  free(node: string): string[] {
    const taken = this.#taken.get(node) ?? new Set();
    const planned = new Set([...this.#planned.values()].flatMap((one) => (one.node === node ? one.devices : [])));
    const names = this.usable(node).map(({ name }) => name);
    return names.filter((name) => !taken.has(name) && !planned.has(name));
  }

  plan(pod: string, node: string, devices: readonly string[]): void {
    this.#planned.set(pod, { node, devices });
  }

  /** They are written into a claim, or not needed. */
  forget(pod: string): void {
    this.#planned.delete(pod);
  }

  #seeSlice(before: ResourceSlice | undefined, after: ResourceSlice | undefined): void {
    const { nodeName = '' } = (after ?? before)?.spec ?? {};
    const known = this.#slices.get(nodeName) ?? new Map<string, ResourceSlice>();
    this.#slices.set(nodeName, known);
    const names = this.#known.get(nodeName) ?? new Set<string>();
    this.#known.set(nodeName, names);
    for (const { name } of after?.spec.devices ?? []) names.add(name);
    if (after !== undefined) known.set(after.metadata.name, after);
    else if (before !== undefined) known.delete(before.metadata.name);
  }

  #seeClaim(before: ResourceClaim | undefined, after: ResourceClaim | undefined): void {
    for (const { node, device } of before === undefined ? [] : devicesOf(before)) this.#taken.get(node)?.delete(device);
    for (const { node, device } of after === undefined ? [] : devicesOf(after))
      this.#taken.set(node, (this.#taken.get(node) ?? new Set<string>()).add(device));
  }
}

/** The class of whole GPUs, as the chart of NVIDIA's driver has it. */
export function gpuClass(isNamed: boolean): DeviceClass {
  const expression = `device.driver == '${DRIVER}' && device.attributes['${DRIVER}'].type == 'gpu'`;
  return {
    metadata: { name: DEVICE_CLASS },
    spec: { selectors: [{ cel: { expression } }], ...(isNamed && { extendedResourceName: GPUS }) },
  };
}
