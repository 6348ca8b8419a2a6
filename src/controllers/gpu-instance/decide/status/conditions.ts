import { type Finding, setCondition } from '../../../../kube/conditions.ts';
import { gpusAre, RECOVERED, recoveredAt } from '../../../../resources/instances/gpu-health.ts';
import { GPU_GRACE_MS } from '../deadlines.ts';
import { gpuHealth } from '../gpu-health.ts';
import type { Observed } from '../observed.ts';
import type { Condition } from '../../../../kube/types.ts';
import type { GpuInstanceStatus } from '../../../../resources/instances/gpu-instance.ts';
import { type InstanceState, READY_REASONS } from '../../../../resources/instances/instance-state.ts';
import { JUPYTER_MISSING, JUPYTER_PORT } from '../../../../resources/pod/jupyter.ts';
import { endingOf } from '../endings.ts';
import { lossSeen } from '../lost-disk.ts';
import { mainStatus, scheduledCondition, waitingState, words } from '../pod/pod-facts.ts';
import { isBadImage, isPullError, pullWords } from '../pod/pull-words.ts';
import { monitoring } from './monitoring.ts';
import { readyFinding, type Waiting } from './ready.ts';

type Found = Omit<Finding, 'type'>;

const NO_POD = { status: 'Unknown', reason: 'NoPod', message: 'There is no pod yet.' } as const;

function claimed({ instance }: Observed, waiting: Waiting | undefined): Found {
  const { claim } = instance.status ?? {};
  if (claim !== undefined) {
    const { gpuCount, product, node, offerId, pricePerHour, currency } = claim;
    const message = `${gpuCount} x ${product} on node ${node} (offer ${offerId}) at ${pricePerHour} ${currency} per hour.`;
    return { status: 'True', reason: 'Granted', message };
  }
  const ending = endingOf(instance.status);
  if (ending?.rule.next === 'stop')
    return { status: 'False', reason: ending.rule.afterRelease, message: ending.message };
  if (instance.spec.powerState === 'Stopped') {
    return { status: 'False', reason: 'Stopped', message: 'A stopped instance holds no GPUs.' };
  }
  return { status: 'False', ...(waiting ?? { reason: 'Pending', message: 'No place is granted yet.' }) };
}

/** Repeats PodScheduled word for word, so that users see what the scheduler says. */
function scheduled({ pod }: Observed): Found {
  const condition = pod && scheduledCondition(pod);
  if (condition === undefined) return NO_POD;
  const status = condition.status === 'True' ? 'True' : 'False';
  const reason = condition.reason ?? (status === 'True' ? 'Scheduled' : 'Pending');
  return { status, reason, message: words(condition.message, '') };
}

function imageReady({ pod }: Observed): Found {
  const main = pod && mainStatus(pod);
  if (pod === undefined || main === undefined) return NO_POD;
  const waiting = waitingState(pod);
  if (waiting !== undefined && (isPullError(waiting.reason) || isBadImage(waiting.reason))) {
    // Some reasons of pulls tell networks from answers.
    const reason = isBadImage(waiting.reason) ? waiting.reason : 'ImagePullBackOff';
    return { status: 'False', reason, message: pullWords(pod, waiting) };
  }
  if (main.state?.running !== undefined || main.state?.terminated !== undefined || main.lastState?.terminated) {
    return { status: 'True', reason: 'Present', message: `The node has ${main.image}.` };
  }
  return { status: 'Unknown', reason: 'Pulling', message: 'The kubelet fetches the image or starts the container.' };
}

function diskReady(observed: Observed): Found {
  const { instance, pod } = observed;
  const { claim, diskPersistent, diskGb } = instance.status ?? {};
  const loss = lossSeen(observed);
  if (loss !== undefined) return { status: 'False', ...loss };
  if (claim === undefined && diskPersistent !== true) {
    return { status: 'Unknown', reason: 'NoDisk', message: 'The disk is created at the first start.' };
  }
  if (diskPersistent === true) {
    const message = `${diskGb} GB at /workspace. Its files are kept when the instance stops.`;
    return { status: 'True', reason: 'Persistent', message };
  }
  const message = `${diskGb} GB at /workspace, on the node itself. Its files are lost when the instance stops.`;
  return pod === undefined
    ? { status: 'Unknown', reason: 'Pending', message }
    : { status: 'True', reason: 'Ephemeral', message };
}

function sshKeys({ instance, keys }: Observed): Found {
  if (keys.missing.length > 0) {
    const ids = keys.missing.join(', ');
    const message = `No SSHKey of this namespace has the id ${ids}. Create it, or remove the id from spec.sshKeyIds.`;
    return { status: 'False', reason: 'KeyNotFound', message };
  }
  if (keys.usable === 0) {
    const message = 'The namespace has no SSHKey, so nobody can log in. Create one.';
    return { status: 'False', reason: 'NoKeys', message };
  }
  return (instance.spec.sshKeyIds?.length ?? 0) > 0
    ? { status: 'True', reason: 'KeysFound', message: 'The keys in spec.sshKeyIds open the instance.' }
    : { status: 'True', reason: 'AllKeys', message: 'All keys of the namespace open the instance.' };
}

