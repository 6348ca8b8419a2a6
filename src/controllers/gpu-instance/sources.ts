import { keyOf, type KubeObject, type Node } from '../../kube/types.ts';
import { sameJson } from '../../lib/json.ts';
import { type AddKey, type Source, storeSource } from '../../runtime/source.ts';
import type { Priority } from '../../runtime/workqueue.ts';
import type { GpuInstance } from '../../resources/instances/gpu-instance.ts';
import { TENANT_LIMIT_NAME } from '../../resources/tenants/tenant-limit.ts';
import { isNodeReady, isNodeSilent, isOutOfService } from '../../inventory/nodes/node-state.ts';
import { DelayedCall } from '../delayed-call.ts';
import { cameOrWent, changeSource } from '../change-source.ts';
import { instanceNameOfDisk } from '../../resources/pod/disk.ts';
import { EXPORTER_LABEL } from '../../resources/pod/monitor.ts';
import { CLAIM_ANNOTATION, INSTANCE_LABEL, startOf } from '../../resources/pod/owner.ts';
import type { InstanceDeps } from './act/run.ts';
import { templateSource } from './template-source.ts';
import { compareRanks, isPlaceComing } from '../../caches/line-order.ts';

/** Changes of the inventory come in bursts: one look at the waiting line serves them all. */
const BURST_MS = 5;
/** To find out which instances could give way costs more, and may come later. */
const PREEMPTION_MS = 200;

/** Keys of the instances that a pod names, by label or owner, or is marked for: people may take off the other two. */
function instanceKeys({ metadata }: KubeObject): string[] {
  const owners = metadata.ownerReferences?.filter(({ kind }) => kind === 'GPUInstance').map(({ name }) => name) ?? [];
  const label = metadata.labels?.[INSTANCE_LABEL];
  const marked = metadata.annotations?.[CLAIM_ANNOTATION] === undefined ? undefined : startOf({ metadata })?.name;
  const names = new Set([...owners, label, marked].filter((name) => name !== undefined));
  return [...names].map((name) => keyOf({ namespace: metadata.namespace, name }));
}

/** The key of the instance whose disk a PersistentVolumeClaim is or may be, whatever marks it has. */
function keyOfDisk(disk: KubeObject): string[] {
  const name = instanceNameOfDisk(disk);
  return name === undefined ? [] : [keyOf({ namespace: disk.metadata.namespace, name })];
}

/** Wakes the instances in the waiting line that a place has become free for, or could be made free for. */
class LineAlarm {
  readonly #deps: Pick<InstanceDeps, 'inventory' | 'line' | 'tenantLine' | 'clock'>;
  readonly #add: AddKey;
  readonly #waking: DelayedCall;
  readonly #preempting: DelayedCall;
  readonly #stops: (() => void)[];
  #cancelExpiry: (() => void) | undefined;
  #cancelStale: (() => void) | undefined;
  #staleAt = Number.POSITIVE_INFINITY;

  constructor(deps: Pick<InstanceDeps, 'inventory' | 'line' | 'tenantLine' | 'clock'>, add: AddKey) {
    const { inventory, line, clock } = deps;
    this.#deps = deps;
    this.#add = add;
    this.#waking = new DelayedCall(clock, BURST_MS, () => this.#wake());
    this.#preempting = new DelayedCall(clock, PREEMPTION_MS, () => this.#preempt());
    this.#stops = [inventory.onChange(() => this.#look()), line.onChange(() => this.#look())];
    this.#awaitStale();
  }

  stop(): void {
    for (const stop of this.#stops) stop();
    this.#waking.cancel();
    this.#preempting.cancel();
    this.#cancelExpiry?.();
    this.#cancelStale?.();
  }

  #look(): void {
    const { line, tenantLine } = this.#deps;
    if (line.size > 0) this.#waking.request();
    if (line.size > 0 || !tenantLine.isEmpty) this.#preempting.request();
    this.#awaitStale();
  }

  #wake(): void {
    const { inventory, line, clock } = this.#deps;
    for (const key of [...line.ready(), ...line.failFast()]) this.#add(key);
    // The end of a quarantine is no change of an object.
    this.#cancelExpiry?.();
    const wait = Math.max(BURST_MS, inventory.staleAt - clock.now());
    this.#cancelExpiry = Number.isFinite(wait) ? clock.setTimeout(() => this.#wake(), wait) : undefined;
  }

  #preempt(): void {
    const { line, tenantLine } = this.#deps;
    for (const key of [...line.preempting(), ...line.outdated(), ...tenantLine.outdated()]) this.#add(key);
    if (line.hasMore) this.#preempting.request();
    this.#awaitStale();
  }

  /** An instance that does not end, and is waited for, makes no change either. */
  #awaitStale(): void {
    const { line, clock } = this.#deps;
    const { staleAt } = line;
    if (staleAt === this.#staleAt) return;
    this.#staleAt = staleAt;
    this.#cancelStale?.();
    const wait = Math.max(0, staleAt - clock.monotonic());
    this.#cancelStale = Number.isFinite(wait) ? clock.setTimeout(() => this.#look(), wait) : undefined;
  }
}

