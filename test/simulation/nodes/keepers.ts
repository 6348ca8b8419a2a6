import {
  type KubeObject,
  type Namespace,
  NAMESPACES,
  type Node,
  NODES,
  type Pod,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceQuota,
} from '../../../src/kube/types.ts';
import type { ApiServer } from '../api/server.ts';
import type { Change } from '../api/store.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import type { PodIndex } from './pod-index.ts';

interface Deps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  pods: PodIndex;
}

const FOREGROUND = 'foregroundDeletion';
const ORPHAN = 'orphan';

function withoutFinalizer<T extends KubeObject>(object: T, name: string): T {
  const finalizers = object.metadata.finalizers?.filter((one) => one !== name) ?? [];
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

/** Marks a pod that Kubernetes is about to delete. */
export function disrupted(reason: string, message: string, at: string): (pod: Pod) => Pod {
  const condition = { type: 'DisruptionTarget', status: 'True', reason, message, lastTransitionTime: at };
  return (pod) => {
    const others = pod.status?.conditions?.filter(({ type }) => type !== 'DisruptionTarget') ?? [];
    return { ...pod, status: { ...pod.status, conditions: [...others, condition] } };
  };
}

/** kube-controller-manager, as far as Berth feels it: owners, namespaces, quotas, disks in use, and pods without a node. */
export class Keepers {
  readonly #deps: Deps;
  readonly #ending = new Set<string>();

  constructor(deps: Deps) {
    this.#deps = deps;
    deps.api.follow((change) => this.#see(change));
  }

  #see(change: Change): void {
    const { time, chance, api } = this.#deps;
    const { before, after, kind } = change;
    const object = after ?? before;
    if (object === undefined) return;
    if (kind.type.kind === 'GPUInstance') this.#seeOwner(object, after === undefined);
    if (kind.type.kind === 'Namespace' && after?.metadata.deletionTimestamp !== undefined) this.#end(after);
    if (kind.type.kind === 'ResourceQuota' && after !== undefined) {
      time.afterPlain(chance.between(20, 400), () => this.#count(after));
    }
    if (kind.type.kind === 'Pod') this.#seePod(before, after);
    const isDiskGoing = kind.type.kind === 'PersistentVolumeClaim' && after?.metadata.deletionTimestamp !== undefined;
    if (isDiskGoing) {
      const { namespace = '' } = object.metadata;
      time.afterPlain(chance.between(10, 300), () => api.releaseDisks(namespace));
    }
    if (kind.type.kind === 'Node' && after === undefined) {
      time.afterPlain(chance.between(40_000, 70_000), () => this.#collectPods(object.metadata.name));
    }
  }

  #seePod(before: Pod | undefined, after: Pod | undefined): void {
    const { time, chance, api } = this.#deps;
    const isOver = after === undefined || after.status?.phase === 'Failed' || after.status?.phase === 'Succeeded';
    const { namespace = '' } = (after ?? before)?.metadata ?? {};
    const usesDisk = (after ?? before)?.spec?.volumes?.some(
      ({ persistentVolumeClaim }) => persistentVolumeClaim !== undefined,
    );
    if (isOver && usesDisk === true) time.afterPlain(chance.between(10, 300), () => api.releaseDisks(namespace));
    if (after !== undefined) return;
    // Owners that wait for the last of what they own.
    for (const { uid, name } of before?.metadata.ownerReferences ?? []) {
      if (this.#deps.pods.ownedBy(uid).length === 0) this.#finishOwner(namespace, name, uid);
    }
  }

  #seeOwner(owner: KubeObject, isGone: boolean): void {
    const { time, chance, pods } = this.#deps;
    const { uid = '', namespace = '', name, finalizers = [] } = owner.metadata;
    const isForeground = finalizers.includes(FOREGROUND);
    const isOrphaning = finalizers.includes(ORPHAN);
    if (!isGone && !isForeground && !isOrphaning) return;
    time.afterPlain(chance.between(20, 800), () => {
      for (const pod of pods.ownedBy(uid)) {
        if (isOrphaning) this.#disown(pod, uid);
        else this.#deletePod(pod);
      }
      if (!isGone && (isOrphaning || pods.ownedBy(uid).length === 0)) this.#finishOwner(namespace, name, uid);
    });
  }

  #disown(pod: Pod, uid: string): void {
    this.#deps.api.change(PODS, pod.metadata, (one) => {
      const ownerReferences = one.metadata.ownerReferences?.filter((owner) => owner.uid !== uid) ?? [];
      return { ...one, metadata: { ...one.metadata, ownerReferences } };
    });
  }

  #finishOwner(namespace: string, name: string, uid: string): void {
    const { api } = this.#deps;
    const type = {
      group: 'berth.dev',
      version: 'v1alpha1',
      kind: 'GPUInstance',
      plural: 'gpuinstances',
      namespaced: true,
    };
    api.change(type, { namespace, name }, (one) => {
      if (one.metadata.uid !== uid || one.metadata.deletionTimestamp === undefined) return one;
      return withoutFinalizer(withoutFinalizer(one, FOREGROUND), ORPHAN);
    });
  }

  #deletePod(pod: Pod, gracePeriodSeconds?: number): void {
    const { api } = this.#deps;
    if (api.find(PODS, pod.metadata)?.metadata.uid !== pod.metadata.uid) return;
    api.delete(PODS, pod.metadata, { gracePeriodSeconds });
  }

  #count(quota: ResourceQuota): void {
    const { api } = this.#deps;
    api.change(RESOURCE_QUOTAS, quota.metadata, (one) => {
      const hard = one.spec?.hard ?? {};
      const used = Object.fromEntries(Object.keys(hard).map((name) => [name, one.status?.used?.[name] ?? '0']));
      return { ...one, status: { hard, used } };
    });
  }

  #end({ metadata: { name } }: Namespace): void {
    if (this.#ending.has(name)) return;
    this.#ending.add(name);
    this.#deps.time.afterPlain(this.#deps.chance.between(50, 2_000), () => this.#empty(name));
  }

  /** Deletes everything in a namespace, pods last asked and none by force, until nothing is left. */
  #empty(name: string): void {
    const { api, time } = this.#deps;
    let left = 0;
    for (const collection of api.collections()) {
      const { type } = collection.kind;
      if (!type.namespaced) continue;
      for (const { metadata } of api.list(type, name)) {
        if (metadata.deletionTimestamp === undefined) api.delete(type, metadata);
      }
      left += collection.countIn(name);
    }
    api.releaseDisks(name);
    if (left === 0) {
      this.#ending.delete(name);
      if (api.find(NAMESPACES, { name })?.metadata.deletionTimestamp !== undefined) api.finishNamespace(name);
      return;
    }
    time.afterPlain(3_000, () => this.#empty(name));
  }

  /** Pods whose Node is gone: Kubernetes says that they failed, and deletes them by force. */
  #collectPods(node: string): void {
    const { api, time, pods } = this.#deps;
    if (api.find(NODES, { name: node }) !== undefined) return;
    for (const pod of pods.on(node)) {
      const isOver = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
      if (!isOver) {
        const mark = disrupted('DeletionByPodGC', 'PodGC: node no longer exists', time.seconds);
        api.change(PODS, pod.metadata, (one) => {
          const marked = mark(one);
          return { ...marked, status: { ...marked.status, phase: 'Failed' } };
        });
      }
      this.#deletePod(pod, 0);
    }
  }

  /** Kubernetes has missed the heartbeats of a node. */
  markSilent(name: string): void {
    const { api, time } = this.#deps;
    api.change(NODES, { name }, (node) => withReady(node, 'Unknown', time.seconds));
    for (const pod of this.#deps.pods.on(name)) {
      api.change(PODS, pod.metadata, (one) => ({
        ...one,
        status: {
          ...one.status,
          conditions: (one.status?.conditions ?? []).map((condition) =>
            condition.type === 'Ready' && condition.status === 'True'
              ? { ...condition, status: 'False', lastTransitionTime: time.seconds }
              : condition,
          ),
        },
      }));
    }
  }

  /** The kubelet says that it is not ready. */
  markUnready(name: string): void {
    const { api, time } = this.#deps;
    api.change(NODES, { name }, (node) => withCondition(node, 'False', time.seconds));
  }

  /** Kubernetes keeps others from a node that says that it is not ready. */
  taintUnready(name: string): void {
    this.#deps.api.change(NODES, { name }, (node) => {
      const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
      return ready?.status === 'False' ? withTaint(node, NOT_READY) : node;
    });
  }

  markReady(name: string): void {
    const { api, time } = this.#deps;
    api.change(NODES, { name }, (node) => withReady(node, 'True', time.seconds));
  }

  /** Five minutes later the pods of a silent node are taken away. */
  evict(name: string): void {
    const { api, time } = this.#deps;
    for (const pod of this.#deps.pods.on(name)) {
      if (pod.metadata.deletionTimestamp !== undefined) continue;
      const why = 'Taint manager: deleting due to NoExecute taint';
      api.change(PODS, pod.metadata, disrupted('DeletionByTaintManager', why, time.seconds));
      this.#deletePod(pod);
    }
  }
}

