import { DeviceIndex, type DeviceStores } from '../inventory/devices/device-index.ts';
import type { KubeObject } from '../kube/types.ts';
import { Cache } from '../kube/watch/cache.ts';
import type { Objects } from './sources.ts';

/** Objects as a watch cache has them. */
export function cached<T extends KubeObject>(objects: readonly T[]): Cache<T> {
  const onListenerError = (error: unknown): never => {
    throw error;
  };
  const cache = new Cache<T>({ onListenerError });
  for (const object of objects) cache.upsert(object);
  return cache;
}

type Devices = Pick<Objects, 'resourceSlices' | 'deviceClasses'>;

/** What is in ResourceSlices, whoever has it. */
export function deviceStores({ resourceSlices, deviceClasses }: Devices): DeviceStores {
  return {
    resourceSlices: cached(resourceSlices),
    deviceClasses: cached(deviceClasses),
    resourceClaims: cached([]),
    deviceTaintRules: cached([]),
  };
}

export function deviceIndex(devices: Devices): DeviceIndex {
  return new DeviceIndex(deviceStores(devices), cached([]), () => undefined);
}