/** What of a node says whether programs of instances run there. */
function stateOf(node: Node): string {
  return `${isNodeReady(node)} ${isNodeSilent(node)} ${isOutOfService(node)}`;
}

function lineSource(deps: InstanceDeps): Source {
  return {
    synced: Promise.resolve(),
    start(add) {
      for (const instance of deps.stores.instances.by('waiting', 'true')) {
        if (isPlaceComing(instance)) deps.line.expect(keyOf(instance), instance);
        else deps.line.recall(keyOf(instance), instance);
      }
      const alarm = new LineAlarm(deps, add);
      return () => alarm.stop();
    },
  };
}

/** An instance that waits for a place, a change of its spec or its end comes before one with a status to write. */
export function priorityOf({ metadata, status }: GpuInstance): Priority {
  const { claim, observedGeneration = metadata.generation } = status ?? {};
  const isSettled = claim !== undefined && observedGeneration === metadata.generation;
  return isSettled && metadata.deletionTimestamp === undefined ? 'low' : 'normal';
}

/** Everything that makes the controller look at an instance. */
export function instanceSources(deps: InstanceDeps): Source[] {
  const { stores, inventory, unrecorded, networkPolicies } = deps;
  const { instances } = stores;
  const onNode = (node: string): string[] => instances.by('node', node).map(keyOf);
  const inNamespace = (namespace = ''): string[] => instances.by('namespace', namespace).map(keyOf);
  const withReason = (reason: string, namespace?: string): string[] =>
    instances
      .by('reason', reason)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .map(keyOf);
  return [
    unrecorded.source,
    // The waiting line of a new leader is empty. It looks at the instances in the order of the line.
    storeSource(instances, (instance) => [keyOf(instance)], { order: compareRanks, priorityOf }),
    storeSource(stores.pods, instanceKeys, { priorityOf: () => 'low' }),
    {
      synced: Promise.resolve(),
      start: (add) =>
        inventory.onDevices((nodes) => {
          for (const key of [...nodes].flatMap(onNode)) add(key, 'low');
        }),
    },
    storeSource(stores.disks, keyOfDisk),
    changeSource(stores.nodes, ({ key, before, after }) => {
      const flipped = before && after && stateOf(before) !== stateOf(after);
      // A node that comes, or gets other labels, may be able to mount a disk that no other can.
      const isOther = after !== undefined && !sameJson(before?.metadata.labels, after.metadata.labels);
      const waiting = isOther ? [...withReason('DiskNodeGone'), ...deps.line.tiedElsewhere(key)] : [];
      return flipped || !before || !after ? [...onNode(key), ...waiting] : waiting;
    }),
    changeSource(stores.namespaces, (change) => (cameOrWent(change) ? inNamespace(change.key) : [])),
    changeSource(stores.sshKeys, (change) =>
      cameOrWent(change) ? inNamespace((change.after ?? change.before)?.metadata.namespace) : [],
    ),
    templateSource(stores),
    changeSource(stores.quotas, ({ before, after }) => {
      const { name, namespace } = (after ?? before)?.metadata ?? {};
      // The controller's own quota counts objects, which no instance waits for.
      return name === TENANT_LIMIT_NAME ? [] : withReason('QuotaExceeded', namespace);
    }),
    ...(networkPolicies === undefined
      ? []
      : [
          changeSource(networkPolicies, ({ before, after }) =>
            withReason('NetworkOpen', (after ?? before)?.metadata.namespace),
          ),
        ]),
    // What isolation an instance needs depends on the ceilings, and so does its place.
    changeSource(stores.tenantLimits, ({ before, after }) =>
      sameJson(before?.spec, after?.spec)
        ? []
        : withReason('WaitingForCapacity', (after ?? before)?.metadata.namespace),
    ),
    changeSource(stores.pods, (change) => {
      const pod = change.after ?? change.before;
      const isExporter = pod?.metadata.labels?.['app'] === EXPORTER_LABEL.app;
      return isExporter && cameOrWent(change) && pod.spec?.nodeName !== undefined ? onNode(pod.spec.nodeName) : [];
    }),
    // Every start reads these caches, so they must be complete. Their changes reach the instances through the
    // inventory.
    changeSource(stores.pools, () => []),
    changeSource(stores.storageClasses, () => []),
    lineSource(deps),
    deps.tenantLine.source,
  ];
}
