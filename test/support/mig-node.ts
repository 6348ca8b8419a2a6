import type { DeviceClass, ResourceSlice } from '../../src/kube/devices.ts';

// The GPUs of a node with every MIG slice that an A100 can have, as a driver of Dynamic Resource Allocation tells of them.

const DRIVER = 'gpu.nvidia.com';
/** Of each profile: where its slices may begin, and how many parts of the memory and of the processors one takes (NVIDIA's MIG user guide). */
export const PROFILES = {
  '1g.10gb': { at: [0, 1, 2, 3, 4, 5, 6], parts: 1, processors: 14 },
  '2g.20gb': { at: [0, 2, 4], parts: 2, processors: 28 },
  '3g.40gb': { at: [0, 4], parts: 4, processors: 42 },
};
const PARTS = 8;
const PROCESSORS = 98;

/** What is for rent: whole GPUs, and the slices of each profile. */
export const KINDS = ['gpu', ...Object.keys(PROFILES)];

type Device = NonNullable<ResourceSlice['spec']['devices']>[number];

function counters(from: number, parts: number, processors: number): Record<string, { value: string }> {
  const names = Array.from({ length: parts }, (_, index) => `memory-${from + index}`);
  return {
    multiprocessors: { value: String(processors) },
    ...Object.fromEntries(names.map((name) => [name, { value: '1' }])),
  };
}

function devicesOf(gpu: string, product: string): Device[] {
  const attributes = { productName: { string: product }, driverVersion: { version: '580.95.5' } };
  const whole = {
    name: gpu,
    attributes: { ...attributes, type: { string: 'gpu' } },
    capacity: { memory: { value: '80Gi' } },
    consumesCounters: [{ counterSet: gpu, counters: counters(0, PARTS, PROCESSORS) }],
  };
  const slices = Object.entries(PROFILES).flatMap(([profile, { at, parts, processors }]) =>
    at.map((from) => ({
      name: `${gpu}-${profile.replace('.', '-')}-${from}`,
      attributes: { ...attributes, type: { string: 'mig' }, profile: { string: profile } },
      capacity: { memory: { value: `${parts * 10}Gi` } },
      consumesCounters: [{ counterSet: gpu, counters: counters(from, parts, processors) }],
    })),
  );
  return [whole, ...slices];
}

/** Counters and devices must stand in different slices of one pool. */
export function migNode(nodeName: string, gpus: number, product = 'NVIDIA A100-SXM4-80GB'): ResourceSlice[] {
  const names = Array.from({ length: gpus }, (_, index) => `gpu-${index}`);
  const spec = { driver: DRIVER, nodeName, pool: { name: nodeName, generation: 1, resourceSliceCount: 2 } };
  const sets = names.map((name) => ({ name, counters: counters(0, PARTS, PROCESSORS) }));
  return [
    { metadata: { name: `${nodeName}-counters` }, spec: { ...spec, sharedCounters: sets } },
    {
      metadata: { name: `${nodeName}-devices` },
      spec: { ...spec, devices: names.flatMap((gpu) => devicesOf(gpu, product)) },
    },
  ];
}

/** The class of a kind. */
export function migClass(name: string, kind: string): DeviceClass {
  const attribute = (one: string) => `device.attributes['${DRIVER}'].${one}`;
  const isSlice = `${attribute('type')} == 'mig' && ${attribute('profile')} == '${kind}'`;
  const expression = `device.driver == '${DRIVER}' && ${kind === 'gpu' ? `${attribute('type')} == 'gpu'` : isSlice}`;
  return { metadata: { name }, spec: { selectors: [{ cel: { expression } }] } };
}
