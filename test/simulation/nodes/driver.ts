import { type ResourceSlice, RESOURCE_SLICES } from '../../../src/kube/devices.ts';
import { NODES } from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';

export const DRIVER = 'gpu.nvidia.com';
export const DEVICE_CLASS = 'gpu.nvidia.com';

export type Device = NonNullable<ResourceSlice['spec']['devices']>[number];

/** What a driver says of a GPU that fails: nobody gets it, its pod must go, or it is not there. */
export type Illness = 'taint' | 'evict' | 'gone';

const NAME = 'gpu-';

/** The name of a GPU in its slice, as the driver of NVIDIA has it. */
export function deviceName(index: number): string {
  return NAME + index;
}

export function uuidOf(node: string, device: string): string {
  return `GPU-${node}-${device.slice(NAME.length)}`;
}

interface Deps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
}

interface Shape {
  node: string;
  product: string;
  /** Their UUIDs. */
  gpus: readonly string[];
  /** ResourceSlices that it writes. */
  slices: number;
}

/** The driver of a node's GPUs, which tells of them in ResourceSlices. Its pool has the name of the node. */
export class Driver {
  readonly #deps: Deps;
  readonly #shape: Shape;
  readonly #ill = new Map<string, Illness>();
  #generation = 1;
  #isAway = false;

  constructor(deps: Deps, shape: Shape) {
    this.#deps = deps;
    this.#shape = shape;
  }

  /** The UUID of a device. */
  gpuOf(device: string): string | undefined {
    return this.#shape.gpus.find((_, index) => deviceName(index) === device);
  }

  setIll(gpu: string, illness: Illness | undefined): void {
    if (illness === undefined) this.#ill.delete(gpu);
    else this.#ill.set(gpu, illness);
  }

  /** Writes all slices, and takes away those of older generations. */
  publish(): void {
    const { api } = this.#deps;
    if (this.#isAway || api.find(NODES, { name: this.#shape.node }) === undefined) return;
    const names = new Set(Array.from({ length: this.#shape.slices }, (_, index) => this.#write(index)));
    for (const { metadata } of this.#written()) {
      if (!names.has(metadata.name)) api.delete(RESOURCE_SLICES, metadata);
    }
  }

  /** It starts anew: its slices come one after the other, with the next generation. */
  restart(isUp: () => boolean): void {
    const { time, chance } = this.#deps;
    if (this.#isAway || !isUp()) return;
    this.#generation += 1;
    const generation = this.#generation;
    const next = (index: number): void => {
      time.afterPlain(chance.between(5, 400), () => {
        if (generation !== this.#generation || this.#isAway || !isUp()) return;
        if (index === this.#shape.slices) this.publish();
        else {
          this.#write(index);
          next(index + 1);
        }
      });
    };
    next(0);
  }

  /** Its slices are taken away, as by a kubelet that starts anew, until it publishes them again. */
  wipe(): void {
    this.#isAway = true;
    for (const { metadata } of this.#written()) this.#deps.api.delete(RESOURCE_SLICES, metadata);
    this.#generation = 1;
  }

  /** The kubelet knows it again. */
  comeBack(): void {
    this.#isAway = false;
  }

  #written(): ResourceSlice[] {
    return this.#deps.api.list(RESOURCE_SLICES).filter(({ spec }) => spec.nodeName === this.#shape.node);
  }

  /** Returns the name of the slice. */
  #write(index: number): string {
    const { api } = this.#deps;
    const { node, slices } = this.#shape;
    const owner = api.find(NODES, { name: node });
    const name = `${node}-${DRIVER}-${this.#generation}-${index}`;
    if (owner === undefined) return name;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Node', name: node, uid: owner.metadata.uid ?? '' }];
    const spec: ResourceSlice['spec'] = {
      driver: DRIVER,
      nodeName: node,
      pool: { name: node, generation: this.#generation, resourceSliceCount: slices },
      devices: this.#devices().filter((_, device) => device % slices === index),
    };
    if (api.find(RESOURCE_SLICES, { name }) === undefined)
      api.create(RESOURCE_SLICES, { metadata: { name, ownerReferences }, spec } as ResourceSlice);
    else
      api.change(RESOURCE_SLICES, { name }, (one) => ({
        ...one,
        metadata: { ...one.metadata, ownerReferences },
        spec,
      }));
    return name;
  }

  #devices(): Device[] {
    const { gpus, product } = this.#shape;
    return gpus.flatMap((uuid, index): Device[] => {
      const illness = this.#ill.get(uuid);
      if (illness === 'gone') return [];
      const effect = illness === 'evict' ? 'NoExecute' : 'NoSchedule';
      return [
        {
          name: deviceName(index),
          attributes: {
            type: { string: 'gpu' },
            productName: { string: product },
            uuid: { string: uuid },
            driverVersion: { version: '550.54.15' },
            cudaDriverVersion: { version: '12.4.0' },
          },
          capacity: { memory: { value: '81559Mi' } },
          ...(illness !== undefined && { taints: [{ key: `${DRIVER}/xid`, value: '79', effect }] }),
        },
      ];
    });
  }
}
