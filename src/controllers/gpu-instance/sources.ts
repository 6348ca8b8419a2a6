import { keyOf, type KubeObject } from '../../kube/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { type Source, storeSource } from '../../runtime/source.ts';
import type { Priority } from '../../runtime/queue/workqueue.ts';
import type { GpuInstance } from '../../resources/gpu-instance.ts';
import { isNodeReady } from '../../inventory/nodes/node-state.ts';
import type { Inventory } from '../../inventory/inventory.ts';
import { cameOrWent, changeSource } from '../change-source.ts';
import { type ControllerStores } from '../stores.ts';
import { INSTANCE_LABEL } from './decide/names.ts';
import { EXPORTER_LABEL } from '../../caches/indexes.ts';
import type { Vanished } from './vanished.ts';
import { compareRanks, type WaitingLine } from './waiting-line.ts';

/** Changes of the inventory come in bursts; one look at the line serves them all. */
const BURST_MS = 5;
/** Who could be asked to give way costs more to find out, and nobody is in such a hurry. */
const PREEMPTION_MS = 200;

/** Key of the instance that a pod or a disk names, by label or owner. */
function instanceKeys({ metadata }: KubeObject): string[] {
  const owners = metadata.ownerReferences?.filter(({ kind }) => kind === 'GPUInstance').map(({ name }) => name) ?? [];
  const label = metadata.labels?.[INSTANCE_LABEL];
  const names = new Set(label === undefined ? owners : [...owners, label]);
  return [...names].map((name) => keyOf({ namespace: metadata.namespace, name }));
}

/** Wakes those in line when a place that would serve them comes free, or could be made free. */
function lineSource(inventory: Inventory, line: WaitingLine, clock: Clock): Source {
  return {
    synced: Promise.resolve(),
    start(add) {
      let cancel: (() => void) | undefined;
      let cancelPreemption: (() => void) | undefined;
      let cancelStale: (() => void) | undefined;
      const look = (): void => {
        cancel = undefined;
        for (const key of [...line.ready(), ...line.impatient()]) add(key);
        cancelStale?.();
        // A quarantine that ends is no change of any object.
        const wait = inventory.staleAt - clock.now();
        cancelStale = Number.isFinite(wait) ? clock.setTimeout(look, Math.max(BURST_MS, wait)) : undefined;
      };
      const preempt = (): void => {
        cancelPreemption = undefined;
        for (const key of line.preempting()) add(key);
      };
      const stop = inventory.onChange(() => {
        if (line.size === 0) return;
        cancel ??= clock.setTimeout(look, BURST_MS);
        cancelPreemption ??= clock.setTimeout(preempt, PREEMPTION_MS);
      });
      return () => {
        stop();
        cancel?.();
        cancelPreemption?.();
        cancelStale?.();
      };
    },
  };
}

/** Whoever waits for a place or a change of the spec comes before what only has to be told in the status. */
export function priorityOf({ metadata, status }: GpuInstance): Priority {
  const isSettled = status?.claim !== undefined && status.observedGeneration === metadata.generation;
  return isSettled && metadata.deletionTimestamp === undefined ? 'low' : 'normal';
}

/** Everything that makes an instance worth a look. */
export function instanceSources(
  stores: ControllerStores,
  { inventory, line, vanished, clock }: { inventory: Inventory; line: WaitingLine; vanished: Vanished; clock: Clock },
): Source[] {
  const { instances } = stores;
  const onNode = (node: string): string[] => instances.by('node', node).map(keyOf);
  const inNamespace = (namespace = ''): string[] => instances.by('namespace', namespace).map(keyOf);
  const withReason = (reason: string): string[] => instances.by('reason', reason).map(keyOf);
  return [
    // Before the source that wakes the key, so that the run finds it.
    changeSource(instances, (change) => vanished.note(change)),
    // A new leader finds nobody in line: the first in line is the first it looks at.
    storeSource(instances, (instance) => [keyOf(instance)], { order: compareRanks, priorityOf }),
    storeSource(stores.pods, instanceKeys, { priorityOf: () => 'low' }),
    storeSource(stores.disks, instanceKeys),
    changeSource(stores.nodes, ({ key, before, after }) => {
      const flipped = before && after && isNodeReady(before) !== isNodeReady(after);
      return flipped || !before || !after ? onNode(key) : [];
    }),
    changeSource(stores.sshKeys, (change) =>
      cameOrWent(change) ? inNamespace((change.after ?? change.before)?.metadata.namespace) : [],
    ),
    changeSource(stores.templates, () => withReason('TemplateNotFound')),
    changeSource(stores.quotas, () => withReason('QuotaExceeded')),
    changeSource(stores.pods, (change) => {
      const pod = change.after ?? change.before;
      const isExporter = pod?.metadata.labels?.['app'] === EXPORTER_LABEL.app;
      return isExporter && cameOrWent(change) && pod.spec?.nodeName !== undefined ? onNode(pod.spec.nodeName) : [];
    }),
    // Read at every start, so complete before the first; their changes reach the instances through the inventory.
    changeSource(stores.pools, () => []),
    changeSource(stores.namespaces, () => []),
    changeSource(stores.storageClasses, () => []),
    lineSource(inventory, line, clock),
  ];
}
