import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client/client.ts';
import { ConflictError, NotFoundError } from '../../src/kube/errors.ts';
import { NODES, type Pod, PODS } from '../../src/kube/types.ts';
import type { Accepted } from './accepted.ts';
import { untilAnswered } from './ask.ts';

export type Drained = 'real' | 'simulated';

export interface DrainOptions {
  client: KubeClient;
  /** Where there are instances. */
  namespaces: readonly string[];
  accepted: Accepted;
  /** The faults end, and a node that is drained takes pods again. */
  stopping: AbortSignal;
  /** The run gives up. */
  deadline: AbortSignal;
}

/** The pods of instances that nobody has deleted yet, by name. */
export async function podsOfInstances({
  client,
  namespaces,
}: Pick<DrainOptions, 'client' | 'namespaces'>): Promise<Pod[]> {
  const pods: Pod[] = [];
  for (const namespace of namespaces)
    pods.push(...(await client.list(PODS, { namespace, labelSelector: 'berth.dev/instance' })).items);
  return pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

async function evict({ client, accepted, deadline }: DrainOptions, { metadata }: Pod): Promise<void> {
  const { namespace = '', name, uid = '' } = metadata;
  accepted.disturbed.add(uid);
  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid } },
  };
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/eviction`;
  const isGone = (error: unknown): boolean => error instanceof NotFoundError || error instanceof ConflictError;
  const ask = (): Promise<unknown> =>
    client.raw('POST', path, eviction).catch((error: unknown) => {
      if (!isGone(error)) throw error;
    });
  await untilAnswered(ask, deadline);
}

async function setClosed({ client, deadline }: DrainOptions, name: string, unschedulable: boolean): Promise<void> {
  await untilAnswered(() => client.patch(NODES, { name }, { spec: { unschedulable } }, { type: 'merge' }), deadline);
}

/** Closes a node, evicts its instances as `kubectl drain` does, and opens it again after so many milliseconds. */
export async function drainNode(options: DrainOptions, node: string, closed: number): Promise<void> {
  const { stopping, deadline } = options;
  await setClosed(options, node, true);
  try {
    const pods = await untilAnswered(() => podsOfInstances(options), deadline);
    for (const pod of pods.filter(({ spec }) => spec?.nodeName === node)) await evict(options, pod);
    await delay(closed, undefined, { signal: stopping }).catch(() => undefined);
  } finally {
    await setClosed(options, node, false);
  }
}
