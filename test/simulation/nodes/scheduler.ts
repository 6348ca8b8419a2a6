import { type Node, NODES, PERSISTENT_VOLUME_CLAIMS, type Pod, PODS } from '../../../src/kube/types.ts';
import { sameJson } from '../../../src/lib/json.ts';
import { parseQuantity } from '../../../src/kube/quantity.ts';
import type { ApiServer } from '../api/server.ts';
import type { Chance } from '../clock/chance.ts';
import type { VirtualTime } from '../clock/virtual-time.ts';
import { type Amounts, requestsOf } from './amounts.ts';
import { ClaimBinding } from './claim-binding.ts';
import type { Devices } from './devices.ts';
import type { PodIndex } from './pod-index.ts';
import type { Volumes } from './volumes.ts';

interface Deps {
  api: ApiServer;
  time: VirtualTime;
  chance: Chance;
  pods: PodIndex;
  volumes: Volumes;
  devices: Devices;
}

/** Kinds whose objects may be what any pod waits for. */
const AWAITED: ReadonlySet<string> = new Set([
  'PersistentVolumeClaim',
  'ResourceClaim',
  'ResourceSlice',
  'DeviceTaintRule',
]);

/** However little happens, a pod that fits nowhere is tried again, as kube-scheduler does (podMaxInUnschedulablePodsDuration). */
const RETRY_MS = 300_000;

