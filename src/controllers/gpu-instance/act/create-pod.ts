import {
  AlreadyExistsError,
  ForbiddenError,
  InvalidError,
  isNamespaceAbsent,
  isNamespaceTerminating,
  isQuotaExceeded,
  KubeError,
  NotFoundError,
  PolicyNotReadyError,
  QuotaContendedError,
  TimeoutError,
  TooManyRequestsError,
} from '../../../kube/errors.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim, type Pod, PODS } from '../../../kube/types.ts';
import { ephemeralGbOf } from '../../../inventory/holdings.ts';
import { type IsolationGap, isolationOn } from '../../../inventory/nodes/isolation.ts';
import { tolerationsOf } from '../../../inventory/nodes/node-state.ts';
import { type NodeView, requestsOf, shareOf } from '../../../inventory/nodes/node-view.ts';
import { storageClassOf } from '../../../inventory/pools.ts';
import type { Claim, GpuInstance, GpuInstanceStatus } from '../../../resources/instances/gpu-instance.ts';
import { isSlim } from '../../../resources/instances/slim-spec.ts';
import type { Run } from './run.ts';
import { desiredDisk } from '../decide/pod/desired-disk.ts';
import { diskGroupOf } from '../decide/pod/disk-group.ts';
import { desiredPod } from '../decide/pod/desired-pod.ts';
import type { Ending } from '../decide/endings.ts';
import { forbiddenEnv, forbiddenRoot, isolationNeeds, isRestricted } from '../decide/refusals/forbidden.ts';
import { lossOf } from '../decide/lost-disk.ts';
import type { Observed } from '../decide/observed.ts';
import type { WithStored } from './observe.ts';
import { diskNameOf, isDiskOf, RETAINED_LABEL } from '../../../resources/pod/disk.ts';
import { isPodOf, POD_DELETED, words } from '../decide/pod/pod-facts.ts';

/** Keeps the place this long: the API server may refuse a pod for a moment, for example while a webhook restarts. */
export const REFUSAL_GRACE_MS = 10_000;
/** The same where the answer is to come again, or none comes: a webhook may answer so for ever. */
const PATIENCE_MS = 300_000;

/** The pod, or why this start is given up. */
type StartOutcome = { pod: Pod } | { ending: Ending };

function lost(message: string): { ending: Ending } {
  return { ending: { reason: 'PlaceLost', message } };
}

const LOST_ISOLATION: Readonly<Record<IsolationGap, (node: string) => string>> = {
  RuntimeClass: (node) => `The instance may no longer choose its RuntimeClass on node ${node}.`,
  UserNamespaces: (node) => `Node ${node} no longer runs pods in user namespaces, and one is required.`,
};

const NO_USER_NAMESPACE: Ending = {
  reason: 'PodRejected',
  message:
    'The API server made the pod without its user namespace, because its feature gate UserNamespacesSupport is off. The operator can switch it on, or require no user namespace.',
};

/** Its place is given back at once: no pod can be made there any more. */
const NAMESPACE_GOES: Ending = { reason: 'PlaceLost', message: 'The namespace of the instance is being deleted.' };

/** Whether other pods took the place between grant and start: pods that do not belong to instances may. */
function isOverbooked(view: NodeView, claim: Claim): boolean {
  return (view.used[claim.resourceName] ?? 0) > (view.facts.allocatable[claim.resourceName] ?? 0);
}

const POD_CONFLICT = 'Delete it, or create the instance under another name.';

function conflict(kind: string, name: string, way: string): Ending {
  const message = `There is already a ${kind} named ${name}, and it does not belong to this instance. ${way}`;
  return { reason: 'NameConflict', message };
}

function diskConflict(instance: GpuInstance): Ending {
  const [name, { namespace = '' }] = [diskNameOf(instance), instance.metadata];
  const label = `kubectl label pvc ${name} -n ${namespace} ${RETAINED_LABEL}=${instance.metadata.name}`;
  const way = `To use it as the disk of this instance, run: ${label}. Or delete it, or create the instance under another name.`;
  return conflict('PersistentVolumeClaim', name, way);
}

function serverWords(error: KubeError): string {
  return words(error.statusMessage, error.message);
}

const LATER = [TimeoutError, TooManyRequestsError, QuotaContendedError, PolicyNotReadyError];

/** An answer that concerns this object, whichever code a policy or a webhook gave it, and no word of when to come again. */
function isFault(error: KubeError): boolean {
  return error.status >= 400 && !LATER.some((type) => error instanceof type);
}

