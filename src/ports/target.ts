import { podTarget, runningPod } from '../access/pod-target.ts';
import { findCondition } from '../kube/conditions.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Pod } from '../kube/types.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import { instanceState } from '../resources/instances/instance-state.ts';
import { JUPYTER_MISSING, JUPYTER_PORT } from '../resources/pod/jupyter.ts';
import { MAIN_CONTAINER } from '../resources/pod/tools-volume.ts';
import { PortError } from './errors.ts';

/** A port of the pod that an instance has now. */
export interface PortTarget {
  namespace: string;
  instance: string;
  pod: string;
  podUid: string;
  port: number;
  /** Of the pod, where the instance has the tools of the direct way. */
  address: string | undefined;
  /** Berth started Jupyter there, and knows its token. */
  jupyter: boolean;
}

/** Throws {@link PortError} if the instance does not run or did not declare the port: SSH alone reaches such ports. */
export function targetOf(instance: GpuInstance, port: number, pods: ReadStore<Pod>): PortTarget {
  const { name, namespace = '' } = instance.metadata;
  if (instance.status?.claim?.simulated === true) {
    throw new PortError(
      'instance_simulated',
      `Instance ${name} is on a simulated node: no container runs there, so no port answers. Rent on a real node.`,
    );
  }
  const pod = runningPod(instance, pods);
  if (pod === undefined) {
    const { state, message } = instanceState(instance);
    throw new PortError('instance_not_running', `Instance ${name} is ${state}. ${message}`.trim());
  }
  const main = pod.spec?.containers.find((one) => one.name === MAIN_CONTAINER);
  const declared = (main?.ports ?? []).filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  if (!declared.some(({ containerPort }) => containerPort === port)) {
    const list = declared.map(({ containerPort }) => containerPort).join(', ');
    throw new PortError(
      'port_not_declared',
      `Instance ${name} declares ${list === '' ? 'no TCP port' : `the TCP ports ${list}, and not ${port}`}. Add ${port} to its ports and start it again, or use ssh -L.`,
    );
  }
  const jupyter = instance.status?.runtype === 'jupyter' && port === JUPYTER_PORT;
  const known = jupyter ? findCondition(instance.status?.conditions, 'Jupyter') : undefined;
  if (known?.reason === JUPYTER_MISSING) throw new PortError('port_unreachable', known.message);
  const { pod: podName, uid: podUid, tools, address } = podTarget(pod);
  return { namespace, instance: name, pod: podName, podUid, port, address: tools ? address : undefined, jupyter };
}
