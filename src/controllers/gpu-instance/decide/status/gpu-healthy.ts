import type { Finding } from '../../../../kube/conditions.ts';
import { gpusAre, recoveredAt, RECOVERED } from '../../../../resources/instances/gpu-health.ts';
import { GPU_GRACE_MS } from '../deadlines.ts';
import { gpuHealth } from '../gpu-health.ts';
import type { Observed } from '../observed.ts';

type Found = Omit<Finding, 'type'>;

const HEALTHY: Found = {
  status: 'True',
  reason: 'Healthy',
  message: 'The kubelet reports the GPUs of the instance as healthy.',
};

const HEALTHY_AGAIN: Found = {
  status: 'True',
  reason: RECOVERED,
  message: 'The kubelet reports the GPUs of the instance as healthy again.',
};

/** The condition GPUHealthy; undefined where the kubelet says nothing of the GPUs. */
export function gpuHealthy(observed: Observed): Found | undefined {
  const { spec, status = {} } = observed.instance;
  const health = gpuHealth(observed);
  if (health === undefined) return undefined;
  const { unhealthy, unknown } = health;
  const [first] = unhealthy.toSorted((a, b) => Date.parse(a.since) - Date.parse(b.since));
  if (first !== undefined) {
    const what = `${gpusAre(unhealthy)} unhealthy, as the device plugin of the node reports.`;
    const due = new Date(Date.parse(first.since) + GPU_GRACE_MS).toISOString();
    if (status.ending !== undefined) return { status: 'False', reason: 'Unhealthy', message: what };
    const then =
      spec.onGPUFailure === 'Restart'
        ? `Unless that changes, the controller starts the instance again on healthy GPUs at ${due}.`
        : 'The instance goes on, as spec.onGPUFailure says. To get healthy GPUs, stop the instance and start it again, or set spec.onGPUFailure to Restart.';
    return { status: 'False', reason: 'Unhealthy', message: `${what} ${then}` };
  }
  if (unknown.length > 0) {
    const ids = unknown.map((id) => ({ id }));
    return { status: 'Unknown', reason: 'Unknown', message: `${gpusAre(ids)} of unknown health, the kubelet reports.` };
  }
  const wasUnhealthy = (status.unhealthyGPUs ?? []).length > 0;
  return wasUnhealthy || recoveredAt(status) !== undefined ? HEALTHY_AGAIN : HEALTHY;
}