/**
 * Why the start is given up for an error; undefined when another try may do.
 * @param since when the first try was, milliseconds since the epoch
 */
export function refused(error: unknown, since: number, now: number): Ending | undefined {
  if (!(error instanceof KubeError) || error instanceof AlreadyExistsError) return undefined;
  if (isNamespaceTerminating(error) || isNamespaceAbsent(error)) return NAMESPACE_GOES;
  const message = serverWords(error);
  if (isQuotaExceeded(error)) return { reason: 'QuotaExceeded', message };
  const isNo = error instanceof ForbiddenError || error instanceof InvalidError;
  const graceMs = isFault(error) ? REFUSAL_GRACE_MS : PATIENCE_MS;
  return isNo || since + graceMs <= now ? { reason: 'PodRejected', message } : undefined;
}

type DiskRecord = GpuInstanceStatus['disk'];

/** What a start has of its disk: a disk that it has to make first, one that is there, or none. */
export function diskFor(
  { deps }: Run,
  { instance, disk }: Observed,
  claim: Claim,
): { wanted: PersistentVolumeClaim } | { disk: DiskRecord } | { ending: Ending } {
  if (instance.status?.diskPersistent !== true) return { disk: undefined };
  if (disk !== undefined) return recordOf(disk);
  const pool = [...deps.stores.pools.values()].find(({ metadata }) => metadata.name === claim.pool);
  const storageClass = storageClassOf(pool?.spec ?? { disk: {} }, deps.stores.storageClasses.values());
  if (storageClass === undefined) return lost('The StorageClass of the disk is gone.');
  return { wanted: desiredDisk(instance, storageClass, instance.status.diskGb ?? 0) };
}

function recordOf({ metadata: { name, uid } }: PersistentVolumeClaim): { disk: DiskRecord } {
  return { disk: uid === undefined ? undefined : { name, uid } };
}

/** The disk of this name that is there: that of the instance, or another that stops it. */
export async function foundDisk(
  { deps, context }: Run,
  { instance }: Pick<Observed, 'instance'>,
): Promise<{ disk: DiskRecord } | { ending: Ending }> {
  const ref = { namespace: instance.metadata.namespace, name: diskNameOf(instance) };
  const there = await deps.client.get(PERSISTENT_VOLUME_CLAIMS, ref, { signal: context.signal });
  if (there.metadata.deletionTimestamp !== undefined) {
    return { ending: { reason: 'PlaceLost', message: 'A disk of this name is being deleted.' } };
  }
  return isDiskOf(instance, there) ? recordOf(there) : { ending: diskConflict(instance) };
}

/** The pod of this name that is there: that of the instance, or another that stops it. */
export async function foundPod(
  { deps, context }: Run,
  { instance }: Pick<Observed, 'instance'>,
  { metadata }: Pod,
): Promise<StartOutcome> {
  try {
    const there = await deps.client.get(PODS, metadata, { signal: context.signal });
    if (isPodOf(instance, there)) return { pod: there };
    // That of an earlier instance of this name, which finalizers of others keep for a while.
    if (there.metadata.deletionTimestamp !== undefined) return lost('A pod of this name is being deleted.');
    return { ending: conflict('Pod', metadata.name, POD_CONFLICT) };
  } catch (error) {
    if (error instanceof NotFoundError) return lost('The pod was deleted while it was being created.');
    throw error;
  }
}

async function ensureDisk(
  run: Run,
  observed: Observed,
  claim: Claim,
): Promise<{ disk: DiskRecord } | { ending: Ending }> {
  const { deps, context } = run;
  const { instance, now } = observed;
  const found = diskFor(run, observed, claim);
  if (!('wanted' in found)) return found;
  const ref = { namespace: instance.metadata.namespace, name: diskNameOf(instance) };
  const loss = lossOf(instance);
  if (loss !== undefined) {
    const there = await findObject(deps.client, PERSISTENT_VOLUME_CLAIMS, ref, { signal: context.signal });
    if (there === undefined) return { ending: loss };
  }
  try {
    const made = await deps.client.create(PERSISTENT_VOLUME_CLAIMS, found.wanted, { signal: context.signal });
    deps.fence.wrote(run.key, deps.stores.disks, made);
    return recordOf(made);
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) {
      const ending = refused(error, Date.parse(claim.grantedAt), now);
      if (ending === undefined) throw error;
      return { ending };
    }
  }
  return foundDisk(run, observed);
}

