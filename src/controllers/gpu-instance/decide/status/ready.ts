import type { Finding } from '../../../../kube/conditions.ts';
import { MOST_STARTS } from '../../../../resources/instances/gpu-instance.ts';
import { MAX_FROZEN_BYTES } from '../../../../resources/instance-template.ts';
import { isSwitchedOff, READY_REASONS, type ReadyReason } from '../../../../resources/instances/instance-state.ts';
import { findCondition } from '../../../../kube/conditions.ts';
import { hasImage } from '../../../../inventory/offers.ts';
import { endingOf, isOwed, type SeenEnding } from '../endings.ts';
import { lossSeen } from '../lost-disk.ts';
import { limitedUntil, nextStartOf } from '../failures.ts';
import type { Observed } from '../observed.ts';
import {
  isNotCreated,
  isPodReady,
  mainStatus,
  scheduledCondition,
  sentence,
  waitingState,
  words,
} from '../pod/pod-facts.ts';
import { isPullError, pullWords } from '../pod/pull-words.ts';
import { nodeLostSince, NODE_GRACE_MS } from '../deadlines.ts';
import { deletionAt } from '../expiry.ts';
import { silentSince } from '../silences.ts';

/** Reason and message of the Ready condition. */
interface Ready {
  reason: ReadyReason;
  message: string;
}

/** Why an instance without a claim waits, as the search for a place found. */
export type Waiting = Ready;

function notReadyWords(node: Observed['node']): string | undefined {
  return findCondition(node?.status?.conditions, 'Ready')?.message;
}

function ofPod(observed: Observed): Ready {
  const { pod, node, login, trouble } = observed;
  if (pod === undefined) return { reason: 'Scheduling', message: 'The place is granted. The pod is being created.' };
  if (nodeLostSince(observed) + NODE_GRACE_MS <= observed.now) {
    const name = observed.instance.status?.claim?.node ?? '';
    const why =
      silentSince(observed.instance.status) === undefined
        ? `Node ${name} is not ready: ${sentence(words(notReadyWords(node), 'its kubelet does not say why'))} The kubelet answers, so the program runs on, and is billed.`
        : `Node ${name} does not answer. Until it does, nothing is billed, and neither maxDuration nor idleTimeout counts.`;
    const then =
      'The instance is ready again when the node comes back. If Kubernetes deletes the pod first, the instance starts on another node.';
    return { reason: 'NodeLost', message: `${why} ${then}` };
  }
  const scheduled = scheduledCondition(pod);
  if (scheduled?.status !== 'True') {
    const reason = scheduled?.reason === 'Unschedulable' ? 'Unschedulable' : 'Scheduling';
    if (trouble !== undefined) return { reason, message: `The disk is not provisioned yet. ${words(trouble, '')}` };
    if (reason === 'Scheduling') return { reason, message: 'The scheduler is binding the pod.' };
    return { reason, message: words(scheduled?.message, 'The scheduler cannot bind the pod.') };
  }
  if (isPodReady(pod)) {
    if (login === 'pending') {
      return {
        reason: 'WaitingForLogin',
        message: 'The container runs, but a login through the SSH gateway does not work yet.',
      };
    }
    return { reason: 'Running', message: 'The instance is up.' };
  }
  const waiting = waitingState(pod);
  if (waiting !== undefined && isPullError(waiting.reason)) {
    return { reason: 'ImagePullBackOff', message: pullWords(pod, waiting) };
  }
  if (waiting !== undefined && isNotCreated(waiting.reason)) {
    return { reason: 'Starting', message: `${waiting.reason}: ${words(waiting.message, 'the kubelet tries again')}` };
  }
  if (waiting?.reason === 'CrashLoopBackOff') {
    const last = mainStatus(pod)?.lastState?.terminated;
    const code = last === undefined ? '' : ` Its last exit code was ${last.exitCode}.`;
    return { reason: 'CrashLoop', message: `${words(waiting.message, 'The container ends again and again.')}${code}` };
  }
  if (trouble !== undefined) {
    const name = observed.instance.status?.claim?.node ?? '';
    return { reason: 'Starting', message: `Node ${name} is still setting up the pod. ${words(trouble, '')}` };
  }
  const image = pod.spec?.containers[0]?.image ?? '';
  const running = mainStatus(pod)?.state?.running !== undefined;
  const onNode = node?.status?.images?.some(({ names }) => hasImage({ images: new Set(names) }, image)) ?? false;
  if (!running && !onNode && node !== undefined && pod.status?.containerStatuses !== undefined) {
    return { reason: 'PullingImage', message: `Node ${node.metadata.name} fetches ${image}.` };
  }
  return { reason: 'Starting', message: 'The container starts.' };
}

