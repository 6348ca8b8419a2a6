import type { Pod } from '../../../kube/types.ts';
import { type Ending, endingOf, mustSwitchOff, type SeenEnding } from './endings.ts';
import { nextStartOf } from './failures.ts';
import type { Observed } from './observed.ts';
import { endingOfDeletion, endingOfPod, hasEnded } from './pod/pod-facts.ts';
import { deadlines, nodeLostSince } from './deadlines.ts';

/** The one next thing to do about an instance. */
export type Step =
  /** Nothing but the status. */
  | { do: 'observe' }
  /** Wait until then, milliseconds since the epoch. */
  | { do: 'wait'; until: number }
  /** Find a place. */
  | { do: 'claim' }
  | { do: 'createPod' }
  /** Write down why the start ends, before anything is done about it. */
  | { do: 'end'; ending: Ending }
  /** The start ended for a reason that does not go away by itself: switch the instance off. */
  | { do: 'switchOff' }
  | { do: 'deleteInstance' }
  /** Of a deleted instance only the disk and the record are left to see to. */
  | { do: 'cleanUp' }
  | { do: 'deletePods'; pods: readonly Pod[] }
  /** Every pod is gone: settle the bill and give the place back. */
  | { do: 'release'; ending: SeenEnding };

const SWITCHED_OFF: Ending = { reason: 'Stopped', message: 'spec.powerState is Stopped.' };

const DELETED: Ending = { reason: 'Stopped', message: 'The instance is being deleted.' };

/** Our pods get 30 seconds to end; whoever deletes one with much more than that keeps its GPUs without paying. */
const LONGEST_GRACE_MS = 60_000;

/** The pods that are not about to go: a deletion that lies far ahead is still to be made. */
function live(pods: readonly Pod[], now: number): Pod[] {
  return pods.filter(
    ({ metadata: { deletionTimestamp } }) =>
      deletionTimestamp === undefined || Date.parse(deletionTimestamp) > now + LONGEST_GRACE_MS,
  );
}

function planWithoutClaim({ instance, pods, settings, now }: Observed): Step {
  const deleting = instance.metadata.deletionTimestamp !== undefined;
  // A pod whose claim is gone holds a GPU that nobody counts.
  if (live(pods, now).length > 0) return { do: 'deletePods', pods: live(pods, now) };
  if (deleting && pods.length === 0) return { do: 'cleanUp' };
  if (pods.length > 0 || instance.spec.powerState === 'Stopped') return { do: 'observe' };
  if (mustSwitchOff(instance)) return { do: 'switchOff' };
  const next = nextStartOf(instance);
  if (next > now) return { do: 'wait', until: next };
  return settings === undefined ? { do: 'observe' } : { do: 'claim' };
}

function newEnding(observed: Observed): Ending | undefined {
  const { instance, pod, now } = observed;
  if (instance.metadata.deletionTimestamp !== undefined) return DELETED;
  if (instance.spec.powerState === 'Stopped') return SWITCHED_OFF;
  const due = deadlines(observed).find(({ at }) => at <= now);
  if (pod === undefined) return instance.status?.podUid === undefined ? undefined : endingOfGonePod(observed);
  if (hasEnded(pod)) return endingOfPod(pod, now);
  if (pod.metadata.deletionTimestamp !== undefined) return withNodeTime(endingOfDeletion(pod), observed);
  return due?.ending;
}

/** Nobody pays for a node that does not answer. */
function withNodeTime(ending: Ending, observed: Observed): Ending {
  const since = nodeLostSince(observed);
  return ending.reason === 'NodeLost' && since > 0 && since < observed.now ? { ...ending, at: since } : ending;
}

function endingOfGonePod({ node }: Observed): Ending {
  return node === undefined
    ? { reason: 'NodeLost', message: 'The node is gone. The instance starts again elsewhere.' }
    : { reason: 'PodDeleted', message: 'The pod was deleted by somebody else. Another one follows.' };
}

/**
 * What to do next, from what is seen alone: the same whether this controller has just started or has run for days. One
 * step at a time, so that a crash between any two writes leaves a state that the next run goes on from.
 */
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
    // A pod of an earlier start is still on its way out: at most one at a time.
    return pods.length > 0 ? { do: 'observe' } : { do: 'createPod' };
  }
  if (mustSwitchOff(instance)) {
    const timedOut = ending.reason === 'Expired' || ending.reason === 'Idle';
    return { do: timedOut && instance.spec.onExpiry === 'Delete' ? 'deleteInstance' : 'switchOff' };
  }
  if (live(pods, now).length > 0) return { do: 'deletePods', pods: live(pods, now) };
  return pods.length > 0 ? { do: 'observe' } : { do: 'release', ending };
}

// What cannot be taken back, and what a condition of the write does not protect: on a view of the past a pod would be
// made or deleted that has nothing to do with the start of now (Sieve's stale states).
const IRREVOCABLE: ReadonlySet<Step['do']> = new Set(['createPod', 'end', 'deletePods', 'release', 'deleteInstance']);

/** Whether a step must rest on what the API server itself has, not on a cache that may be behind. */
export function mustBeCertain(step: Step): boolean {
  return IRREVOCABLE.has(step.do);
}