/** The pod of the current start with its disk, or why there is none. */
export function podFor(
  { deps }: Run,
  observed: WithStored,
  claim: Claim,
): { podWith: (disk: DiskRecord) => Pod; hasUserNamespace: boolean } | { ending: Ending } {
  const { instance, settings } = observed;
  if (isSlim(instance.spec)) throw new Error('A pod would be made of a spec without its texts; this is a bug.');
  const view = deps.inventory.viewOf(claim.node);
  const resource = view?.facts.resources.find(({ resourceName }) => resourceName === claim.resourceName);
  if (view === undefined || resource === undefined)
    return lost(`Node ${claim.node} no longer has ${claim.resourceName}.`);
  // Its price would be that of the claim, but its sandbox and its tolerations that of another pool, or of none.
  if (view.facts.pool?.name !== claim.pool) return lost(`Node ${claim.node} is no longer in GPUPool ${claim.pool}.`);
  if (view.switched) return lost(`The GPUs of node ${claim.node} were divided otherwise, or became fewer.`);
  if (isOverbooked(view, claim)) return lost(`Other pods took the GPUs of node ${claim.node}.`);
  if (settings === undefined) return lost('The template of the instance is gone or too large.');
  const space = deps.stores.namespaces.get(instance.metadata.namespace ?? '');
  const forbidden = forbiddenEnv(settings) ?? forbiddenRoot(instance.spec, space);
  if (forbidden !== undefined) return { ending: forbidden };
  const isolation = isolationOn(
    view.facts,
    isolationNeeds(instance.spec, deps.ceilingsOf(instance.metadata.namespace ?? '')),
  );
  if (typeof isolation === 'string') return lost(LOST_ISOLATION[isolation](claim.node));
  const share = { resource, count: claim.gpuCount };
  const { memory, disk: scratch } = shareOf(view.facts, share);
  const parts = {
    instance,
    claim,
    incarnation: instance.status?.incarnation ?? 0,
    settings: { ...settings, diskGb: instance.status?.diskGb ?? settings.diskGb },
    requests: requestsOf(view.facts, share, ephemeralGbOf(instance)),
    memoryLimit: memory,
    scratchLimit: scratch,
    diskPersistent: instance.status?.diskPersistent === true,
    diskGroup: diskGroupOf(space),
    isolation,
    tolerations: tolerationsOf(view.facts.pool?.spec),
    imagePullPolicy: deps.config.imagePullPolicy,
    restricted: isRestricted(space),
    toolsImage: deps.config.toolsImage,
    hasPullSecret: deps.config.imagePullSecrets.length > 0,
  };
  // Where the status does not have the claim yet, the pod does.
  const hasClaim = observed.stored.status?.claim !== undefined;
  const podWith = (disk: DiskRecord): Pod =>
    desiredPod({ ...parts, claimed: hasClaim ? undefined : { ...instance.status, disk } });
  return { podWith, hasUserNamespace: isolation.isRequired };
}

/** Creates the disk and then the pod of the current start. Safe to repeat: their names come from instance and start. */
export async function createPod(run: Run, observed: WithStored, claim: Claim): Promise<StartOutcome> {
  const { deps, context } = run;
  const { instance, now } = observed;
  const { uid = '' } = instance.metadata;
  const prepared = podFor(run, observed, claim);
  if ('ending' in prepared) return prepared;
  // The pod was made and has gone before the status could say so. Without a pause it would be made again and again.
  const { podName = '' } = instance.status ?? {};
  if (deps.made.get(uid) === podName) return { ending: POD_DELETED };
  const outcome = await ensureDisk(run, observed, claim);
  if ('ending' in outcome) return outcome;
  const pod = prepared.podWith(outcome.disk);
  try {
    const made = await deps.client.create(PODS, pod, { signal: context.signal });
    deps.fence.wrote(run.key, deps.stores.pods, made);
    deps.made.set(uid, podName);
    // An API server without the feature, before Kubernetes 1.33, drops the field without a word.
    if (prepared.hasUserNamespace && made.spec?.hostUsers !== false) return { ending: NO_USER_NAMESPACE };
    return { pod: made };
  } catch (error) {
    const ending = refused(error, Date.parse(claim.grantedAt), now);
    if (ending !== undefined) return { ending };
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
  // An earlier run that died created it, or another client did.
  return foundPod(run, observed, pod);
}
