import {
  AlreadyExistsError,
  ForbiddenError,
  InvalidError,
  isNamespaceTerminating,
  isQuotaExceeded,
  KubeError,
  NotFoundError,
  TimeoutError,
} from '../../../kube/errors.ts';
import { PERSISTENT_VOLUME_CLAIMS, type Pod, PODS } from '../../../kube/types.ts';
import { ephemeralGbOf } from '../../../inventory/holdings.ts';
import { type IsolationGap, isolationOn } from '../../../inventory/nodes/isolation.ts';
import { tolerationsOf } from '../../../inventory/nodes/node-state.ts';
import { type NodeView, requestsOf, shareOf } from '../../../inventory/nodes/node-view.ts';
import { storageClassOf } from '../../../inventory/pools.ts';
import type { Claim } from '../../../resources/instances/gpu-instance.ts';
import { isSlim } from '../../../resources/instances/slim-spec.ts';
import type { Run } from './run.ts';
import { desiredDisk } from '../decide/pod/desired-disk.ts';
import { desiredPod } from '../decide/pod/desired-pod.ts';
import type { Ending } from '../decide/endings.ts';
import { forbiddenEnv, isolationNeeds } from '../decide/refusals/forbidden.ts';
import { diskNameOf } from '../decide/names.ts';
import type { Observed } from '../decide/observed.ts';
import type { WithStored } from './observe.ts';
import { instanceUidsOf } from '../../../resources/pod/owner.ts';
import { POD_DELETED, words } from '../decide/pod/pod-facts.ts';

const ENFORCE_LABEL = 'pod-security.kubernetes.io/enforce';

/** Keeps the place this long: the API server may refuse a pod for a moment, for example while a webhook restarts. */
const REFUSAL_GRACE_MS = 10_000;

/** The pod, or why this start is given up. */
type StartOutcome = { pod: Pod } | { ending: Ending };

