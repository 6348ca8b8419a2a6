import {
  type KubeObject,
  type Namespace,
  NAMESPACES,
  type Node,
  NODES,
  type ObjectRef,
  type OwnerReference,
  type Pod,
  PODS,
  RESOURCE_QUOTAS,
  type ResourceQuota,
  type ResourceType,
} from '../../../src/kube/types.ts';
import { GPU_INSTANCES } from '../../../src/resources/instances/gpu-instance.ts';
import { sameJson } from '../../../src/lib/json.ts';
import type { ApiServer } from '../api/server.ts';
import type { Change } from '../api/store.ts';
import type { Chance } from '../clock/chance.ts';
import { takenByPod } from '../api/quotas.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import type { PodIndex } from './pod-index.ts';

interface Deps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  pods: PodIndex;
}

/** How often a quota controller counts all. */
const RECOUNT_MS = 300_000;
const FOREGROUND = 'foregroundDeletion';
const ORPHAN = 'orphan';

function withoutFinalizer<T extends KubeObject>(object: T, name: string): T {
  const finalizers = object.metadata.finalizers?.filter((one) => one !== name) ?? [];
  return { ...object, metadata: { ...object.metadata, finalizers } };
}

function isHolding({ metadata }: Pod, uid: string): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.blockOwnerDeletion === true) === true;
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
    if (kind.type.kind === 'ResourceQuota') this.#seeQuota(before, after);
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
    if (isOver && this.#countsQuotas(namespace))
      time.afterPlain(chance.between(20, 2_000), () => this.#countAll(namespace));
    if (isOver && usesDisk === true) time.afterPlain(chance.between(10, 300), () => api.releaseDisks(namespace));
    if (after !== undefined && this.#isStray(after, before)) {
      time.afterPlain(chance.between(20, 800), () => this.#collect(after.metadata));
    }
    // Owners that wait for the last of what they own.
    for (const { uid, name } of before?.metadata.ownerReferences ?? []) {
      if (!this.#isHeld(uid)) this.#finishOwner(namespace, name, uid);
    }
  }

  /** Whether the pod is new, or has other owners than before, and one of them is not there. */
  #isStray({ metadata }: Pod, before: Pod | undefined): boolean {
    const { ownerReferences = [], namespace } = metadata;
    if (sameJson(ownerReferences, before?.metadata.ownerReferences ?? [])) return false;
    return ownerReferences.some((owner) => !this.#isSolid(namespace, owner));
  }

  /** Whether an owner is there, and does not wait for what it owns. No other kind ends in a world. */
  #isSolid(namespace: string | undefined, { kind, name, uid }: OwnerReference): boolean {
    if (kind !== GPU_INSTANCES.kind) return true;
    const { metadata } = this.#deps.api.find(GPU_INSTANCES, { namespace, name }) ?? {};
    return metadata?.uid === uid && metadata.finalizers?.includes(FOREGROUND) !== true;
  }

  /** Whether an owner that is deleted in the foreground waits for a pod. */
  #isHeld(uid: string): boolean {
    return this.#deps.pods.ownedBy(uid).some((pod) => isHolding(pod, uid));
  }

  /** Deletes a pod that no owner is left of; where one is, takes the others off. */
  #collect(ref: ObjectRef): void {
    const { api } = this.#deps;
    const pod = api.find(PODS, ref);
    const { namespace, ownerReferences = [] } = pod?.metadata ?? {};
    if (pod === undefined || ownerReferences.length === 0) return;
    const solid = ownerReferences.filter((owner) => this.#isSolid(namespace, owner));
    if (solid.length === 0) this.#deletePod(pod);
    else api.change(PODS, ref, (one) => ({ ...one, metadata: { ...one.metadata, ownerReferences: solid } }));
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
        else if (isGone || isHolding(pod, uid)) this.#collect(pod.metadata);
      }
      if (!isGone && (isOrphaning || !this.#isHeld(uid))) this.#finishOwner(namespace, name, uid);
    });
  }

  #disown(pod: Pod, uid: string): void {
    this.#deps.api.change(PODS, pod.metadata, (one) => {
      const ownerReferences = one.metadata.ownerReferences?.filter((owner) => owner.uid !== uid) ?? [];
      return { ...one, metadata: { ...one.metadata, ownerReferences } };
    });
  }

  #finishOwner(namespace: string, name: string, uid: string): void {
    this.#deps.api.change(GPU_INSTANCES, { namespace, name }, (one) => {
      if (one.metadata.uid !== uid || one.metadata.deletionTimestamp === undefined) return one;
      return withoutFinalizer(withoutFinalizer(one, FOREGROUND), ORPHAN);
    });
  }

  #deletePod(pod: Pod, gracePeriodSeconds?: number): void {
    const { api } = this.#deps;
    if (api.find(PODS, pod.metadata)?.metadata.uid !== pod.metadata.uid) return;
    api.delete(PODS, pod.metadata, { gracePeriodSeconds });
  }

  /** What it limits is counted soon, and all that it counts is counted anew from time to time. */
  #seeQuota(before: ResourceQuota | undefined, after: ResourceQuota | undefined): void {
    const { time, chance } = this.#deps;
    if (after === undefined || sameJson(before?.spec, after.spec)) return;
    time.afterPlain(chance.between(20, 400), () => this.#count(after));
    if (before === undefined) this.#recount(after);
  }

  #recount(quota: ResourceQuota): void {
    const { time, api } = this.#deps;
    time.afterPlain(RECOUNT_MS, () => {
      if (api.find(RESOURCE_QUOTAS, quota.metadata)?.metadata.uid !== quota.metadata.uid) return;
      this.#count(quota);
      this.#recount(quota);
    });
  }

  #countsQuotas(namespace: string): boolean {
    return this.#deps.api.collection(RESOURCE_QUOTAS).countIn(namespace) > 0;
  }

  #countAll(namespace: string): void {
    for (const quota of this.#deps.api.list<ResourceQuota>(RESOURCE_QUOTAS, namespace)) this.#count(quota);
  }

  #count(quota: ResourceQuota): void {
    const { api, time } = this.#deps;
    const { namespace } = quota.metadata;
    const taken = api.list<Pod>(PODS, namespace).map((pod) => takenByPod(pod, time.wall));
    api.change<ResourceQuota>(RESOURCE_QUOTAS, quota.metadata, (one) => {
      const hard = one.spec?.hard ?? {};
      const sumOf = (name: string): number => taken.reduce((sum, of) => sum + (of[name] ?? 0), 0);
      const used = Object.fromEntries(Object.keys(hard).map((name) => [name, String(sumOf(name))]));
      return { ...one, status: { hard, used } };
    });
  }

  #end({ metadata: { name } }: Namespace): void {
    if (this.#ending.has(name)) return;
    this.#ending.add(name);
    this.#deps.time.afterPlain(this.#deps.chance.between(50, 2_000), () => this.#empty(name));
  }

  /** Deletes everything in a namespace, and none by force, until nothing is left: first the pods, and then what else is there. */
  #empty(name: string): void {
    const { api, time } = this.#deps;
    this.#deleteAll(PODS, name);
    const others = [...api.collections()].map(({ kind }) => kind.type).filter(({ namespaced }) => namespaced);
    if (api.list(PODS, name).length === 0) for (const type of others) this.#deleteAll(type, name);
    api.releaseDisks(name);
    if (others.some((type) => api.collection(type).countIn(name) > 0)) {
      time.afterPlain(3_000, () => this.#empty(name));
      return;
    }
    this.#ending.delete(name);
    if (api.find(NAMESPACES, { name })?.metadata.deletionTimestamp !== undefined) api.finishNamespace(name);
  }

  #deleteAll(type: ResourceType, namespace: string): void {
    const { api } = this.#deps;
    for (const { metadata } of api.list(type, namespace))
      if (metadata.deletionTimestamp === undefined) api.delete(type, metadata);
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
