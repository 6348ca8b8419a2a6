import { keyOf, type PersistentVolumeClaim, type Pod } from '../../../kube/types.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { numericId } from '../../../resources/ids.ts';
import { isOfTemplate, namesTemplate, snapshotOf } from '../../../resources/instance-template.ts';
import { dcgmExporterOn } from '../../../caches/dcgm.ts';
import { mayRun } from '../../../inventory/nodes/pod-end.ts';
import { instanceIndexKey } from '../../../caches/indexes.ts';
import { fateOf, findTemplate } from '../../../caches/templates.ts';
import type { InstanceDeps } from './run.ts';
import { firstPodOf, isBeforeFirstStart, withClaimOf } from '../../../resources/pod/claim-on-pod.ts';
import { diskNameOf, isDiskOf, sizeGbOf } from '../../../resources/pod/disk.ts';
import { wishFor } from '../decide/place.ts';
import { looksAtOffers, offeredOf } from '../decide/rented.ts';
import { isPodOf } from '../decide/pod/pod-facts.ts';
import { withDiskBack } from '../decide/lost-disk.ts';
import type { Observed } from '../decide/observed.ts';
import { withSilences } from '../decide/silences.ts';
import { settingsOf } from '../decide/settings.ts';

/** What is observed, and the instance as the API server has it: of a claim that is on the pod alone it knows nothing. */
export type WithStored = Observed & { stored: GpuInstance };

/** Pods of an instance: those that were made for it, and the pod that its status names, whatever marks it has lost. */
export function podsOf(
  { stores }: Pick<InstanceDeps, 'stores'>,
  { metadata, status }: Pick<GpuInstance, 'metadata' | 'status'>,
): Pod[] {
  const pods = [...stores.pods.by('instance', instanceIndexKey(metadata.namespace, metadata.uid))];
  if (status?.podName === undefined) return pods;
  const named = stores.pods.get(keyOf({ namespace: metadata.namespace, name: status.podName }));
  if (named === undefined || pods.includes(named)) return pods;
  return isPodOf({ metadata, status }, named) ? [...pods, named] : pods;
}

function diskFor({ stores }: InstanceDeps, instance: GpuInstance): PersistentVolumeClaim | undefined {
  const disk = stores.disks.get(keyOf({ namespace: instance.metadata.namespace, name: diskNameOf(instance) }));
  return isDiskOf(instance, disk) ? disk : undefined;
}

function keysFor({ stores }: InstanceDeps, { metadata, spec }: GpuInstance): Observed['keys'] {
  const usable = stores.sshKeys
    .by('namespace', metadata.namespace ?? '')
    .filter(({ metadata: own }) => own.deletionTimestamp === undefined);
  const named = spec.sshKeyIds ?? [];
  if (named.length === 0) return { missing: [], usable: usable.length };
  const ids = new Set(usable.map(({ metadata: own }) => numericId(own.uid ?? '')));
  const missing = named.filter((id) => !ids.has(id));
  return { missing, usable: named.length - missing.length };
}

/** What the instance was rented with comes first: no later edit of its template reaches it. */
function templateOf({ stores, config }: InstanceDeps, { metadata, spec, status }: GpuInstance): Observed['template'] {
  if (!namesTemplate(spec)) return undefined;
  const source = { ...stores, own: config.namespace };
  const { namespace = '' } = metadata;
  const kept = status?.template;
  if (kept !== undefined && isOfTemplate(spec, kept)) return { snapshot: kept, fate: fateOf(source, namespace, kept) };
  const template = findTemplate(source, namespace, spec);
  if (template === undefined) return 'missing';
  const snapshot = snapshotOf(template);
  return snapshot === undefined ? 'tooLarge' : { snapshot, fate: 'same' };
}

/** `disk`: one that is there, which is as large as it is. */
function settingsFor(
  { config }: InstanceDeps,
  { spec }: GpuInstance,
  { template, disk }: Pick<Observed, 'template' | 'disk'>,
): Observed['settings'] {
  if (typeof template === 'string') return undefined;
  const settings = settingsOf(spec, template?.snapshot.spec, config.defaultImage);
  return disk === undefined ? settings : { ...settings, diskGb: sizeGbOf(disk) || settings.diskGb };
}

/** The instance with its claim, also while that is on its pod alone. */
function claimed({ config, stores }: InstanceDeps, stored: GpuInstance, pods: readonly Pod[]): GpuInstance {
  if (!config.claimOnPod || !isBeforeFirstStart(stored)) return stored;
  const pod = pods.find(({ metadata }) => metadata.name === firstPodOf(stored));
  // What the cache has was parsed already.
  const isCached = pod !== undefined && pod === stores.pods.get(keyOf(pod));
  return isCached ? stores.instances.complete(stored) : withClaimOf(stored, pod);
}

/** The pod of the current start and its node, undefined when they are gone, and the name of the node. */
export function whereOf({ stores }: Pick<InstanceDeps, 'stores'>, { status }: GpuInstance, pods: readonly Pod[]) {
  const pod = pods.find(({ metadata }) => metadata.name === status?.podName);
  const nodeName = status?.claim?.node ?? pod?.spec?.nodeName;
  return { pod, nodeName, node: nodeName === undefined ? undefined : stores.nodes.get(nodeName) };
}

/** Everything about an instance, from the caches. `knownPods`: its pods, where the run knows more than the caches. */
export function observe(deps: InstanceDeps, stored: GpuInstance, knownPods: readonly Pod[] | undefined): WithStored {
  const { stores, clock } = deps;
  const pods = knownPods ?? podsOf(deps, stored);
  const now = clock.now();
  const known = claimed(deps, stored, pods);
  const disk = diskFor(deps, known);
  const { pod, nodeName, node } = whereOf(deps, known, pods);
  const instance = withSilences(withDiskBack(known, disk), { node, pod }, now);
  const template = templateOf(deps, instance);
  const offered = looksAtOffers(instance) ? deps.inventory.cheapest(wishFor(instance)) : undefined;
  return {
    instance,
    stored,
    pods,
    running: pods.filter((one) => mayRun(one, stores.nodes.get(one.spec?.nodeName ?? ''))),
    pod,
    devices: pod === undefined ? [] : deps.inventory.devicesOf(pod),
    disk,
    node,
    template,
    offered: offered && offeredOf(offered, instance.spec.type),
    settings: settingsFor(deps, instance, { template, disk }),
    keys: keysFor(deps, instance),
    namespaceGoes: stores.namespaces.get(instance.metadata.namespace ?? '')?.metadata.deletionTimestamp !== undefined,
    exporter: nodeName === undefined || !instance.spec.installMonitoring ? undefined : dcgmExporterOn(stores, nodeName),
    login: undefined,
    jupyter: undefined,
    monitor: undefined,
    trouble: undefined,
    sessions: deps.sessions?.evidence(),
    keepsLog: false,
    overspent: deps.budgets.overspent(instance),
    now,
  };
}