function lost(message: string): StartOutcome {
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

/** Whether other pods took the place between grant and start: pods that do not belong to instances may. */
function isOverbooked(view: NodeView, claim: Claim): boolean {
  return (view.used[claim.resourceName] ?? 0) > (view.facts.allocatable[claim.resourceName] ?? 0);
}

function conflict(kind: string, name: string): Ending {
  const message = `There is already a ${kind} named ${name}, and it does not belong to this instance. Delete it, or create the instance under another name.`;
  return { reason: 'NameConflict', message };
}

function serverWords(error: KubeError): string {
  return words(error.statusMessage, error.message);
}

/** An answer that concerns this object, and is neither a no nor a word of when to come again. */
function isFault(error: unknown): error is KubeError {
  if (!(error instanceof KubeError) || error instanceof TimeoutError) return false;
  return error.status === 400 || error.status >= 500;
}

/** Why the start is given up for an error; undefined when another try may do. */
function refused(error: unknown, claim: Claim, now: number): Ending | undefined {
  if (isFault(error)) {
    const isOver = Date.parse(claim.grantedAt) + REFUSAL_GRACE_MS <= now;
    return isOver ? { reason: 'PodRejected', message: serverWords(error) } : undefined;
  }
  if (!(error instanceof ForbiddenError) && !(error instanceof InvalidError)) return undefined;
  if (isNamespaceTerminating(error)) return undefined;
  if (isQuotaExceeded(error)) return { reason: 'QuotaExceeded', message: serverWords(error) };
  return { reason: 'PodRejected', message: serverWords(error) };
}

async function ensureDisk(run: Run, { instance, now }: Observed, claim: Claim): Promise<Ending | undefined> {
  const { deps, context } = run;
  const { namespace, uid = '' } = instance.metadata;
  const ref = { namespace, name: diskNameOf(instance) };
  const pool = [...deps.stores.pools.values()].find(({ metadata }) => metadata.name === claim.pool);
  const known = deps.stores.disks.get(`${namespace}/${ref.name}`);
  if (known !== undefined && instanceUidsOf(known).includes(uid)) return undefined;
  const storageClass = storageClassOf(pool?.spec ?? { disk: {} }, deps.stores.storageClasses.values());
  if (storageClass === undefined) return { reason: 'PlaceLost', message: 'The StorageClass of the disk is gone.' };
  try {
    const disk = desiredDisk(instance, storageClass, instance.status?.diskGb ?? 0);
    const made = await deps.client.create(PERSISTENT_VOLUME_CLAIMS, disk, { signal: context.signal });
    deps.fence.wrote(run.key, deps.stores.disks, made);
    return undefined;
  } catch (error) {
    if (!(error instanceof AlreadyExistsError)) {
      const ending = refused(error, claim, now);
      if (ending === undefined) throw error;
      return ending;
    }
  }
  const there = await deps.client.get(PERSISTENT_VOLUME_CLAIMS, ref, { signal: context.signal });
  return instanceUidsOf(there).includes(uid) ? undefined : conflict('PersistentVolumeClaim', ref.name);
}

/** Creates the disk and then the pod of the current start. Safe to repeat: their names come from instance and start. */
export async function createPod(run: Run, observed: WithStored, claim: Claim): Promise<StartOutcome> {
  const { deps, context } = run;
  const { instance, settings, now } = observed;
  if (isSlim(instance.spec)) throw new Error('A pod would be made of a spec without its texts; this is a bug.');
  const view = deps.inventory.viewOf(claim.node);
  const resource = view?.facts.resources.find(({ resourceName }) => resourceName === claim.resourceName);
  if (view === undefined || resource === undefined)
    return lost(`Node ${claim.node} no longer has ${claim.resourceName}.`);
  if (isOverbooked(view, claim)) return lost(`Other pods took the GPUs of node ${claim.node}.`);
  if (settings === undefined) return lost('The template of the instance is gone or too large.');
  const forbidden = forbiddenEnv(settings);
  if (forbidden !== undefined) return { ending: forbidden };
  const isolation = isolationOn(
    view.facts,
    isolationNeeds(instance.spec, run.deps.ceilingsOf(instance.metadata.namespace ?? '')),
  );
  if (typeof isolation === 'string') return lost(LOST_ISOLATION[isolation](claim.node));
  // The pod was made and has gone before the status could say so. Without a pause it would be made again and again.
  const { podName = '' } = instance.status ?? {};
  if (deps.made.get(instance.metadata.uid ?? '') === podName) return { ending: POD_DELETED };
  const diskPersistent = instance.status?.diskPersistent === true;
  const noDisk = diskPersistent ? await ensureDisk(run, observed, claim) : undefined;
  if (noDisk !== undefined) return { ending: noDisk };
  const share = { resource, count: claim.gpuCount };
  const { memory, disk } = shareOf(view.facts, share);
  const { namespace, uid = '' } = instance.metadata;
  const space = deps.stores.namespaces.get(namespace ?? '');
  const pod = desiredPod({
    instance,
    claim,
    incarnation: instance.status?.incarnation ?? 0,
    settings: { ...settings, diskGb: instance.status?.diskGb ?? settings.diskGb },
    requests: requestsOf(view.facts, share, ephemeralGbOf(instance)),
    memoryLimit: memory,
    scratchLimit: disk,
    diskPersistent,
    isolation,
    tolerations: tolerationsOf(view.facts.pool?.spec),
    imagePullPolicy: deps.config.imagePullPolicy,
    restricted: space?.metadata.labels?.[ENFORCE_LABEL] === 'restricted',
    toolsImage: deps.config.toolsImage,
    // Where the status does not have the claim yet, the pod does.
    claimed: observed.stored.status?.claim === undefined ? instance.status : undefined,
  });
  try {
    const made = await deps.client.create(PODS, pod, { signal: context.signal });
    deps.fence.wrote(run.key, deps.stores.pods, made);
    deps.made.set(uid, podName);
    // An API server without the feature, before Kubernetes 1.33, drops the field without a word.
    if (isolation.isRequired && made.spec?.hostUsers !== false) return { ending: NO_USER_NAMESPACE };
    return { pod: made };
  } catch (error) {
    const ending = refused(error, claim, now);
    if (ending !== undefined) return { ending };
    if (!(error instanceof AlreadyExistsError)) throw error;
  }
  // An earlier run that died created it, or another client did.
  try {
    const there = await deps.client.get(PODS, pod.metadata, { signal: context.signal });
    return instanceUidsOf(there).includes(uid) ? { pod: there } : { ending: conflict('Pod', pod.metadata.name) };
  } catch (error) {
    if (error instanceof NotFoundError) return lost('The pod was deleted while it was being created.');
    throw error;
  }
}