const UNREACHABLE = 'node.kubernetes.io/unreachable';
const NOT_READY = 'node.kubernetes.io/not-ready';

const REASONS = { True: 'KubeletReady', False: 'KubeletNotReady', Unknown: 'NodeStatusUnknown' } as const;

/** The node with another condition, and with the taints that it has. */
function withCondition(node: Node, status: keyof typeof REASONS, at: string): Node {
  const others = node.status?.conditions?.filter(({ type }) => type !== 'Ready') ?? [];
  const known = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (known?.status === status) return node;
  const reason = REASONS[status];
  const ready = { type: 'Ready', status, reason, message: reason, lastTransitionTime: at, lastHeartbeatTime: at };
  return { ...node, status: { ...node.status, conditions: [...others, ready] } };
}

/** The node with the taints of others, and with these. */
function withTaint({ spec, ...node }: Node, own: string | undefined): Node {
  const kept = spec?.taints?.filter(({ key }) => key !== UNREACHABLE && key !== NOT_READY) ?? [];
  const effects = own === undefined ? [] : (['NoSchedule', 'NoExecute'] as const);
  return { ...node, spec: { ...spec, taints: [...kept, ...effects.map((effect) => ({ key: own, effect }))] } } as Node;
}

function withReady(node: Node, status: 'True' | 'Unknown', at: string): Node {
  const next = withCondition(node, status, at);
  return next === node ? node : withTaint(next, status === 'True' ? undefined : UNREACHABLE);
}
