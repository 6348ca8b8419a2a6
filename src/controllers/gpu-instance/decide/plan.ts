import type { Pod } from '../../../kube/types.ts';
import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import { type Ending, endingOf, type SeenEnding } from './endings.ts';
import { nextStartOf } from './failures.ts';
import type { Observed } from './observed.ts';
import { endingOfDeletion, endingOfMissing, endingOfPod, isOver } from './pod/pod-facts.ts';
import { deadlines, nodeLostSince } from './deadlines.ts';
import { hasFullBill } from './usage.ts';

/** The one next thing to do about an instance. */
export type Step =
  /** Do nothing but write the status. */
  | { do: 'observe' }
  /** Wait until then, milliseconds since the epoch. */
  | { do: 'wait'; until: number }
  | { do: 'claim' }
  /** Write down what the template gives: the instance has a place, but was rented before that was kept. */
  | { do: 'freeze' }
  | { do: 'createPod' }
  /** Write down why the start ends, before anything is done about it. */
  | { do: 'end'; ending: Ending }
  | { do: 'deleteInstance' }
  /** A deleted instance has no pod left: see to its disk, its usage record and its finalizer. */
  | { do: 'cleanUp' }
  | { do: 'deletePods'; pods: readonly Pod[] }
  /** The status has room for no more ended starts: move them to a usage record. */
  | { do: 'record' }
  /** Every pod is gone: close the bill and give the place back. */
  | { do: 'release'; ending: SeenEnding };

const SWITCHED_OFF: Ending = { reason: 'Stopped', message: 'spec.powerState is Stopped.' };
const DELETED: Ending = { reason: 'Stopped', message: 'The instance is being deleted.' };

const ELSEWHERE: Ending = {
  reason: 'PlaceLost',
  message: 'The pod of this start is on another node than its place. The controller creates a new one.',
};

/** Pods get 30 seconds to end. A tenant who deletes one with a much longer grace would not pay for its GPUs. */
const LONGEST_GRACE_MS = 60_000;

/** The pods that still have to be deleted: also those whose deletion is far in the future. */
function live(pods: readonly Pod[], now: number): Pod[] {
  return pods.filter(
    ({ metadata: { deletionTimestamp } }) =>
      deletionTimestamp === undefined || Date.parse(deletionTimestamp) > now + LONGEST_GRACE_MS,
  );
}

function planWithoutClaim({ instance, pods, settings, now }: Observed): Step {
  const deleting = instance.metadata.deletionTimestamp !== undefined;
  // A pod without a claim holds GPUs that nobody pays for.
  if (live(pods, now).length > 0) return { do: 'deletePods', pods: live(pods, now) };
  if (deleting && pods.length === 0) return { do: 'cleanUp' };
  if (hasFullBill(instance)) return { do: 'record' };
  if (pods.length > 0 || isSwitchedOff(instance)) return { do: 'observe' };
  const next = nextStartOf(instance);
  if (next > now) return { do: 'wait', until: next };
  return settings === undefined ? { do: 'observe' } : { do: 'claim' };
}

function newEnding(observed: Observed): Ending | undefined {
  const { instance, pod, now } = observed;
  if (instance.metadata.deletionTimestamp !== undefined) return DELETED;
  if (instance.spec.powerState === 'Stopped') return SWITCHED_OFF;
  const due = deadlines(observed).find(({ at }) => at <= now);
  if (pod === undefined)
    return instance.status?.podUid === undefined ? overspending(observed) : endingOfGonePod(observed);
  // Its creation was on its way for so long that the start has another place by now.
  const isElsewhere = pod.spec?.nodeName !== undefined && pod.spec.nodeName !== instance.status?.claim?.node;
  if (isElsewhere) return ELSEWHERE;
  if (isOver(instance, pod)) return endingOfPod(pod, now);
  if (pod.metadata.deletionTimestamp !== undefined) return withNodeTime(endingOfDeletion(pod, observed.node), observed);
  return overspending(observed) ?? due?.ending;
}

function overspending({ overspent }: Observed): Ending | undefined {
  return overspent === undefined ? undefined : { reason: 'BudgetSpent', message: overspent };
}

/** A tenant does not pay for the time in which the node did not answer. */
function withNodeTime(ending: Ending, observed: Observed): Ending {
  const since = nodeLostSince(observed);
  return ending.reason === 'NodeLost' && since > 0 && since < observed.now ? { ...ending, at: since } : ending;
}

function endingOfGonePod({ node }: Observed): Ending {
  return node === undefined
    ? { reason: 'NodeLost', message: 'The node is gone. The instance starts again on another node.' }
    : endingOfMissing(node);
}

/** Whether the instance goes with its start: not when its owner switched it off or asked for a start meanwhile. */
function mustDelete(instance: Observed['instance']): boolean {
  const { metadata, spec, status } = instance;
  const reason = endingOf(status)?.reason;
  if (spec.onExpiry !== 'Delete' || (reason !== 'Expired' && reason !== 'Idle')) return false;
  return metadata.deletionTimestamp === undefined && spec.powerState === 'Running' && isSwitchedOff(instance);
}

/** Whether what the template gives is in the status already. The claim writes it there. */
function isFrozen({ instance, template }: Observed): boolean {
  return typeof template !== 'object' || template.snapshot === instance.status?.template;
}

/** What to do next, from what is seen alone: after a crash between any two writes the next run goes on from there. */
export function planNext(observed: Observed): Step {
  const { instance, pods, pod, now } = observed;
  if (instance.status?.claim === undefined) return planWithoutClaim(observed);
  const ending = endingOf(instance.status);
  if (ending === undefined) {
    const others = live(pods, now).filter((one) => one !== pod);
    if (others.length > 0) return { do: 'deletePods', pods: others };
    const end = newEnding(observed);
    if (end !== undefined) return { do: 'end', ending: end };
    if (pod !== undefined) return { do: 'observe' };
    // While a pod of an earlier start is still ending there is no other: at most one at a time.
    if (pods.length > 0) return { do: 'observe' };
    return isFrozen(observed) ? { do: 'createPod' } : { do: 'freeze' };
  }
  if (mustDelete(instance)) return { do: 'deleteInstance' };
  if (live(pods, now).length > 0) return { do: 'deletePods', pods: live(pods, now) };
  return pods.length > 0 ? { do: 'observe' } : { do: 'release', ending };
}

// Steps that cannot be taken back and that no condition of the write protects. Decided on an old view, they would
// create or delete a pod that does not belong to the current start (stale states in the Sieve paper).
const IRREVOCABLE: ReadonlySet<Step['do']> = new Set(['createPod', 'end', 'deletePods', 'release', 'deleteInstance']);

/** Whether a step must be decided on what the API server has, not on a cache that may be behind. */
export function mustBeCertain(step: Step): boolean {
  return IRREVOCABLE.has(step.do);
}
