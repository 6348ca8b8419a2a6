const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A Kubernetes quantity as a number, exact up to 2^53; undefined for any other text. */
export function parseQuantity(quantity: string): number | undefined {
  const match = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/.exec(
    quantity,
  );
  if (!match) return undefined;
  return Number(match[1]) * (SUFFIXES[match[2] ?? ''] ?? Number.NaN);
}

/** What the resource of each DeviceClass begins with; its name follows (kubernetes pkg/apis/resource/types.go). */
export const DEVICE_CLASS_RESOURCE = 'deviceclass.resource.kubernetes.io/';

/** Whether a resource is an extended one, as devices are (kubernetes pkg/scheduler/util, IsDRAExtendedResourceName). */
export function isExtendedResource(name: string): boolean {
  if (name.startsWith(DEVICE_CLASS_RESOURCE)) return true;
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.');
}
