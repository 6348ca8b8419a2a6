import type { Finding } from '../../../../kube/conditions.ts';
import { MAX_FROZEN_BYTES } from '../../../../resources/instance-template.ts';
import { isSwitchedOff, READY_REASONS, type ReadyReason } from '../../../../resources/instances/instance-state.ts';
import { hasImage } from '../../../../inventory/offers.ts';
import { endingOf } from '../endings.ts';
import { nextStartOf } from '../failures.ts';
import type { Observed } from '../observed.ts';
import {
  isNotCreated,
  isPodReady,
  isPullError,
  mainStatus,
  scheduledCondition,
  pullWords,
  sentence,
  waitingState,
  words,
} from '../pod/pod-facts.ts';
import { nodeLostSince, NODE_GRACE_MS } from '../deadlines.ts';

/** Reason and message of the Ready condition. */
interface Ready {
  reason: ReadyReason;
  message: string;
}

/** Why an instance without a claim waits, as the search for a place found. */
export type Waiting = Ready;

function ofPod(observed: Observed): Ready {
  const { pod, node, login } = observed;
  if (pod === undefined) return { reason: 'Scheduling', message: 'The place is granted. The pod is being created.' };
  if (nodeLostSince(observed) + NODE_GRACE_MS <= observed.now) {
    const name = observed.instance.status?.claim?.node ?? '';
    const message = `Node ${name} does not answer. The instance goes on when the node comes back. If Kubernetes deletes the pod first, the instance starts on another node.`;
    return { reason: 'NodeLost', message };
  }
  const scheduled = scheduledCondition(pod);
  if (scheduled?.status !== 'True') {
    if (scheduled?.reason !== 'Unschedulable')
      return { reason: 'Scheduling', message: 'The scheduler is binding the pod.' };
    return { reason: 'Unschedulable', message: words(scheduled.message, 'The scheduler cannot bind the pod.') };
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
    return { reason: 'ImagePullBackOff', message: `${waiting.reason}: ${pullWords(pod, waiting.message)}` };
  }
  if (waiting !== undefined && isNotCreated(waiting.reason)) {
    return { reason: 'Starting', message: `${waiting.reason}: ${words(waiting.message, 'the kubelet tries again')}` };
  }
  if (waiting?.reason === 'CrashLoopBackOff') {
    const last = mainStatus(pod)?.lastState?.terminated;
    const code = last === undefined ? '' : ` Its last exit code was ${last.exitCode}.`;
    return { reason: 'CrashLoop', message: `${words(waiting.message, 'The container ends again and again.')}${code}` };
  }
  const image = pod.spec?.containers[0]?.image ?? '';
  const running = mainStatus(pod)?.state?.running !== undefined;
  const onNode = node?.status?.images?.some(({ names }) => hasImage({ images: new Set(names) }, image)) ?? false;
  if (!running && !onNode && node !== undefined && pod.status?.containerStatuses !== undefined) {
    return { reason: 'PullingImage', message: `Node ${node.metadata.name} fetches ${image}.` };
  }
  return { reason: 'Starting', message: 'The container starts.' };
}

function ofUnclaimed(observed: Observed, waiting: Waiting | undefined): Ready {
  const { instance, pods, template, now } = observed;
  const ending = endingOf(instance.status);
  if (pods.length > 0) return { reason: 'Stopping', message: 'A pod of an earlier start is still ending.' };
  const isOver = ending?.rule.next === 'stop';
  if (isSwitchedOff(instance)) {
    const reason = isOver ? ending.rule.afterRelease : 'Stopped';
    const said = isOver && ending.reason !== 'Stopped' ? ending.message : 'The GPUs are free.';
    const how =
      instance.spec.powerState === 'Stopped'
        ? 'set spec.powerState to Running'
        : 'write a new text, such as the time, to spec.startRequest';
    return { reason, message: `${sentence(said)} To start it again, ${how}, or PATCH state to running over HTTP.` };
  }
  const next = nextStartOf(instance);
  if (next > now) {
    const reason = ending?.rule.next === 'backOff' ? ending.rule.afterRelease : 'BackingOff';
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
  if (ending !== undefined && READY_REASONS[ending.rule.afterRelease].state === 'interrupted') {
    return { reason: ending.rule.afterRelease, message: `${sentence(ending.message)} ${waiting.message}` };
  }
  return waiting;
}

function readyOf(observed: Observed, waiting: Waiting | undefined): Ready {
  const { metadata, status } = observed.instance;
  if (metadata.deletionTimestamp !== undefined) {
    return { reason: 'Deleting', message: 'The instance is being deleted. Its GPUs are free when its pod is gone.' };
  }
  if (status?.claim === undefined) return ofUnclaimed(observed, waiting);
  const ending = endingOf(status);
  return ending === undefined ? ofPod(observed) : { reason: ending.rule.whileEnding, message: ending.message };
}

/** The summary condition. */
export function readyFinding(observed: Observed, waiting: Waiting | undefined): Omit<Finding, 'type'> {
  const ready = readyOf(observed, waiting);
  return { status: ready.reason === 'Running' ? 'True' : 'False', ...ready };
}
