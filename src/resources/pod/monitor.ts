import type { Pod } from '../../kube/types.ts';

/** Port on the loopback of an instance where the exporter of `installMonitoring` answers. */
export const MONITOR_PORT = 44_189;

/** On a pod that was made with the exporter. */
export const MONITOR_LABEL = 'berth.dev/monitor';
export const MONITOR_LABELS = { [MONITOR_LABEL]: 'true' } as const;

/** Whether the exporter was started in this pod. */
export function hasMonitor({ metadata }: Pick<Pod, 'metadata'>): boolean {
  return metadata.labels?.[MONITOR_LABEL] === 'true';
}

/** What the exporter says in short. */
export interface MonitorLine {
  /** The program that tells about the GPUs; `failed` when it does not answer. */
  tool: 'nvidia-smi' | 'rocm-smi' | 'none' | 'failed';
  /** How many GPUs tell their load. */
  measured: number;
  /** Seconds since a GPU was busy; undefined when none ever was. */
  idleSeconds: number | undefined;
}

/** Label of NVIDIA's metrics exporter, as its chart and the GPU operator set it. */
export const EXPORTER_LABEL = { app: 'nvidia-dcgm-exporter' } as const;
