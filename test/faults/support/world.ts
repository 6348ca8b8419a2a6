import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inject } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { NotFoundError } from '../../../src/kube/errors.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { type KubeObject, NAMESPACES, type Pod, PODS, type ResourceType } from '../../../src/kube/types.ts';
import type { RunningControllers } from '../../../src/controllers/start.ts';
import {
  GPU_INSTANCES,
  type GpuInstance,
  type GpuInstanceSpec,
} from '../../../src/resources/instances/gpu-instance.ts';
import { waitFor } from '../../support/wait-for.ts';
import { addFleet, type Fleet, type FleetShape } from './fleet.ts';
import { type Observer, startObserver } from './observer.ts';
import { type ReplicaOptions, startReplica } from './replica.ts';
import { isEven } from './seed.ts';

/** Longer than a cache on a busy machine may be behind. */
const REST_MS = 60_000;

/** A namespace and a fleet of a test's own, with an observer that watches both. */
export interface World extends AsyncDisposable {
  readonly kubeconfig: string;
  readonly client: KubeClient;
  readonly namespace: string;
  readonly fleet: Fleet;
  readonly observer: Observer;
  /** Another replica of the controllers; ended with the world. */
  replica(options?: Partial<Omit<ReplicaOptions, 'kubeconfig'>>): Promise<RunningControllers & AsyncDisposable>;
  create(name: string, spec?: Partial<GpuInstanceSpec>): Promise<GpuInstance>;
  get(name: string): Promise<GpuInstance | undefined>;
  patch(name: string, body: object): Promise<GpuInstance>;
  remove(name: string): Promise<void>;
  pods(): Promise<Pod[]>;
  /** Waits until the Ready condition of an instance has this reason. */
  reached(name: string, reason: string, ms?: number): Promise<GpuInstance>;
  gone(name: string, ms?: number): Promise<void>;
  /** As with pods of an earlier release: nothing of Berth keeps them until it has seen their end. */
  takePodFinalizers(): Promise<void>;
}

export function readyReason(instance: GpuInstance | undefined): string | undefined {
  return instance?.status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
}

/** GPUs of the fleet that the inventory offers one by one. */
export function offeredBy({ inventory }: RunningControllers, { product }: Fleet): number {
  const ones = inventory.offers().filter((offer) => offer.product === product && offer.gpuCount === 1);
  return ones.reduce((sum, { available }) => sum + available, 0);
}

/** What is wrong when nothing moves any more; the caches of a replica may be a moment behind what it wrote. */
export async function violationsAtRest(world: World, replica: RunningControllers): Promise<string[]> {
  const end = performance.now() + REST_MS;
  for (;;) {
    const found = await world.observer.atRest(offeredBy(replica, world.fleet));
    if (found.length === 0 || performance.now() > end) return found;
    await delay(50);
  }
}

export interface WorldOptions extends Partial<FleetShape> {
  /** Another cluster than the worker's. */
  kubeconfig?: string;
}

export async function createWorld(options: WorldOptions = {}): Promise<World> {
  const kubeconfig = options.kubeconfig ?? inject('cluster').kubeconfig;
  const connection = await loadKubeConfig({ kubeconfig });
  const client = createKubeClient(connection, { clock: systemClock() });
  const namespace = `fault-${randomBytes(4).toString('hex')}`;
  await client.create(NAMESPACES, { metadata: { name: namespace } });
  const fleet = await addFleet(client, namespace, { ...options, nodes: options.nodes ?? 2 });
  const observer = await startObserver(client, { namespace, nodes: fleet.nodes });
  const replicas: (RunningControllers & AsyncDisposable)[] = [];

  async function get(name: string): Promise<GpuInstance | undefined> {
    return client.get(GPU_INSTANCES, { namespace, name }).catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
  }

  async function listed(): Promise<GpuInstance[]> {
    return (await client.list(GPU_INSTANCES, { namespace })).items;
  }

  async function release<T extends KubeObject>(type: ResourceType<T>): Promise<void> {
    for (const { metadata } of (await client.list(type, { namespace })).items) {
      await client
        .patch(type, metadata, { metadata: { finalizers: [] } }, { type: 'merge' })
        .catch((error: unknown) => {
          if (!(error instanceof NotFoundError)) throw error;
        });
    }
  }

  async function clear(): Promise<void> {
    for (const { metadata } of await listed()) await client.delete(GPU_INSTANCES, metadata);
    // Without a controller the test must remove the finalizers.
    for (const replica of replicas) await replica.stop();
    await release(GPU_INSTANCES);
    await release(PODS);
  }

  return {
    kubeconfig,
    client,
    namespace,
    fleet,
    observer,
    async replica(more = {}) {
      const replica = await startReplica({ kubeconfig, claimOnPod: isEven(inject('seed')), ...more });
      replicas.push(replica);
      return replica;
    },
    create: (name, spec = {}) => {
      const gpu = { count: 1, ...spec.gpu, product: fleet.product };
      // As a user would write it: defaults are the API server's business.
      return client.create(GPU_INSTANCES, { metadata: { namespace, name }, spec: { ...spec, gpu } as GpuInstanceSpec });
    },
    get,
    patch: (name, body) => client.patch(GPU_INSTANCES, { namespace, name }, body, { type: 'merge' }),
    remove: (name) => client.delete(GPU_INSTANCES, { namespace, name }),
    pods: async () => (await client.list(PODS, { namespace })).items,
    takePodFinalizers: () => release(PODS),
    reached: (name, reason, ms) =>
      waitFor(
        `${name} to be ${reason}`,
        async () => {
          const instance = await get(name);
          return readyReason(instance) === reason ? instance : undefined;
        },
        ms,
      ),
    async gone(name, ms) {
      await waitFor(`${name} to be gone`, async () => (await get(name)) === undefined, ms);
    },
    async [Symbol.asyncDispose]() {
      await clear();
      await observer[Symbol.asyncDispose]();
      await client.delete(NAMESPACES, { name: namespace });
      await fleet[Symbol.asyncDispose]();
      await client.close();
    },
  };
}
