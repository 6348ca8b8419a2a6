/** Label of NVIDIA's metrics exporter, as its chart and the GPU operator set it. */
export const EXPORTER_LABEL = { app: 'nvidia-dcgm-exporter' } as const;
