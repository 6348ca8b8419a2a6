import { ConflictError, KubeError, TimeoutError, TransportError } from '../../../kube/errors.ts';
import { findObject } from '../../../kube/client/find-object.ts';
import { shownIn } from '../../../kube/watch/resource-version.ts';
import { type Pod, PODS } from '../../../kube/types.ts';
import { sameJson } from '../../../lib/json.ts';
import { namesTemplate } from '../../../resources/instance-template.ts';
import { FINALIZER } from '../../../resources/cleanup.ts';
import type { Claim, GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState, type ReadyReason } from '../../../resources/instances/instance-state.ts';
import { isSlim } from '../../../resources/instances/slim-spec.ts';
import { firstPodOf, isBeforeFirstStart, withClaimOf } from '../../../resources/pod/claim-on-pod.ts';
import type { Ending } from '../decide/endings.ts';
import type { WithStored } from './observe.ts';
import type { Settings } from '../decide/settings.ts';
import { claimTime } from '../decide/status/stage-times.ts';
import { statusOf } from '../decide/status/status.ts';
import { claimedStatus } from '../decide/transitions.ts';
import { createPod } from './create-pod.ts';
import type { Run } from './run.ts';
import { writeStatus } from './writes.ts';

export type Claimed =
  /** The instance as the API server has it, with its pod where that bears the claim. */
  | { instance: GpuInstance; pods?: readonly Pod[] }
  /** The start is over before anything of it was written. `observed` has its claim. */
  | { lost: Ending; observed: WithStored };

const OTHER_POD: Ending = {
  reason: 'PlaceLost',
  message: 'A pod of this name is there that is not as the controller made it. The controller creates a new one.',
};

/** What the HTTP interface refuses of instances that wait, also to clients that queue: it may withdraw such an instance. */
const MAY_BE_WITHDRAWN: ReadonlySet<ReadyReason> = new Set([
  'WaitingForOffer',
  'NamespaceTerminating',
  'TemplateNotFound',
  'TemplateTooLarge',
]);

/** Whether a write may have been made although it failed. */
function isUncertain(error: unknown): boolean {
  if (error instanceof TimeoutError || error instanceof TransportError) return true;
  if (!(error instanceof KubeError) || error.isAfterUnknown) return true;
  return error.status >= 500 && !(error instanceof ConflictError);
}

/** What would be seen of the instance with this claim, before its pod exists. */
export function claimWith(
  { deps }: Run,
  observed: WithStored,
  claim: Claim,
  disk: { persistent: boolean; settings: Settings },
): WithStored {
  const { instance } = observed;
  const next = { ...observed, pod: undefined, instance: { ...instance, status: claimedStatus(instance, claim, disk) } };
  return { ...next, instance: { ...instance, status: statusOf(next, deps.config.ssh) } };
}

/** Writes the claim to the status. Where it may have been written although this fails, it stays undecided. */
export async function writeClaim(run: Run, { instance, stored }: WithStored): Promise<Claimed> {
  const { deps, key } = run;
  const { status = {} } = instance;
  try {
    const written = await writeStatus(run, stored, status);
    deps.inventory.written(key, shownIn(deps.stores.instances, written));
    noteClaim(run, { instance, stored });
    return { instance: written };
  } catch (error) {
    // When it may have been written, the next run reads the instance from the API server and finds out.
    if (!isUncertain(error)) deps.inventory.forget(key);
    if (deps.inventory.undecided(key) === undefined) deps.line.notGranted(key);
    throw error;
  }
}

/**
 * Whether the pod may bear the claim. Only of a first start: its pod has one name, which no other claim can take. Not
 * before the finalizer is there, since the instance must not vanish, nor with a template, whose copy is in the status. A
 * client that was refused may withdraw its instance on condition that nobody wrote to it since: its claim is written.
 */
export function mayClaimOnPod({ deps }: Run, { stored }: WithStored): boolean {
  const { metadata, spec, status } = stored;
  if (!deps.config.claimOnPod || !isBeforeFirstStart(stored) || status?.failures !== undefined) return false;
  if (metadata.finalizers?.includes(FINALIZER) !== true || namesTemplate(spec) || isSlim(spec)) return false;
  if (deps.made.get(metadata.uid ?? '') === firstPodOf(stored)) return false;
  const { state, reason } = instanceState(stored);
  const isQueued = spec.onNoCapacity === 'Queue' && state === 'pending' && !MAY_BE_WITHDRAWN.has(reason);
  return status === undefined || isQueued;
}

/** The pod with the claim that an earlier run made, where no cache shows it yet; undefined when it is gone again. */
export async function findClaimed({ deps, context }: Run, { stored }: WithStored): Promise<Pod | undefined> {
  const { namespace, uid = '' } = stored.metadata;
  const name = firstPodOf(stored);
  if (!deps.config.claimOnPod || !isBeforeFirstStart(stored) || deps.made.get(uid) !== name) return undefined;
  const pod = await findObject(deps.client, PODS, { namespace, name }, { signal: context.signal });
  return withClaimOf(stored, pod) === stored ? undefined : pod;
}

/** Makes the pod with the claim. Whatever fails, the claim stays undecided: the next run finds out, and writes it. */
export async function claimOnPod(run: Run, observed: WithStored): Promise<Claimed> {
  const { claim } = observed.instance.status ?? {};
  if (claim === undefined) throw new Error('A pod would be made without a place; this is a bug.');
  const outcome = await createPod(run, observed, claim);
  if ('ending' in outcome) return { lost: outcome.ending, observed };
  const { pod } = outcome;
  if (!countClaimOf(run, observed.stored, pod)) return { lost: OTHER_POD, observed };
  noteClaim(run, observed);
  return { instance: observed.stored, pods: [pod] };
}

/** Counts the claim that a pod bears, until a cache shows it; false when it bears none. */
export function countClaimOf({ deps, key }: Run, stored: GpuInstance, pod: Pod | undefined): boolean {
  const { claim, diskGb = 0, diskPersistent = false } = withClaimOf(stored, pod).status ?? {};
  if (pod === undefined || claim === undefined) return false;
  // Another leader may have made it, from another grant.
  const isOwn = sameJson(deps.inventory.undecided(key)?.status?.claim, claim);
  if (!isOwn) deps.inventory.assume(stored, claim, { gb: diskGb, persistent: diskPersistent });
  deps.inventory.written(key, shownIn(deps.stores.pods, pod));
  return true;
}

function noteClaim({ deps }: Run, { instance, stored }: Pick<WithStored, 'instance' | 'stored'>): void {
  const took = claimTime(stored.status, instance.status ?? {});
  if (took !== undefined) deps.noteStages([took]);
}