const JUPYTER = {
  answers: { status: 'True', reason: 'Answers', message: `Jupyter answers on port ${JUPYTER_PORT}.` },
  silent: {
    status: 'False',
    reason: 'DoesNotAnswer',
    message: `Jupyter is installed, but does not answer on port ${JUPYTER_PORT} yet. The log of the pod says why.`,
  },
  missing: {
    status: 'False',
    reason: JUPYTER_MISSING,
    message: 'The image has no jupyter. Choose an image that has it, or install jupyterlab in onStart.',
  },
  unseen: { status: 'Unknown', reason: 'NotSeen', message: 'The controller has not looked for Jupyter yet.' },
} as const;

function jupyter({ instance, pod, jupyter: state = 'unseen' }: Observed): Found {
  if (instance.status?.runtype !== 'jupyter') {
    return { status: 'False', reason: 'NotRequested', message: 'The runtype is not jupyter.' };
  }
  return pod === undefined ? NO_POD : JUPYTER[state];
}

const HEALTHY: Found = {
  status: 'True',
  reason: 'Healthy',
  message: 'The node reports the GPUs of the instance as healthy.',
};

const HEALTHY_AGAIN: Found = {
  status: 'True',
  reason: RECOVERED,
  message: 'The node reports the GPUs of the instance as healthy again.',
};

/** The condition GPUHealthy; undefined where the kubelet says nothing of the GPUs. */
export function gpuHealthy(observed: Observed): Found | undefined {
  const { spec, status = {} } = observed.instance;
  const health = gpuHealth(observed);
  if (health === undefined) return undefined;
  const { unhealthy, unknown } = health;
  const [first] = unhealthy.toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since));
  if (first !== undefined) {
    const what = `${gpusAre(unhealthy)} unhealthy, as the node reports.`;
    const due = new Date(Date.parse(first.since) + GPU_GRACE_MS).toISOString();
    if (status.ending !== undefined) return { status: 'False', reason: 'Unhealthy', message: what };
    const then =
      spec.onGPUFailure === 'Restart'
        ? `Unless that changes, the controller starts the instance again on healthy GPUs at ${due}.`
        : 'The instance keeps running, as spec.onGPUFailure says. To get healthy GPUs, stop the instance and start it again, or set spec.onGPUFailure to Restart.';
    return { status: 'False', reason: 'Unhealthy', message: `${what} ${then}` };
  }
  if (unknown.length > 0) {
    const ids = unknown.map((id) => ({ id }));
    return { status: 'Unknown', reason: 'Unknown', message: `${gpusAre(ids)} of unknown health, the kubelet reports.` };
  }
  const wasUnhealthy = (status.unhealthyGPUs ?? []).length > 0;
  return wasUnhealthy || recoveredAt(status) !== undefined ? HEALTHY_AGAIN : HEALTHY;
}

const TEMPLATE = {
  same: { status: 'True', reason: 'Unchanged', message: 'The template says what the instance keeps of it.' },
  changed: {
    status: 'False',
    reason: 'TemplateChanged',
    message:
      'The template has changed. The instance keeps what it was rented with. To have the new content, rent another instance, or set fields of this one.',
  },
  gone: {
    status: 'False',
    reason: 'TemplateGone',
    message: 'The template was deleted, or is no longer shared. The instance keeps what it was rented with.',
  },
} as const;

function templateCurrent({ template }: Observed): Found | undefined {
  return typeof template === 'object' ? TEMPLATE[template.fate] : undefined;
}

/** What Ready says, for tools that know how to wait and not what Berth's reasons mean. */
function standing(state: InstanceState, message: string) {
  return (observed: Observed, waiting: Waiting | undefined): Found | undefined => {
    const { reason } = readyFinding(observed, waiting);
    return READY_REASONS[reason].state === state ? { status: 'True', reason, message } : undefined;
  };
}

// kstatus, which Flux and Helm read, waits for ever for an object that is not ready, unless Stalled says that it failed.
const stalled = standing('failed', 'The instance does not recover by itself. Ready says why.');
// Not ready, and as it should be.
const suspended = standing('stopped', 'The instance is off and holds no GPUs. Ready says why.');

/** Every condition, with the summary first. One that is not found is left out. */
const FINDERS: Readonly<Record<string, (observed: Observed, waiting: Waiting | undefined) => Found | undefined>> = {
  Ready: readyFinding,
  Stalled: stalled,
  Suspended: suspended,
  Claimed: claimed,
  Scheduled: scheduled,
  ImageReady: imageReady,
  DiskReady: diskReady,
  SSHKeys: sshKeys,
  Monitoring: monitoring,
  Jupyter: jupyter,
  GPUHealthy: gpuHealthy,
  TemplateCurrent: templateCurrent,
};

/** All conditions. `waiting` is what the search for a place found, when there was one. */
export function conditionsOf(
  observed: Observed,
  waiting: Waiting | undefined,
): NonNullable<GpuInstanceStatus['conditions']> {
  const { instance, now } = observed;
  const context = { observedGeneration: instance.metadata.generation, now };
  let conditions: Condition[] = instance.status?.conditions ?? [];
  for (const [type, find] of Object.entries(FINDERS)) {
    const found = find(observed, waiting);
    if (found === undefined) conditions = conditions.filter((condition) => condition.type !== type);
    else conditions = setCondition(conditions, { type, ...found }, context);
  }
  // metav1.Condition types its status as a string; Finding allows the three words alone.
  return conditions as NonNullable<GpuInstanceStatus['conditions']>;
}