function stoppedBy(ending: SeenEnding | undefined, starts: number): string {
  // One that waited for its next start has no ending that says when.
  if (ending?.reason !== 'Stopped') return starts === 0 ? 'The instance was not started.' : 'Stopped by its owner.';
  const at = new Date(ending.at).toISOString();
  return `Stopped by its owner on ${at.slice(0, 10)} at ${at.slice(11, 16)} UTC.`;
}

function ofUnclaimed(observed: Observed, waiting: Waiting | undefined): Ready {
  const { instance, running, template, now } = observed;
  const ending = endingOf(instance.status);
  if (running.length > 0) return { reason: 'Stopping', message: 'A pod of an earlier start is still ending.' };
  const isOver = ending?.rule.next === 'stop';
  if (isSwitchedOff(instance)) {
    const reason = isOver ? ending.rule.afterRelease : 'Stopped';
    const loss = lossSeen(observed);
    const said =
      isOver && ending.reason !== 'Stopped'
        ? ending.message
        : (loss?.message ?? stoppedBy(ending, instance.status?.incarnation ?? 0));
    const deleted = deletionAt(observed);
    if (deleted !== undefined && Number.isFinite(deleted)) {
      const limit = ending?.reason === 'Idle' ? 'idle timeout' : 'longest duration';
      const when = new Date(deleted).toISOString();
      const message = `${sentence(said)} The instance is deleted at ${when}, as it was rented. To keep it, lengthen its ${limit}, or let it stop in place of being deleted.`;
      return { reason, message };
    }
    // How it starts again each surface says in its own words.
    return { reason, message: sentence(said) };
  }
  if (observed.namespaceGoes === true) {
    const message = `Namespace ${instance.metadata.namespace} is being deleted, and the instance with it.`;
    return { reason: 'NamespaceTerminating', message };
  }
  const next = nextStartOf(instance, now);
  if (next > now && next === limitedUntil(instance, now)) {
    const why = ending === undefined ? '' : `${sentence(ending.message)} `;
    const due = new Date(next).toISOString();
    const message = `${why}The instance has started ${MOST_STARTS} times within an hour, which is the most. The next start is due at ${due}.`;
    return { reason: 'StartLimit', message };
  }
  if (next > now) {
    const isTold = ending?.rule.next === 'backOff' || ending?.reason === 'Preempted';
    const reason = isTold ? ending.rule.afterRelease : 'BackingOff';
    const why = ending?.message ?? 'The last start failed.';
    return { reason, message: `${sentence(why)} The next start is due at ${new Date(next).toISOString()}.` };
  }
  if (template === 'missing') {
    return {
      reason: 'TemplateNotFound',
      message:
        'No template of this namespace, and no shared template, has this id or hash. Name another template, or create this one.',
    };
  }
  if (template === 'tooLarge') {
    const message = `The content of the template has more than ${MAX_FROZEN_BYTES / 1024} KiB. Make it smaller, for example by reading a long script from the image, or name another template.`;
    return { reason: 'TemplateTooLarge', message };
  }
  if (waiting === undefined) return { reason: 'Pending', message: 'The instance waits for its turn.' };
  if (ending === undefined || !isOwed(instance)) return waiting;
  const { afterRelease } = ending.rule;
  const isInterrupted = READY_REASONS[afterRelease].state === 'interrupted';
  // That the owner may do something about it comes first.
  const reason = isInterrupted && waiting.reason !== 'PriceTooHigh' ? afterRelease : waiting.reason;
  return { reason, message: `${sentence(ending.message)} ${waiting.message}` };
}

function readyOf(observed: Observed, waiting: Waiting | undefined): Ready {
  const { metadata, status } = observed.instance;
  if (metadata.deletionTimestamp !== undefined) {
    if (waiting?.reason === 'Deleting') return waiting;
    return {
      reason: 'Deleting',
      message: 'The instance is being deleted. Its GPUs are free when its program has ended.',
    };
  }
  if (status?.claim === undefined) return ofUnclaimed(observed, waiting);
  const ending = endingOf(status);
  return ending === undefined ? ofPod(observed) : { reason: ending.rule.whileEnding, message: ending.message };
}

/** The summary condition. */
export function readyFinding(observed: Observed, waiting: Waiting | undefined): Omit<Finding, 'type'> & Ready {
  const ready = readyOf(observed, waiting);
  return { status: ready.reason === 'Running' ? 'True' : 'False', ...ready };
}
