import type { ExecTarget } from '../kube/streams/exec.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import { keyOf, type Pod } from '../kube/types.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { hasTools, MAIN_CONTAINER } from '../resources/pod/tools-volume.ts';

/** A pod of an instance, and the container that commands run in. */
export interface PodTarget extends ExecTarget {
  uid: string;
  /** Whether the tools volume is mounted. */
  tools: boolean;
  /** Of the pod; unknown to some callers. */
  address?: string | undefined;
}

export function podTarget(pod: Pod): PodTarget {
  const { name, namespace = '', uid = '' } = pod.metadata;
  const address = pod.status?.podIP;
  return { namespace, pod: name, container: MAIN_CONTAINER, uid, tools: hasTools(pod), address };
}

/** The instance's pod when its main container runs; undefined too when the instance is being deleted. */
export function runningPod({ metadata, status }: GpuInstance, pods: ReadStore<Pod>): Pod | undefined {
  if (status?.podName === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  const pod = pods.get(keyOf({ namespace: metadata.namespace, name: status.podName }));
  const main = pod?.status?.containerStatuses?.find(({ name }) => name === MAIN_CONTAINER);
  return main?.state?.running === undefined ? undefined : pod;
}
