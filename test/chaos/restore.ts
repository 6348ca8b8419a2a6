import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { findObject } from '../../src/kube/client/find-object.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import {
  type KubeObject,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type ResourceType,
} from '../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../src/resources/instances/gpu-instance.ts';
import { REAL_GPU } from '../../tools/cluster/built/real-node.ts';
import { INSTANCE_IMAGE } from '../e2e/support/images.ts';
import type { Accepted } from './accepted.ts';
import { type Kubectl, kubectl, untilAnswered, untilThere } from './ask.ts';

export const ORDERS = ['the claim first', 'the instance first', 'both at once'] as const;
export const POLICIES = ['Delete', 'Retain'] as const;

export interface Restore {
  policy: (typeof POLICIES)[number];
  order: (typeof ORDERS)[number];
}

export interface RestoreOptions extends Kubectl {
  client: KubeClient;
  namespace: string;
  accepted: Accepted;
  /** The run gives up. */
  deadline: AbortSignal;
}

/** What Kubernetes writes on a claim that is bound. A claim with it is never bound again. */
const BOUND = 'pv.kubernetes.io/';

/** An object as a backup keeps it, in YAML: without what the API server gives, and what ties a claim to its volume. */
export function saved({ kind, group, version }: ResourceType, object: KubeObject): string {
  const { metadata, ...rest } = object as KubeObject & { status?: unknown };
  const { name, namespace, labels, annotations = {}, finalizers } = metadata;
  const kept = Object.fromEntries(Object.entries(annotations).filter(([key]) => !key.startsWith(BOUND)));
  const apiVersion = group === '' ? version : `${group}/${version}`;
  return stringify({
    ...rest,
    status: undefined,
    apiVersion,
    kind,
    metadata: { name, namespace, labels, annotations: kept, finalizers },
  });
}

/** Rents one instance with a disk, saves and deletes it, brings it back, and looks for its bytes. */
class Rented {
  readonly #options: RestoreOptions;
  readonly #name: string;

  constructor(options: RestoreOptions, name: string) {
    this.#options = options;
    this.#name = name;
  }

  get #ref() {
    return { namespace: this.#options.namespace, name: this.#name };
  }

  get #disk() {
    return { namespace: this.#options.namespace, name: `${this.#name}-disk` };
  }

