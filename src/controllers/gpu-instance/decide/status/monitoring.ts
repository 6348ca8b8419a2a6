import { type Finding, findCondition } from '../../../../kube/conditions.ts';
import { hasMonitor } from '../../../../resources/pod/monitor.ts';
import type { MonitorState, Observed } from '../observed.ts';

type Found = Omit<Finding, 'type'>;

const OF_CONTAINER = 'The exporter in the instance measures CPU, memory, disk and network';

/** What is said of the exporter in the instance. */
const EXPORTER: Readonly<Record<MonitorState['gpus'], Found>> = {
  measured: { status: 'True', reason: 'Measures', message: `${OF_CONTAINER}, and the GPUs.` },
  partial: {
    status: 'False',
    reason: 'GpuLoadUnknown',
    message: `${OF_CONTAINER}. The GPUs do not report their load: MIG slices and some older GPUs do not. All that they report is measured.`,
  },
  none: {
    status: 'False',
    reason: 'NoGpuTool',
    message: `${OF_CONTAINER}. It finds neither nvidia-smi nor rocm-smi, so it measures no GPU. The container runtime brings nvidia-smi with the driver; an image for AMD GPUs must have rocm-smi.`,
  },
  failed: {
    status: 'False',
    reason: 'GpuToolFails',
    message: `${OF_CONTAINER}. The tool for the GPUs does not answer. Run nvidia-smi or rocm-smi in the instance to see why.`,
  },
  silent: {
    status: 'False',
    reason: 'DoesNotAnswer',
    message:
      'The exporter in the instance does not answer, so nothing is measured. It starts again by itself when it ends. If this lasts, another program may have its port: start the instance again.',
  },
};

const KEPT = new Set(Object.values(EXPORTER).map(({ reason }) => reason));

/** Until this process has looked, what an earlier look in this start has found holds. */
function lastFound({ instance }: Observed): Found {
  const known = findCondition(instance.status?.conditions, 'Monitoring');
  if (known !== undefined && KEPT.has(known.reason)) {
    const { status, reason, message } = known;
    return { status: status === 'True' ? 'True' : 'False', reason, message };
  }
  return { status: 'Unknown', reason: 'NotSeen', message: 'The controller has not asked the exporter yet.' };
}

function byDcgm({ exporter }: Observed): Found | undefined {
  if (exporter === undefined) return undefined;
  const { name, namespace } = exporter.metadata;
  const message = `Pod ${namespace}/${name} (NVIDIA DCGM exporter) measures the GPUs of this instance.`;
  return { status: 'True', reason: 'ExporterFound', message };
}

/** The condition Monitoring. */
export function monitoring(observed: Observed): Found {
  const { instance, pod, monitor } = observed;
  if (!instance.spec.installMonitoring) {
    return { status: 'False', reason: 'NotRequested', message: 'Nobody asked for monitoring.' };
  }
  if (pod?.spec?.nodeName === undefined) {
    return { status: 'Unknown', reason: 'NoPod', message: 'There is no pod yet.' };
  }
  if (instance.status?.claim?.simulated === true) {
    const message = 'The instance is on a simulated node: no container runs there, so nothing is measured.';
    return { status: 'False', reason: 'Simulated', message };
  }
  if (hasMonitor(pod)) {
    const found = monitor === undefined ? lastFound(observed) : EXPORTER[monitor.gpus];
    return (found.reason === 'NoGpuTool' ? byDcgm(observed) : undefined) ?? found;
  }
  if (instance.status?.runtype === 'args') {
    const message =
      'With runtype args only the program of the image runs, without the exporter, and the node has no NVIDIA DCGM exporter (a pod with label app=nvidia-dcgm-exporter): nothing is measured. The operator can install it, for example with the GPU operator.';
    return byDcgm(observed) ?? { status: 'False', reason: 'ExporterNotFound', message };
  }
  const message =
    'This start has no exporter: installMonitoring was set after it, or an earlier version of Berth made it. Stop the instance and start it again.';
  return { status: 'False', reason: 'NextStart', message };
}
