import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { AlreadyExistsError } from '../../src/kube/errors.ts';
import { findObject } from '../../src/kube/client/find-object.ts';
import { findCondition } from '../../src/kube/conditions.ts';
import { GPU_INSTANCES, type GpuInstanceSpec } from '../../src/resources/instances/gpu-instance.ts';
import { randomFrom } from '../support/random.ts';
import type { Accepted } from './accepted.ts';
import { untilAnswered, untilThere } from './ask.ts';

export interface FleetLoadOptions {
  client: KubeClient;
  namespace: string;
  /** The product of the simulated nodes, and how many GPUs each of them has. */
  product: string;
  gpusPerNode: number;
  accepted: Accepted;
  seed: number;
  stopping: AbortSignal;
  deadline: AbortSignal;
}

/** Milliseconds that an interruptible instance, and one that displaces others, is kept: least and most. */
const KEPT = { Interruptible: [20_000, 60_000], OnDemand: [5_000, 20_000] } as const;

/** Interruptible instances of one or two GPUs. */
const SPOTS = 6;

type Type = keyof typeof KEPT;

/** Creates an instance, waits until it runs or, if it is interruptible, for a while, and deletes it, again and again. */
async function worker(options: FleetLoadOptions, name: string, type: Type, random: () => number): Promise<void> {
  const { client, namespace, product, gpusPerNode, accepted, stopping, deadline } = options;
  for (let round = 0; !stopping.aborted; round++) {
    const ref = { namespace, name: `${name}-${round}` };
    const count = type === 'OnDemand' ? gpusPerNode : 1 + Math.floor(random() * 2);
    const spec = { type, gpu: { product, count } } as GpuInstanceSpec;
    const create = () =>
      client.create(GPU_INSTANCES, { metadata: ref, spec }).catch((error: unknown) => {
        // An attempt whose answer was lost made it. Nobody else uses the name.
        if (!(error instanceof AlreadyExistsError)) throw error;
        return client.get(GPU_INSTANCES, ref);
      });
    const { metadata } = await untilAnswered(create, deadline);
    const uid = metadata.uid ?? '';
    accepted.add(uid, `${namespace}/${ref.name}`, { interruptible: type === 'Interruptible' });
    const find = () => untilAnswered(() => findObject(client, GPU_INSTANCES, ref), deadline);
    const runs = async () => {
      const instance = await find();
      return findCondition(instance?.status?.conditions, 'Ready')?.reason === 'Running' ? true : undefined;
    };
    if (type === 'OnDemand') await untilThere(`${ref.name} runs`, runs, deadline);
    const [least, most] = KEPT[type];
    await delay(least + random() * (most - least), undefined, { signal: stopping }).catch(() => undefined);
    accepted.letGo(uid);
    await untilAnswered(() => client.delete(GPU_INSTANCES, ref, { uid }), deadline);
    await untilThere(`${ref.name} is gone`, async () => ((await find()) === undefined ? true : undefined), deadline);
  }
}

/** On simulated nodes, which are full: six have interruptible instances, and one takes whole nodes on demand. */
export async function runFleetLoad(options: FleetLoadOptions): Promise<void> {
  const random = (index: number): (() => number) => randomFrom(options.seed + index);
  const spots = Array.from({ length: SPOTS }, (_, index) =>
    worker(options, `spot-${index}`, 'Interruptible', random(index)),
  );
  await Promise.all([...spots, worker(options, 'node-taker', 'OnDemand', random(SPOTS))]);
}
