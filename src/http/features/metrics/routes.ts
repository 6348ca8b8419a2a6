import { setImmediate as turn } from 'node:timers/promises';
import type { Logger } from 'pino';
import { runningPod } from '../../../access/pod-target.ts';
import type { Stores } from '../../../caches/caches.ts';
import { dcgmExporterOn } from '../../../caches/dcgm.ts';
import { findCondition } from '../../../kube/conditions.ts';
import type { Pod } from '../../../kube/types.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { FairShares } from '../../../lib/shares.ts';
import type { ReadMonitor } from '../../../ports/read-monitor.ts';
import type { GpuInstance } from '../../../resources/instances/gpu-instance.ts';
import { instanceState } from '../../../resources/instances/instance-state.ts';
import { hasMonitor } from '../../../resources/pod/monitor.ts';
import { ApiError } from '../../interface/errors/api-error.ts';
import { overloaded } from '../../interface/errors/busy.ts';
import { route } from '../../interface/route.ts';
import { sendJson, sendText } from '../../interface/send.ts';
import { isSimulated } from '../instances/container.ts';
import { instanceOf, type InstanceSource } from '../instances/find.ts';
import { fetchDcgm, readDcgm } from './dcgm.ts';
import { type Measured, readReport, withDcgm } from './measured.ts';
import { formatOf, prometheusText, TEXT_TYPES } from './prometheus.ts';
import { type MetricsRecord, metricsSchema, STEP_SECONDS } from './schema.ts';

export interface MetricsContext extends InstanceSource {
  clock: Clock;
  log: Logger;
  logReads: FairShares;
  readMonitor: ReadMonitor;
  stores: Stores<'instances' | 'pods' | 'namespaces' | 'apiKeys'>;
}

/** Milliseconds for one answer. A scrape of Prometheus waits ten seconds. */
const READ_MS = 8_000;

/** The pod, and why nothing can be measured where that is so. */
function measuredPod(instance: GpuInstance, { stores }: MetricsContext): Pod {
  if (isSimulated(instance)) {
    const message =
      'The instance is on a simulated node: no container runs there, so nothing is measured. Rent on a real node.';
    throw new ApiError('instance_simulated', message);
  }
  if (!instance.spec.installMonitoring) {
    const message =
      'Nothing measures this instance: it was rented without install_monitoring. Rent another with "install_monitoring": true.';
    throw new ApiError('not_measured', message);
  }
  const pod = runningPod(instance, stores.pods);
  if (pod !== undefined) return pod;
  const { state, message } = instanceState(instance);
  throw new ApiError('instance_not_running', `The instance is ${state}, so nothing is measured. ${message}`.trim());
}

/** Why nothing was measured, in the words of the condition where it has some. */
function unavailable(instance: GpuInstance, pod: Pod, cause: unknown): ApiError {
  const condition = findCondition(instance.status?.conditions, 'Monitoring');
  if (!hasMonitor(pod) && condition?.status === 'False') return new ApiError('not_measured', condition.message);
  const message =
    'The exporter of the instance does not answer now. It starts with the instance, and again when it ends. Try again.';
  return new ApiError('metrics_unavailable', message, { retryAfterSeconds: 5, cause });
}

async function measure(context: MetricsContext, instance: GpuInstance, signal: AbortSignal): Promise<Measured> {
  const { clock, log, readMonitor, stores } = context;
  const pod = measuredPod(instance, context);
  const { name, namespace = '' } = pod.metadata;
  const dcgm = dcgmExporterOn(stores, pod.spec?.nodeName ?? '');
  const [own, node] = await Promise.allSettled([
    hasMonitor(pod) ? readMonitor({ namespace, pod: name }, signal) : undefined,
    dcgm && fetchDcgm(dcgm, signal),
  ]);
  if (node.status === 'rejected')
    log.info({ err: node.reason, node: pod.spec?.nodeName }, 'DCGM exporter did not answer');
  let cause = own.status === 'rejected' ? own.reason : undefined;
  let report: Measured | undefined;
  try {
    if (own.status === 'fulfilled' && own.value !== undefined) report = await readReport(own.value, clock.now());
  } catch (error) {
    cause = error;
  }
  const text = node.status === 'fulfilled' ? node.value : undefined;
  const found = withDcgm(report, text === undefined ? undefined : readDcgm(text, { namespace, name }, clock.now()));
  if (found === undefined) throw unavailable(instance, pod, cause);
  return found;
}

function toRecord(instance: GpuInstance, { at, gpuSource, gpus, series }: Measured): MetricsRecord {
  const length = Math.max(1, ...series.map(({ values }) => values.length));
  return {
    object: 'list',
    instance_id: instance.metadata.name,
    from: new Date(at - (length - 1) * STEP_SECONDS * 1000).toISOString(),
    step_seconds: STEP_SECONDS,
    gpu_source: gpuSource,
    gpus: [...gpus],
    data: series.toSorted((a, b) => (a.gpu ?? -1) - (b.gpu ?? -1) || a.name.localeCompare(b.name)),
  };
}

/** Series that are written in one go: some two milliseconds. */
const SERIES_AT_ONCE = 64;

/** The record as JSON. An hour of 64 GPUs has 900 KB, and others have their turn meanwhile. */
async function textOf({ data, ...head }: MetricsRecord): Promise<string> {
  const parts: string[] = [];
  for (let from = 0; from < data.length; from += SERIES_AT_ONCE) {
    if (from > 0) await turn();
    parts.push(JSON.stringify(data.slice(from, from + SERIES_AT_ONCE)).slice(1, -1));
  }
  return `${JSON.stringify(head).slice(0, -1)},"data":[${parts.join(',')}]}`;
}

export const readMetricsRoute = route({
  method: 'get',
  path: '/instances/{instanceId}/metrics',
  id: 'getInstanceMetrics',
  tag: 'Instances',
  scope: 'compute:read',
  compressed: true,
  summary: 'Read what an instance uses',
  description:
    'CPU, memory, disk, network and GPUs of an instance that was rented with install_monitoring, for the last hour. ' +
    'With Accept: text/plain or application/openmetrics-text the newest values as Prometheus scrapes them: the gauges ' +
    'are called berth_instance_ and the name of the series, and counters stand for the rates. An exporter in the ' +
    'instance measures; it forgets when the container starts again. With runtype args there is none, and NVIDIA DCGM ' +
    'exporter of the node tells the current values of the GPUs, where the operator has installed it.',
  success: { status: 200, schema: metricsSchema, description: 'The last hour, in steps.' },
  plainText: "The newest values in Prometheus' text format 0.0.4.",
  openMetrics: 'The newest values in OpenMetrics 1.0.0.',
  errors: ['instance_not_found', 'instance_not_running', 'instance_simulated', 'not_measured', 'metrics_unavailable'],
  async handle(context: MetricsContext, { request, response, caller: { namespace } }) {
    const { clock, logReads } = context;
    const instance = await instanceOf(context, request);
    // Each reading asks the node.
    if (logReads.take(namespace, 1) !== 'taken') throw overloaded('readings of measurements');
    const over = new AbortController();
    const cancel = clock.setTimeout(() => over.abort(), READ_MS);
    response.once('close', () => over.abort());
    try {
      const measured = await measure(context, instance, over.signal);
      const format = formatOf(request.headers.accept);
      if (format === 'json') sendJson(response, await textOf(toRecord(instance, measured)));
      else sendText(response, prometheusText(instance.metadata.name, measured, format), TEXT_TYPES[format]);
    } catch (error) {
      if (!response.destroyed) throw error;
    } finally {
      cancel();
      logReads.give(namespace, 1);
    }
  },
});
