import { pino } from 'pino';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { Informer } from '../../../src/kube/watch/reflector.ts';
import {
  keyOf,
  type KubeObject,
  type Node,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  type Pod,
  PODS,
  type ResourceType,
} from '../../../src/kube/types.ts';
import { GPU_INSTANCES, type GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';

// The observer knows the product from the API server alone, by label, owner and status as documented.
const UID_LABEL = 'berth.dev/instance-uid';
const GPU = 'nvidia.com/gpu';

/** Watches the API server beside the controllers, and notes when an invariant does not hold. */
export interface Observer extends AsyncDisposable {
  readonly violations: readonly string[];
  /**
   * Reads everything again and returns all violations, those of a state at rest too. For when nothing changes any more.
   */
  atRest(offered: number): Promise<string[]>;
}

function isLive({ status }: Pod): boolean {
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

function gpusOf(pod: Pod): number {
  const containers = pod.spec?.containers ?? [];
  return containers.reduce((sum, { resources }) => sum + Number(resources?.requests?.[GPU] ?? 0), 0);
}

function instanceOf({ metadata }: KubeObject): string | undefined {
  return metadata.labels?.[UID_LABEL] ?? metadata.ownerReferences?.find(({ kind }) => kind === 'GPUInstance')?.uid;
}

function sumBy<T>(items: Iterable<T>, key: (item: T) => string | undefined, amount: (item: T) => number) {
  const sums = new Map<string, number>();
  for (const item of items) {
    const name = key(item);
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + amount(item));
  }
  return sums;
}

function claimsOf(all: Iterable<GpuInstance>): Map<string, number> {
  return sumBy(
    all,
    ({ status }) => status?.claim?.node,
    ({ status }) => status?.claim?.gpuCount ?? 0,
  );
}

function heldBy(all: Iterable<Pod>): Map<string, number> {
  return sumBy([...all].filter(isLive), ({ spec }) => spec?.nodeName, gpusOf);
}

/** Never more GPUs claimed, or held by pods, than a node has. */
function overfull(what: string, sums: Map<string, number>, capacity: (node: string) => number | undefined): string[] {
  return [...sums]
    .filter(([node, sum]) => sum > (capacity(node) ?? Number.POSITIVE_INFINITY))
    .map(([node, sum]) => `${sum} GPUs ${what} on ${node}, which has ${capacity(node)}`);
}

/** At most one live pod per instance. */
function doubled(pods: Iterable<Pod>): string[] {
  const counts = sumBy([...pods].filter(isLive), instanceOf, () => 1);
  return [...counts].filter(([, count]) => count > 1).map(([uid, count]) => `${count} live pods of instance ${uid}`);
}

interface ObserverOptions {
  namespace: string;
  nodes: readonly string[];
  /** GPUs of every node, where a node may for a while not say so; else what it says. */
  gpusPerNode?: number;
}

export async function startObserver(client: KubeClient, options: ObserverOptions) {
  const { namespace, gpusPerNode } = options;
  const ours = new Set(options.nodes);
  const clock = systemClock();
  const log = pino({ level: 'silent' });
  const ended = new AbortController();
  const seen = new Set<string>();
  const running: Promise<void>[] = [];

  async function follow<T extends KubeObject>(type: ResourceType<T>, where?: string) {
    const scope = where === undefined ? {} : { namespace: where };
    const informer = new Informer({ client, type, ...scope, clock, random: Math.random, log });
    running.push(informer.run(ended.signal));
    await informer.store.synced;
    return informer.store;
  }

  const nodes = await follow<Node>(NODES);
  const capacity = (node: string): number | undefined => {
    const known = nodes.get(node)?.status?.allocatable?.[GPU];
    return known === undefined ? undefined : (gpusPerNode ?? Number(known));
  };
  const pods = await follow<Pod>(PODS, namespace);
  const instances = await follow<GpuInstance>(GPU_INSTANCES, namespace);

  // Each check looks at one kind alone: only changes of one kind come in the order in which they were made.
  const note = (found: string[]): void => {
    for (const violation of found) seen.add(violation);
  };
  pods.onChange(() => note([...doubled(pods.values()), ...overfull('held', heldBy(pods.values()), capacity)]));
  instances.onChange(() => note(overfull('claimed', claimsOf(instances.values()), capacity)));

  async function atRest(offered: number): Promise<string[]> {
    const { items: livePods } = await client.list(PODS);
    const { items: liveInstances } = await client.list(GPU_INSTANCES, { namespace });
    const { items: disks } = await client.list(PERSISTENT_VOLUME_CLAIMS, { namespace });
    const uids = new Set(liveInstances.map(({ metadata }) => metadata.uid));
    const orphans = [...livePods.filter(({ metadata }) => metadata.namespace === namespace), ...disks]
      .filter((object) => instanceOf(object) !== undefined && !uids.has(instanceOf(object) ?? ''))
      .map((object) => `${keyOf(object)} belongs to an instance that is gone`);
    const unowned = livePods
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.ownerReferences === undefined)
      .map((pod) => `pod ${keyOf(pod)} has no owner`);
    const claimless = livePods
      .filter(({ metadata }) => metadata.namespace === namespace)
      .filter((pod) => {
        const owner = liveInstances.find(({ metadata }) => metadata.uid === instanceOf(pod));
        return owner !== undefined && owner.status?.claim?.node !== pod.spec?.nodeName;
      })
      .map((pod) => `pod ${keyOf(pod)} runs where its instance claims nothing`);
    const claims = claimsOf(liveInstances);
    const held = heldBy(livePods);
    const free = [...ours].reduce(
      (sum, node) => sum + (capacity(node) ?? 0) - Math.max(claims.get(node) ?? 0, held.get(node) ?? 0),
      0,
    );
    const offers = offered === free ? [] : [`${offered} GPUs are offered and ${free} are free`];
    return [
      ...seen,
      ...doubled(livePods),
      ...overfull('claimed', claims, capacity),
      ...orphans,
      ...unowned,
      ...claimless,
      ...offers,
    ];
  }

  const observer: Observer = {
    get violations() {
      return [...seen];
    },
    atRest,
    async [Symbol.asyncDispose]() {
      ended.abort();
      await Promise.all(running);
    },
  };
  return observer;
}