function isEnded({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** The names that a pod's affinity allows; undefined for all. */
function namesOf({ spec }: Pod): readonly string[] | undefined {
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  return terms?.[0]?.matchFields?.find(({ key }) => key === 'metadata.name')?.values;
}

function isTolerated({ spec }: Pod, node: Node): boolean {
  const taints = node.spec?.taints?.filter(({ effect }) => effect !== 'PreferNoSchedule') ?? [];
  return taints.every((taint) =>
    spec?.tolerations?.some(
      ({ key, operator, value = '', effect }) =>
        (key === undefined || key === taint.key) &&
        (effect === undefined || effect === taint.effect) &&
        (operator === 'Exists' || value === (taint.value ?? '')),
    ),
  );
}

/** Whether a node is as it was to a pod that looks for a place. */
function isSameTo(before: Node | undefined, after: Node | undefined): boolean {
  if (before === undefined || after === undefined) return false;
  return (
    sameJson(before.spec, after.spec) &&
    sameJson(before.status?.allocatable, after.status?.allocatable) &&
    sameJson(before.metadata.labels, after.metadata.labels)
  );
}

/** kube-scheduler: one pod after the other, each onto a node that has what it asks for. */
export class Scheduler {
  readonly #deps: Deps;
  /** With the names of the nodes that each may have; undefined for all. */
  readonly #waiting = new Map<string, { pod: Pod; names: readonly string[] | undefined }>();
  /** When a pod is tried next. */
  readonly #due = new Map<string, number>();
  readonly #binding: ClaimBinding;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#binding = new ClaimBinding(deps);
  }

  /** Schedules from now on. */
  start(): void {
    this.#deps.api.follow(({ kind, before, after }) => {
      if (kind.type.kind === 'Pod') this.#seePod(before, after);
      // Whatever becomes free, or appears, may be what a pod waits for.
      else if (kind.type.kind === 'Node') {
        if (!isSameTo(before, after)) this.#retry(50, (after ?? before)?.metadata.name);
      } else if (AWAITED.has(kind.type.kind)) this.#retry(50);
    });
  }

  #seePod(before: Pod | undefined, after: Pod | undefined): void {
    const { uid = '' } = (after ?? before)?.metadata ?? {};
    if (after === undefined || after.spec?.nodeName !== undefined || after.metadata.deletionTimestamp !== undefined) {
      this.#waiting.delete(uid);
      const isFreed = after === undefined || isEnded(after);
      if (isFreed) this.#retry(20, (after ?? before)?.spec?.nodeName);
      return;
    }
    if (this.#binding.has(uid)) return;
    const isNew = !this.#waiting.has(uid);
    this.#waiting.set(uid, { pod: after, names: namesOf(after) });
    if (isNew) this.#queue(uid, this.#deps.chance.between(5, 60));
  }

  /** Tries those again that a change may help, if it is one of a node only those that may run there. */
  #retry(ms: number, node?: string): void {
    for (const [uid, { names }] of this.#waiting)
      if (node === undefined || (names?.includes(node) ?? true)) this.#queue(uid, ms);
  }

  #queue(uid: string, ms: number): void {
    const { time } = this.#deps;
    const due = time.elapsed + ms;
    if ((this.#due.get(uid) ?? Infinity) <= due) return;
    this.#due.set(uid, due);
    time.afterPlain(ms, () => {
      if (this.#due.get(uid) !== due) return;
      this.#due.delete(uid);
      const one = this.#waiting.get(uid);
      if (one !== undefined) this.#schedule(one.pod);
    });
  }

  #schedule(pod: Pod): void {
    const { api } = this.#deps;
    const names = namesOf(pod);
    const nodes = names === undefined ? api.list(NODES) : names.flatMap((name) => api.find(NODES, { name }) ?? []);
    const refusals: string[] = [];
    for (const node of nodes) {
      const refusal = this.#refusal(pod, node);
      if (refusal === undefined) {
        this.#bind(pod, node);
        return;
      }
      refusals.push(refusal);
    }
    const said = refusals[0] ?? "node(s) didn't match Pod's node affinity/selector";
    this.#refuse(pod, `0/${api.collection(NODES).objects.size} nodes are available: 1 ${said}.`);
    this.#queue(pod.metadata.uid ?? '', RETRY_MS);
  }

  #refusal(pod: Pod, node: Node): string | undefined {
    const { api, pods, volumes, devices } = this.#deps;
    if (node.spec?.unschedulable === true) return 'node(s) were unschedulable';
    if (!isTolerated(pod, node)) return 'node(s) had untolerated taint(s)';
    for (const { persistentVolumeClaim } of pod.spec?.volumes ?? []) {
      const name = persistentVolumeClaim?.claimName;
      if (name === undefined) continue;
      const claim = api.find(PERSISTENT_VOLUME_CLAIMS, { namespace: pod.metadata.namespace, name });
      if (claim === undefined) return `persistentvolumeclaim "${name}" not found`;
      if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
      const tied = volumes.nodeOf(claim);
      if (tied !== undefined && tied !== node.metadata.name) return 'node(s) had volume node affinity conflict';
    }
    const used: Amounts = {};
    for (const other of pods.on(node.metadata.name)) {
      if (isEnded(other)) continue;
      for (const [name, amount] of Object.entries(requestsOf(other))) used[name] = (used[name] ?? 0) + amount;
    }
    const resourceName = this.#fromSlices(pod, node);
    for (const [name, amount] of Object.entries(requestsOf(pod))) {
      if (name === resourceName) {
        if (devices.free(node.metadata.name).length < amount) return 'cannot allocate all claims';
        continue;
      }
      const has = parseQuantity(node.status?.allocatable?.[name] ?? '0') ?? 0;
      if ((used[name] ?? 0) + amount > has) return name === 'pods' ? 'Too many pods' : `Insufficient ${name}`;
    }
    return undefined;
  }

  #refuse(pod: Pod, message: string): void {
    this.#say(pod, { status: 'False', reason: 'Unschedulable', message });
  }

  /** The resource of a pod that a node has in slices: a device plugin that counts it comes first. */
  #fromSlices(pod: Pod, node: Node): string | undefined {
    const { devices } = this.#deps;
    return Object.keys(requestsOf(pod)).find(
      (name) => Number(node.status?.allocatable?.[name] ?? 0) === 0 && devices.classOf(name) !== undefined,
    );
  }

  #bind(pod: Pod, node: Node): void {
    const { api, volumes, devices } = this.#deps;
    const { uid = '' } = pod.metadata;
    this.#waiting.delete(uid);
    for (const { persistentVolumeClaim } of pod.spec?.volumes ?? []) {
      const name = persistentVolumeClaim?.claimName;
      if (name === undefined) continue;
      const claim = api.find(PERSISTENT_VOLUME_CLAIMS, { namespace: pod.metadata.namespace, name });
      if (claim !== undefined && claim.spec?.volumeName === undefined) volumes.bind(claim, node.metadata.name);
    }
    const { name } = node.metadata;
    const resourceName = this.#fromSlices(pod, node);
    if (resourceName === undefined) {
      this.#say(pod, { status: 'True' }, name);
      return;
    }
    const some = devices.free(name).slice(0, requestsOf(pod)[resourceName]);
    this.#binding.begin({ pod, node: name, devices: some, resourceName }, (isDone) => {
      if (isDone) this.#say(pod, { status: 'True' }, name);
      else this.#seePod(undefined, api.find(PODS, pod.metadata));
    });
  }

  #say(pod: Pod, condition: { status: 'True' | 'False'; reason?: string; message?: string }, nodeName?: string): void {
    const { api, time } = this.#deps;
    api.change(PODS, pod.metadata, (one) => {
      if (one.metadata.uid !== pod.metadata.uid || one.metadata.deletionTimestamp !== undefined) return one;
      const before = one.status?.conditions ?? [];
      const known = before.find(({ type }) => type === 'PodScheduled');
      const isKnown = known?.reason === condition.reason && known?.message === condition.message;
      if (nodeName === undefined && isKnown && known?.status === condition.status) return one;
      const lastTransitionTime = known?.status === condition.status ? known.lastTransitionTime : time.seconds;
      const own = {
        type: 'PodScheduled',
        ...condition,
        ...(lastTransitionTime !== undefined && { lastTransitionTime }),
      };
      const conditions = [...before.filter(({ type }) => type !== 'PodScheduled'), own];
      const spec = nodeName === undefined || one.spec === undefined ? {} : { spec: { ...one.spec, nodeName } };
      return { ...one, ...spec, status: { ...one.status, conditions } };
    });
  }
}
