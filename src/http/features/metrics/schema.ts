import { z } from 'zod';
import { listOf, named } from '../../interface/schema.ts';

/** Values of one series: an hour. */
export const MAX_VALUES = 240;
/** GPUs of one instance. */
export const MAX_GPUS = 64;
/** Seconds between two values. */
export const STEP_SECONDS = 15;

/** Every series, with what it is. */
export const SERIES = {
  cpu_cores: 'CPU cores in use, on average since the value before.',
  memory_used_bytes: 'Memory in use, without file cache that the kernel can take back.',
  memory_limit_bytes: 'Memory that the instance may use.',
  disk_read_bytes_per_second: 'Bytes read from disks per second.',
  disk_written_bytes_per_second: 'Bytes written to disks per second.',
  disk_used_bytes: 'Space in use on the disk at /workspace. Absent for a disk on the node itself.',
  disk_limit_bytes: 'Space on the disk at /workspace. Absent for a disk on the node itself.',
  network_receive_bytes_per_second: 'Bytes received per second.',
  network_transmit_bytes_per_second: 'Bytes sent per second.',
  gpu_utilization_ratio: 'Share of the time in which the GPU worked, 0 to 1. Absent for MIG slices without DCGM.',
  gpu_memory_used_bytes: 'GPU memory in use.',
  gpu_memory_limit_bytes: 'GPU memory.',
  gpu_temperature_celsius: 'Temperature of the GPU.',
  gpu_power_watts: 'Power that the GPU draws.',
  gpu_last_xid: 'The last Xid error of the GPU, 0 for none. Only NVIDIA DCGM exporter tells it.',
} as const;

export type SeriesName = keyof typeof SERIES;

export function isSeriesName(name: string): name is SeriesName {
  return Object.hasOwn(SERIES, name);
}

const seriesSchema = z
  .object({
    name: z.enum(Object.keys(SERIES) as SeriesName[]).describe(
      Object.entries(SERIES)
        .map(([name, help]) => `${name}: ${help}`)
        .join(' '),
    ),
    gpu: z.int().min(0).nullable().describe('Index in `gpus`; null for the whole instance.'),
    values: z
      .array(z.number().min(0).nullable())
      .max(MAX_VALUES)
      .describe('One value per step, the oldest first. All series have as many. null: not measured.'),
  })
  .describe('One measurement over time.');

export const metricsSchema = named(
  'Metrics',
  listOf(seriesSchema)
    .extend({
      instance_id: z.string(),
      from: z.string().meta({ format: 'date-time', description: 'Time of the first value. RFC 3339, UTC.' }),
      step_seconds: z.number().describe('Seconds between two values.'),
      gpu_source: z
        .enum(['nvidia-smi', 'rocm-smi', 'dcgm'])
        .nullable()
        .describe('The source of the measurements of GPUs; null when there is none. dcgm has only the current values.'),
      gpus: z
        .array(z.object({ uuid: z.string().nullable().describe('UUID of the GPU, where it is known.') }))
        .max(MAX_GPUS)
        .describe('The GPUs that are measured.'),
    })
    .describe('The use of an instance in the last hour, as its own container and the node report it.'),
);

export type MetricsRecord = z.infer<typeof metricsSchema>;
