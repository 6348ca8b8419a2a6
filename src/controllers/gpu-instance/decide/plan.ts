import type { Pod } from '../../../kube/types.ts';
import { MOST_APART_MS } from '../../../ledger/interval.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { hasPodFinalizer } from '../../../resources/pod/pod-finalizer.ts';
import { isSwitchedOff } from '../../../resources/instances/instance-state.ts';
import { type Ending, endingOf, type SeenEnding } from './endings.ts';
import { nextOfDeletion } from './expiry.ts';
import { nextStartOf } from './failures.ts';
import type { Observed } from './observed.ts';
import {
  endingOfDeletion,
  endingOfMissing,
  endingOfPod,
  endOf,
  hadEndedBefore,
  isOver,
  isTakenAway,
} from './pod/pod-facts.ts';
import { deadlines } from './deadlines.ts';
import { silentSince } from './silences.ts';
import { isBroughtBack } from './transitions.ts';
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
  /** A deleted instance has no pod left that goes by itself: see to its disk, its usage record and its finalizer. */
  | { do: 'cleanUp' }
  | { do: 'deletePods'; pods: readonly Pod[] }
  /** A backup brought the status back: forget the starts that usage records have. */
  | { do: 'readmit' }
  /** The status has room for no more ended starts: move them to a usage record. */
  | { do: 'record' }
  /** No program runs any more: close the bill and give the place back. */
  | { do: 'release'; ending: SeenEnding };

const SWITCHED_OFF: Ending = { reason: 'Stopped', message: 'Stopped by its owner.' };
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

/** Whether a pod that has ended is there for the finalizers of others alone. They may keep it for ever. */
function isKeptByOthers(pod: Pod): boolean {
  return (pod.metadata.finalizers ?? []).length > 0 && !hasPodFinalizer(pod);
}

function planWithoutClaim(observed: Observed): Step {
  const { instance, pods, running, settings, now } = observed;
  const deleting = instance.metadata.deletionTimestamp !== undefined;
  // A pod without a claim holds GPUs that nobody pays for.
  if (live(pods, now).length > 0) return { do: 'deletePods', pods: live(pods, now) };
  // Another instance of this name may follow, whose pods get the same names.
  if (deleting && running.length === 0 && pods.every(isKeptByOthers)) return { do: 'cleanUp' };
  if (hasFullBill(instance)) return { do: 'record' };
  if (deleting || running.length > 0) return { do: 'observe' };
  const deletion = nextOfDeletion(observed);
  if (deletion !== undefined) return deletion;
  if (isSwitchedOff(instance) || observed.namespaceGoes === true) return { do: 'observe' };
  const next = nextStartOf(instance, now);
  if (next > now) return { do: 'wait', until: next };
  return settings === undefined ? { do: 'observe' } : { do: 'claim' };
}

/** The ending that the owner asks for. */
function askedFor({ metadata, spec }: GpuInstance): Ending | undefined {
  if (metadata.deletionTimestamp !== undefined) return DELETED;
  return spec.powerState === 'Stopped' ? SWITCHED_OFF : undefined;
}

function newEnding(observed: Observed): Ending | undefined {
  const { instance, pod, now } = observed;
  const asked = askedFor(instance);
  // Its program may have ended before, while nobody watched.
  if (asked !== undefined) return { ...asked, ...(pod && isOver(instance, pod) && endOf(observed, pod)) };
  const due = deadlines(observed).find(({ at }) => at <= now);
  if (pod === undefined)
    return instance.status?.podUid === undefined ? overspending(observed) : endingOfGonePod(observed);
  // Its creation was on its way for so long that the start has another place by now.
  const isElsewhere = pod.spec?.nodeName !== undefined && pod.spec.nodeName !== instance.status?.claim?.node;
  if (isElsewhere) return ELSEWHERE;
  // What is deleted has ended for that, whatever its phase says by now. What had ended before is only cleared away.
  if (isTakenAway(pod) && !hadEndedBefore(pod)) return withNodeTime(endingOfDeletion(observed, pod), observed);
  if (isOver(instance, pod)) return endingOfPod(observed, pod);
  return overspending(observed) ?? due?.ending;
}

function overspending({ instance, overspent }: Observed): Ending | undefined {
  // While its node is silent, it spends nothing.
  const isSpending = silentSince(instance.status) === undefined;
  return overspent === undefined || !isSpending ? undefined : { reason: 'BudgetSpent', message: overspent };
}

/** A tenant does not pay for the time in which the node did not answer. */
function withNodeTime(ending: Ending, observed: Observed): Ending {
  const since = silentSince(observed.instance.status) ?? observed.now;
  // Its program may have ended before the silence.
  const at = Math.min(since, ending.at ?? since);
  return ending.reason === 'NodeLost' && since < observed.now ? { ...ending, at } : ending;
}

function endingOfGonePod({ instance: { metadata, status }, node }: Observed): Ending {
  const ending: Ending =
    node === undefined
      ? { reason: 'NodeLost', message: 'The node is gone. The instance starts again on another node.' }
      : endingOfMissing(node);
  const created = Date.parse(metadata.creationTimestamp ?? '');
  // A backup brought the instance back, and nothing of it ran since.
  const isBack = created > Date.parse(status?.claim?.grantedAt ?? '') + MOST_APART_MS;
  return isBack ? { ...ending, at: created } : ending;
}

/** Whether what the template gives is in the status already. The claim writes it there. */
function isFrozen({ instance, template }: Observed): boolean {
  return typeof template !== 'object' || template.snapshot === instance.status?.template;
}

/** What to do next, from what is seen alone: after a crash between any two writes the next run goes on from there. */
export function planNext(observed: Observed): Step {
  const { instance, pods, running, pod, now } = observed;
  if (isBroughtBack(instance)) return { do: 'readmit' };
  if (instance.status?.claim === undefined) return planWithoutClaim(observed);
  const ending = endingOf(instance.status);
  if (ending === undefined) {
    const others = live(pods, now).filter((one) => one !== pod);
    if (others.length > 0) return { do: 'deletePods', pods: others };
    const end = newEnding(observed);
    if (end !== undefined) return { do: 'end', ending: end };
    if (pod !== undefined) return { do: 'observe' };
    // While a pod of an earlier start is still ending there is no other: at most one at a time.
    if (running.length > 0) return { do: 'observe' };
    return isFrozen(observed) ? { do: 'createPod' } : { do: 'freeze' };
  }
  // The pod is deleted when its log is kept.
  if (observed.keepsLog) return { do: 'observe' };
  // What is left of pods that have ended is deleted further on.
  if (running.length === 0) return { do: 'release', ending };
  return live(pods, now).length > 0 ? { do: 'deletePods', pods: live(pods, now) } : { do: 'observe' };
}

// Steps that cannot be taken back and that no condition of the write protects. Decided on an old view, they would
// create or delete a pod that does not belong to the current start, or delete a disk whose policy or record has changed
// (stale states in the Sieve paper).
const IRREVOCABLE: ReadonlySet<Step['do']> = new Set([
  'createPod',
  'end',
  'deletePods',
  'release',
  'deleteInstance',
  'cleanUp',
]);

/** Whether a step must be decided on what the API server has, not on a cache that may be behind. */
export function mustBeCertain(step: Step): boolean {
  return IRREVOCABLE.has(step.do);
}
