import { type Finding, setCondition } from '../../../../kube/conditions.ts';
import type { Condition } from '../../../../kube/types.ts';
import type { GpuInstanceStatus } from '../../../../resources/gpu-instance.ts';
import { JUPYTER_MISSING, JUPYTER_PORT } from '../../../../resources/pod/jupyter.ts';
import { endingOf } from '../endings.ts';
import type { Observed } from '../observed.ts';
import { isPullError, mainStatus, podCondition, waitingState, words } from '../pod/pod-facts.ts';
import { readyFinding, type Waiting } from './ready.ts';

const NOT_YET = 'Nothing is known before the pod exists.';

function claimed({ instance }: Observed, waiting: Waiting | undefined): Finding {
  const type = 'Claimed';
  const { claim } = instance.status ?? {};
  if (claim !== undefined) {
    const { gpuCount, product, node, offerId, pricePerHour, currency } = claim;
    const message = `${gpuCount} x ${product} on node ${node} (offer ${offerId}) at ${pricePerHour} ${currency} per hour.`;
    return { type, status: 'True', reason: 'Granted', message };
  }
  const ending = endingOf(instance.status);
  if (ending?.rule.next === 'stop')
    return { type, status: 'False', reason: ending.rule.after, message: ending.message };
  if (instance.spec.powerState === 'Stopped') {
    return { type, status: 'False', reason: 'Stopped', message: 'A stopped instance holds no GPUs.' };
  }
  return {
    type,
    status: 'False',
    reason: waiting?.reason ?? 'Pending',
    message: waiting?.message ?? 'Not granted yet.',
  };
}

/** Mirrors PodScheduled word for word, so that the scheduler is heard. */
function scheduled({ pod }: Observed): Finding {
  const condition = pod && podCondition(pod, 'PodScheduled');
  if (condition === undefined) return { type: 'Scheduled', status: 'Unknown', reason: 'NoPod', message: NOT_YET };
  const status = condition.status === 'True' ? 'True' : 'False';
  const reason = condition.reason ?? (status === 'True' ? 'Scheduled' : 'Pending');
  return { type: 'Scheduled', status, reason, message: words(condition.message, '') };
}

function imageReady({ pod }: Observed): Finding {
  const type = 'ImageReady';
  const main = pod && mainStatus(pod);
  if (pod === undefined || main === undefined) return { type, status: 'Unknown', reason: 'NoPod', message: NOT_YET };
  const waiting = waitingState(pod);
  if (waiting !== undefined && (isPullError(waiting.reason) || waiting.reason === 'InvalidImageName')) {
    return {
      type,
      status: 'False',
      reason: waiting.reason,
      message: words(waiting.message, 'The image cannot be fetched.'),
    };
  }
  if (main.state?.running !== undefined || main.state?.terminated !== undefined || main.lastState?.terminated) {
    return { type, status: 'True', reason: 'Present', message: `The node has ${main.image}.` };
  }
  return {
    type,
    status: 'Unknown',
    reason: 'Pulling',
    message: 'The kubelet fetches the image or starts the container.',
  };
}

function diskReady({ instance, pod }: Observed): Finding {
  const type = 'DiskReady';
  const { claim, diskPersistent, diskGb } = instance.status ?? {};
  if (claim === undefined && diskPersistent !== true) {
    return { type, status: 'Unknown', reason: 'NoDisk', message: 'The disk is made at the first start.' };
  }
  if (diskPersistent === true) {
    return {
      type,
      status: 'True',
      reason: 'Persistent',
      message: `${diskGb} GB at /workspace; what is there survives a stop.`,
    };
  }
  const reason = pod === undefined ? 'Pending' : 'Ephemeral';
  const message = `${diskGb} GB at /workspace on the node; what is there is lost at a stop.`;
  return { type, status: pod === undefined ? 'Unknown' : 'True', reason, message };
}

function sshKeys({ instance, keys }: Observed): Finding {
  const type = 'SSHKeys';
  if (keys.missing.length > 0) {
    const ids = keys.missing.join(', ');
    const message = `No SSHKey of this namespace has the id ${ids}. Create it, or take the id out of spec.sshKeyIds.`;
    return { type, status: 'False', reason: 'KeyNotFound', message };
  }
  if (keys.usable === 0) {
    const message = 'The namespace has no SSHKey, so nobody can log in. Create one.';
    return { type, status: 'False', reason: 'NoKeys', message };
  }
  const named = (instance.spec.sshKeyIds?.length ?? 0) > 0;
  return named
    ? { type, status: 'True', reason: 'KeysFound', message: 'The named keys open the instance.' }
    : { type, status: 'True', reason: 'AllKeys', message: 'All keys of the namespace open the instance.' };
}

function monitoring({ instance, pod, exporter }: Observed): Finding {
  const type = 'Monitoring';
  if (!instance.spec.installMonitoring) {
    return { type, status: 'False', reason: 'NotRequested', message: 'spec.installMonitoring is false.' };
  }
  if (pod?.spec?.nodeName === undefined) return { type, status: 'Unknown', reason: 'NoPod', message: NOT_YET };
  if (exporter === undefined) {
    const message =
      'The node has no NVIDIA DCGM exporter (a pod with label app=nvidia-dcgm-exporter). Install it, for example with the GPU operator.';
    return { type, status: 'False', reason: 'ExporterNotFound', message };
  }
  const { name, namespace } = exporter.metadata;
  const message = `GPU metrics of this instance are exported by pod ${namespace}/${name}, labelled with the pod's name.`;
  return { type, status: 'True', reason: 'ExporterFound', message };
}

const JUPYTER = {
  answers: { status: 'True', reason: 'Answers', message: `Jupyter answers on port ${JUPYTER_PORT}.` },
  silent: {
    status: 'False',
    reason: 'DoesNotAnswer',
    message: `Jupyter is installed and does not answer on port ${JUPYTER_PORT} yet. The log of the pod says why.`,
  },
  missing: {
    status: 'False',
    reason: JUPYTER_MISSING,
    message: 'The image has no jupyter. Choose an image that has it, or install jupyterlab in onStart.',
  },
} as const;

function jupyter({ instance, pod, jupyter: seen }: Observed): Finding {
  const type = 'Jupyter';
  if (instance.status?.runtype !== 'jupyter') {
    return { type, status: 'False', reason: 'NotRequested', message: 'The runtype is not jupyter.' };
  }
  if (pod === undefined) return { type, status: 'Unknown', reason: 'NoPod', message: NOT_YET };
  if (seen === undefined || seen === 'unseen') {
    return { type, status: 'Unknown', reason: 'NotSeen', message: 'Nobody has looked yet.' };
  }
  return { type, ...JUPYTER[seen] };
}

/** Every condition, on the first visit already, in a fixed order with the summary first. */
export function conditionsOf(
  observed: Observed,
  waiting: Waiting | undefined,
): NonNullable<GpuInstanceStatus['conditions']> {
  const { instance, now } = observed;
  const context = { observedGeneration: instance.metadata.generation, now };
  const findings = [
    readyFinding(observed, waiting),
    claimed(observed, waiting),
    scheduled(observed),
    imageReady(observed),
    diskReady(observed),
    sshKeys(observed),
    monitoring(observed),
    jupyter(observed),
  ];
  let conditions: Condition[] = instance.status?.conditions ?? [];
  for (const finding of findings) conditions = setCondition(conditions, finding, context);
  // metav1.Condition types its status as a string; Finding allows the three words alone.
  return conditions as NonNullable<GpuInstanceStatus['conditions']>;
}
