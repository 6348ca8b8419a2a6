import { findCondition } from '../../kube/conditions.ts';
import type { Node, Pod } from '../../kube/types.ts';
import { isOutOfService, isSimulated } from './node-state.ts';
import { hasEnded } from '../../kube/pod-phase.ts';

/**
 * Whether the kubelet spoke of a pod since it is Failed, and the pod has no sandbox in which a container could run or be
 * started. Of containers that never ran it says nothing else (kubernetes pkg/kubelet/status, TerminatePod).
 */
function isLetGo({ status }: Pod): boolean {
  const { conditions } = status ?? {};
  const hasFailed = findCondition(conditions, 'ContainersReady')?.reason === 'PodFailed';
  return hasFailed && findCondition(conditions, 'PodReadyToStartContainers')?.status === 'False';
}

/**
 * Whether the kubelet said that a pod has ended. It does so when no container runs any more and none will be started
 * (kubernetes pkg/kubelet/status, mergePodStatus). The garbage collector of pods writes Failed as well, and knows
 * nothing of containers.
 */
export function hasStopped(pod: Pod): boolean {
  // A pod that is being deleted holds its GPUs until it has ended (k8s-device-plugin#335, gpu-operator#303).
  if (!hasEnded(pod)) return false;
  const { conditions, initContainerStatuses = [], containerStatuses = [] } = pod.status ?? {};
  const isCollected = findCondition(conditions, 'DisruptionTarget')?.reason === 'DeletionByPodGC';
  const containers = [...initContainerStatuses, ...containerStatuses];
  if (isCollected && !isLetGo(pod))
    return containers.length > 0 && containers.every(({ state }) => state?.terminated !== undefined);
  return containers.every(({ state }) => state?.running === undefined || state.terminated !== undefined);
}

/**
 * Whether the program of a pod may run, now or later. What says that it does not, stays so. `node`: that of the pod,
 * undefined when it is gone.
 */
export function mayRun(pod: Pod, node: Node | undefined): boolean {
  if (hasStopped(pod)) return false;
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  if (deletionTimestamp === undefined) return true;
  // The API server binds no pod that is being deleted.
  if (pod.spec?.nodeName === undefined || node === undefined || isOutOfService(node)) return false;
  // The program that plays the kubelet runs nothing, and says nothing of containers: it deletes the pod.
  return !isSimulated(node) || deletionGracePeriodSeconds !== 0;
}
