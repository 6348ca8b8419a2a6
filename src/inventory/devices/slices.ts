import type { DeviceTaintRule, ResourceSlice } from '../../kube/devices.ts';

export type Device = NonNullable<ResourceSlice['spec']['devices']>[number];

/** A device, with what tells it from all others. */
export interface NamedDevice {
  /** Driver, pool and name. */
  readonly id: string;
  /** Driver and pool: the names of counters are its own. */
  readonly pool: string;
  readonly driver: string;
  readonly device: Device;
  /** Of a piece of a device that several claims may share. */
  readonly part?: Part;
}

/** A piece of a device. All pieces of it are alike. */
export interface Part {
  /** That of the device. */
  readonly id: string;
  /** The part of the device that it is, exactly: 1/8. */
  readonly share: string;
  readonly index: number;
  /** How many pieces the device has. */
  readonly count: number;
  readonly device: Device;
}

export function poolKey(driver: string, pool: string): string {
  return `${driver}/${pool}`;
}

export function poolOfSlice({ spec }: ResourceSlice): string {
  return poolKey(spec.driver, spec.pool.name);
}

/**
 * The slices of a pool that count: the newest generation, when it is complete and names no device twice (kubernetes
 * dynamic-resource-allocation/structured, GatherPools).
 */
export function newestSlices(slices: readonly ResourceSlice[]): readonly ResourceSlice[] {
  const newest = Math.max(...slices.map(({ spec }) => spec.pool.generation));
  const current = slices.filter(({ spec }) => spec.pool.generation === newest);
  const names = current.flatMap(({ spec }) => spec.devices?.map(({ name }) => name) ?? []);
  const isWhole = current.length === current[0]?.spec.pool.resourceSliceCount;
  return isWhole && new Set(names).size === names.length ? current : [];
}

/** A device with the taints that operators give it beside those of its driver. */
export function withTaints(device: Device, { spec }: ResourceSlice, rules: Iterable<DeviceTaintRule>): Device {
  const place = { driver: spec.driver, pool: spec.pool.name, device: device.name };
  const added = [...rules].filter(({ spec: { deviceSelector: selector } }) => {
    // Without a selector no device is meant, and by one that is empty each.
    if (selector === undefined) return false;
    const { driver = place.driver, pool = place.pool, device: name = place.device } = selector;
    return driver === place.driver && pool === place.pool && name === place.device;
  });
  return added.length === 0
    ? device
    : { ...device, taints: [...(device.taints ?? []), ...added.map(({ spec: { taint } }) => taint)] };
}

/** The devices of one node in the slices of a pool that count. */
export function devicesOn(
  node: string,
  slices: readonly ResourceSlice[],
  rules: readonly DeviceTaintRule[],
): NamedDevice[] {
  return slices
    .filter(({ spec }) => spec.nodeName === node)
    .flatMap((slice) => {
      const pool = poolOfSlice(slice);
      const { driver, devices = [] } = slice.spec;
      return devices.map((told) => {
        const device = withTaints(told, slice, rules);
        return { id: `${pool}/${device.name}`, pool, driver, device };
      });
    });
}
