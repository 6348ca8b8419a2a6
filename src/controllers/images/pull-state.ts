import type { Pod } from '../../kube/types.ts';
import {
  isBadImage,
  isNotCreated,
  isPullError,
  scheduledCondition,
  pullWords,
  sentence,
  waitingState,
  words,
} from '../gpu-instance/decide/pod/pod-facts.ts';
import { PULL_CONTAINER } from './pull-pod.ts';

/** A pod that the scheduler cannot bind for this long gives its turn to another node. */
export const UNSCHEDULED_MS = 60_000;

/** How far a pull is. `leaving`: the pod was deleted and is not gone yet. */
export type PullState =
  | { is: 'leaving' }
  | { is: 'pulling'; changesAt?: number }
  | { is: 'done' }
  | { is: 'failed'; message: string };

const DONE: PullState = { is: 'done' };

function failed(message: string): PullState {
  return { is: 'failed', message };
}

/** What a pod says about its pull. `now`: milliseconds since the epoch. */
export function pullState(pod: Pod, now: number): PullState {
  if (pod.metadata.deletionTimestamp !== undefined) return { is: 'leaving' };
  const { phase, reason = '', message } = pod.status ?? {};
  const main = pod.status?.containerStatuses?.find(({ name }) => name === PULL_CONTAINER);
  // A container that was made has its image, however it ended.
  if (phase === 'Succeeded' || (main?.state?.waiting === undefined && main?.imageID)) return DONE;
  if (phase === 'Failed')
    return failed(sentence(words([reason, message].filter(Boolean).join(': '), 'The pod failed.')));
  const waiting = waitingState(pod);
  if (waiting !== undefined) {
    const said = `${waiting.reason}: ${waiting.message}`;
    if (isPullError(waiting.reason) || isBadImage(waiting.reason)) return failed(pullWords(pod, said));
    // The kubelet makes a container after it has pulled the image.
    if (isNotCreated(waiting.reason))
      return waiting.container === PULL_CONTAINER ? DONE : failed(sentence(words(said, '')));
  }
  return unscheduled(pod, now) ?? { is: 'pulling' };
}

function unscheduled(pod: Pod, now: number): PullState | undefined {
  const scheduled = scheduledCondition(pod);
  if (scheduled?.status !== 'False') return undefined;
  const changesAt = Date.parse(scheduled.lastTransitionTime ?? '') + UNSCHEDULED_MS;
  if (!(changesAt <= now)) return { is: 'pulling', ...(Number.isFinite(changesAt) && { changesAt }) };
  return failed(
    sentence(`The pod that pulls found no room: ${words(scheduled.message, 'the scheduler says nothing')}`),
  );
}
