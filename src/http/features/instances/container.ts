import { KubeError, NotFoundError, TimeoutError } from '../../../kube/errors.ts';
import type { LogTarget } from '../../../kube/streams/pod-log.ts';
import { keyOf, type Pod } from '../../../kube/types.ts';
import { hasInOrder } from '../../../lib/in-order.ts';
import type { ReadStore } from '../../../kube/watch/store.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { MAIN_CONTAINER } from '../../../resources/pod/tools-volume.ts';
import { ApiError } from '../../interface/errors/api-error.ts';

/** The container of an instance whose log can be read. */
export interface LoggedContainer {
  target: LogTarget;
  /** Number of the start: each has a pod of its own. */
  start: number;
  id: string;
  running: boolean;
  /** The container before the last restart in this pod. */
  previous?: { id: string; finishedAt: string };
}

/** Undefined while there is none: before the first container starts, and once the pod is gone. */
export function loggedContainer({ metadata, status }: GpuInstance, pods: ReadStore<Pod>): LoggedContainer | undefined {
  const { podName, incarnation: start = 0 } = status ?? {};
  if (podName === undefined) return undefined;
  const { namespace = '' } = metadata;
  const pod = pods.get(keyOf({ namespace, name: podName }));
  const main = pod?.status?.containerStatuses?.find(({ name }) => name === MAIN_CONTAINER);
  const { running, terminated } = main?.state ?? {};
  const last = main?.lastState?.terminated;
  const isNewest = running !== undefined || terminated !== undefined;
  // Between two starts of the container the kubelet has the log of the one that ended.
  const id = (isNewest ? main?.containerID : undefined) || last?.containerID;
  if (id === undefined || id === '') return undefined;
  const hasPrevious = isNewest && last?.containerID !== undefined && last.containerID !== id;
  return {
    target: { namespace, pod: podName, container: MAIN_CONTAINER },
    start,
    id,
    running: running !== undefined,
    ...(hasPrevious && { previous: { id: last.containerID ?? '', finishedAt: last.finishedAt ?? '' } }),
  };
}

export function isSimulated({ status }: GpuInstance): boolean {
  return status?.claim?.simulated ?? false;
}

export function simulatedHasNoLog(): ApiError {
  return new ApiError(
    'instance_simulated',
    'The instance is on a simulated node: no container runs there, so there is no log.',
  );
}

/** The 409 for an instance without a container, in the words of its state. */
export function noContainer(instance: GpuInstance): ApiError {
  const { state, reason, message } = instanceState(instance);
  const why = message === '' ? '' : ` ${message}`;
  const gone = state === 'stopped' || state === 'failed';
  const next = gone
    ? 'No log of its last start was kept: its container never started, or its node did not answer. Start the instance to get one.'
    : 'Try again when it runs, or use follow=true, which waits.';
  return new ApiError(
    'instance_not_running',
    `The instance is ${state} (${reason}): it has no container now, so there is no log to read.${why} ${next}`,
  );
}

// The words of the kubelet (pkg/kubelet/kubelet_pods.go, validateContainerLogStatus), which come as 400.
const NO_PREVIOUS = ['previous terminated container ', ' not found'];
const NO_CONTAINER = /is waiting to start|is terminated|is not available/;

/** Whether the kubelet knows of no container before the last restart. */
export function saysNoPrevious({ status, statusMessage }: KubeError): boolean {
  return status === 400 && hasInOrder(statusMessage, NO_PREVIOUS);
}

/** The answer for a log that the kubelet does not give. */
export function logFailure(error: unknown, instance: GpuInstance): unknown {
  if (!(error instanceof KubeError)) return error;
  const { status, statusMessage } = error;
  if (error instanceof NotFoundError) return noContainer(instance);
  if (saysNoPrevious(error)) {
    const message = 'The container was not restarted since the instance was started: there is no earlier log.';
    return new ApiError('log_not_found', message, { cause: error });
  }
  if (status === 400 && NO_CONTAINER.test(statusMessage)) return noContainer(instance);
  if (status === 400) {
    const message = 'The node has this log no more: it was rotated away, or the container was removed.';
    return new ApiError('log_not_found', message, { cause: error });
  }
  if (status >= 500 || error instanceof TimeoutError) return nodeSilent(instance, error);
  return error;
}

export function nodeSilent(instance: GpuInstance | undefined, cause: unknown): ApiError {
  const node = instance?.status?.claim?.node;
  const message = `The node ${node === undefined ? '' : `${node} `}of the instance does not give its log now. The instance may run on. Try again.`;
  return new ApiError('log_unavailable', message, { retryAfterSeconds: 5, cause });
}