  #find<T extends KubeObject>(
    type: ResourceType<T>,
    ref: { namespace?: string; name: string },
  ): Promise<T | undefined> {
    const { client, deadline } = this.#options;
    return untilAnswered(() => findObject(client, type, ref), deadline);
  }

  #untilGone(type: ResourceType, ref: { namespace?: string; name: string }): Promise<true> {
    const look = async () => ((await this.#find(type, ref)) === undefined ? true : undefined);
    return untilThere(`${ref.name} is gone`, look, this.#options.deadline);
  }

  /** Applies manifests with kubectl, as an administrator does. */
  async apply(...manifests: string[]): Promise<void> {
    const input = manifests.join('---\n');
    await kubectl(this.#options, { args: ['apply', '-f', '-'], input }, this.#options.deadline);
  }

  async accept(): Promise<void> {
    const { accepted, deadline } = this.#options;
    const { metadata } = await untilThere(this.#name, () => this.#find(GPU_INSTANCES, this.#ref), deadline);
    accepted.add(metadata.uid ?? '', `${this.#ref.namespace}/${this.#name}`);
  }

  async reached(reason: string): Promise<GpuInstance> {
    const look = async () => {
      const instance = await this.#find(GPU_INSTANCES, this.#ref);
      return findCondition(instance?.status?.conditions, 'Ready')?.reason === reason ? instance : undefined;
    };
    return untilThere(`${this.#name} is ${reason}`, look, this.#options.deadline);
  }

  /** Runs a script in the instance; other faults may end its pod meanwhile. */
  async inside(script: string): Promise<string> {
    const { deadline } = this.#options;
    for (;;) {
      const { status } = await this.reached('Running');
      const args = ['exec', '-n', this.#ref.namespace, status?.podName ?? '', '-c', 'main', '--', 'sh', '-c', script];
      const soon = AbortSignal.any([deadline, AbortSignal.timeout(3000)]);
      const output = await kubectl(this.#options, { args }, soon).catch(() => undefined);
      if (output !== undefined) return output;
      deadline.throwIfAborted();
    }
  }

  /** The instance and its claim in YAML, once it says that it has a disk. */
  async save(): Promise<{ instance: string; claim: string; volume: string }> {
    const look = async () => {
      const instance = await this.#find(GPU_INSTANCES, this.#ref);
      return instance?.metadata.annotations?.['berth.dev/disk'] === undefined ? undefined : instance;
    };
    const instance = await untilThere(`${this.#name} names its disk`, look, this.#options.deadline);
    const claim = await untilAnswered(
      () => this.#options.client.get(PERSISTENT_VOLUME_CLAIMS, this.#disk),
      this.#options.deadline,
    );
    return {
      instance: saved(GPU_INSTANCES, instance),
      claim: saved(PERSISTENT_VOLUME_CLAIMS, claim),
      volume: claim.spec?.volumeName ?? '',
    };
  }

  async keepVolume(name: string): Promise<void> {
    const { client, deadline } = this.#options;
    const keep = { spec: { persistentVolumeReclaimPolicy: 'Retain' } };
    await untilAnswered(() => client.patch(PERSISTENT_VOLUMES, { name }, keep, { type: 'merge' }), deadline);
  }

  /** Frees the volume for the claim of this name, and for no other. */
  async freeVolume(name: string): Promise<void> {
    const { client, deadline } = this.#options;
    const released = async () =>
      (await this.#find(PERSISTENT_VOLUMES, { name }))?.status?.phase === 'Released' ? true : undefined;
    await untilThere(`volume ${name} is released`, released, deadline);
    const free = { spec: { claimRef: { uid: null, resourceVersion: null } } };
    await untilAnswered(() => client.patch(PERSISTENT_VOLUMES, { name }, free, { type: 'merge' }), deadline);
  }

  /** Deletes the instance and, whatever its policy says, the claim. */
  async remove(): Promise<void> {
    const { client, accepted, deadline } = this.#options;
    const instance = await this.#find(GPU_INSTANCES, this.#ref);
    accepted.letGo(instance?.metadata.uid ?? '');
    await untilAnswered(() => client.delete(GPU_INSTANCES, this.#ref), deadline);
    await this.#untilGone(GPU_INSTANCES, this.#ref);
    await untilAnswered(() => client.delete(PERSISTENT_VOLUME_CLAIMS, this.#disk), deadline);
    await this.#untilGone(PERSISTENT_VOLUME_CLAIMS, this.#disk);
  }

  async removeVolume(name: string): Promise<void> {
    const { client, deadline } = this.#options;
    await untilAnswered(() => client.delete(PERSISTENT_VOLUMES, { name }), deadline);
  }
}

/**
 * A backup and a restore of one instance with a disk, as docs/run/install.md has them, while everything else goes on.
 *
 * @param pause milliseconds between the two halves of what is brought back
 * @returns what is wrong with it
 */
export async function restore(
  options: RestoreOptions,
  name: string,
  { policy, order, pause }: Restore & { pause: number },
): Promise<string[]> {
  const rented = new Rented(options, name);
  const spec = { gpu: { product: REAL_GPU.product, count: 1 }, image: INSTANCE_IMAGE, diskGb: 1, diskPolicy: policy };
  const { namespace } = options;
  await rented.apply(saved(GPU_INSTANCES, { metadata: { namespace, name }, spec } as KubeObject));
  await rented.accept();
  await rented.inside(`echo ${name} >/workspace/bytes; sync`);
  const { instance, claim, volume } = await rented.save();
  await rented.keepVolume(volume);
  await rented.remove();
  await rented.freeVolume(volume);
  if (order === 'both at once') await Promise.all([rented.apply(instance), rented.apply(claim)]);
  else {
    const [first, second] = order === 'the claim first' ? [claim, instance] : [instance, claim];
    await rented.apply(first);
    await delay(pause);
    await rented.apply(second);
  }
  await rented.reached('Running');
  await rented.accept();
  const bytes = await rented.inside('cat /workspace/bytes || true');
  await rented.remove();
  await rented.removeVolume(volume);
  const title = `${name} (diskPolicy ${policy}, ${order})`;
  return bytes === `${name}\n` ? [] : [`${title} came back with ${JSON.stringify(bytes)} in place of its bytes`];
}
