import { z } from 'zod';
import { isSeriesName, MAX_GPUS, MAX_VALUES, type MetricsRecord, type SeriesName } from './schema.ts';

export type GpuSource = NonNullable<MetricsRecord['gpu_source']>;
export type Series = MetricsRecord['data'][number];

/** The counters behind the rates, for Prometheus. */
export const COUNTERS = {
  cpu_seconds_total: { rate: 'cpu_cores', help: 'CPU time used.' },
  disk_read_bytes_total: { rate: 'disk_read_bytes_per_second', help: 'Bytes read from disks.' },
  disk_written_bytes_total: { rate: 'disk_written_bytes_per_second', help: 'Bytes written to disks.' },
  network_receive_bytes_total: { rate: 'network_receive_bytes_per_second', help: 'Bytes received.' },
  network_transmit_bytes_total: { rate: 'network_transmit_bytes_per_second', help: 'Bytes sent.' },
} as const satisfies Record<string, { rate: SeriesName; help: string }>;

export type CounterName = keyof typeof COUNTERS;

/** What is known of an instance. Every series has as many values. */
export interface Measured {
  /** Time of the newest value, milliseconds since the epoch. */
  at: number;
  gpuSource: GpuSource | null;
  gpus: readonly { uuid: string | null }[];
  series: readonly Series[];
  totals: Readonly<Partial<Record<CounterName, number>>>;
}

/** UUIDs go into answers and labels: nothing else that a tenant writes does. */
const UUID = /^(GPU|MIG)-[0-9A-Za-z/-]{1,80}$/;
/** Longest time since the newest value, in seconds. */
const MAX_AGE = 3_600;
const MAX_SERIES = 16 + MAX_GPUS * 8;

const numberSchema = z.number().min(0).max(Number.MAX_SAFE_INTEGER);

const reportSchema = z.object({
  age: z.number().min(0).max(MAX_AGE).catch(MAX_AGE),
  tool: z.enum(['nvidia-smi', 'rocm-smi']).nullable().catch(null),
  gpus: z.array(z.object({ uuid: z.string().regex(UUID).nullable().catch(null) })).max(MAX_GPUS),
  totals: z.record(z.string().max(64), numberSchema.nullable().catch(null)).nullable().catch(null),
  series: z
    .array(
      z.object({
        name: z.string().max(64),
        gpu: z.int().min(0).max(MAX_GPUS).nullish(),
        values: z.array(numberSchema.nullable().catch(null)).max(MAX_VALUES),
      }),
    )
    .max(MAX_SERIES),
});

/** Whole numbers from a million on, else nine digits: more than any of the meters knows. */
export function rounded(value: number): number {
  return value >= 1e6 ? Math.round(value) : Number(value.toPrecision(9));
}

/** The exporter has the percent of its tools. */
function converted({ name, values }: { name: string; values: (number | null)[] }) {
  if (name !== 'gpu_utilization_percent') return { name, values: values.map((one) => one && rounded(one)) };
  return {
    name: 'gpu_utilization_ratio',
    values: values.map((one) => (one === null ? null : rounded(Math.min(1, one / 100)))),
  };
}

function counters(totals: Record<string, number | null> | null): Measured['totals'] {
  const known = Object.entries(totals ?? {}).filter(([name, value]) => Object.hasOwn(COUNTERS, name) && value !== null);
  return Object.fromEntries(known);
}

/**
 * What the exporter of an instance reports, at `now` (milliseconds since the epoch). It runs in the tenant's container:
 * only known series with numbers are kept, and at most an hour of them. Throws when it is no report.
 */
export function readReport(text: string, now: number): Measured {
  const { age, tool, gpus, totals, series } = reportSchema.parse(JSON.parse(text));
  const length = Math.max(0, ...series.map(({ values }) => values.length));
  const seen = new Set<string>();
  const kept: Series[] = [];
  for (const one of series) {
    const { name, values } = converted(one);
    const gpu = one.gpu ?? null;
    const isOfGpu = name.startsWith('gpu_');
    if (!isSeriesName(name) || isOfGpu !== (gpu !== null) || (gpu !== null && gpu >= gpus.length)) continue;
    if (seen.has(`${name}/${gpu}`)) continue;
    seen.add(`${name}/${gpu}`);
    kept.push({ name, gpu, values: [...Array<null>(length - values.length).fill(null), ...values] });
  }
  return { at: now - age * 1000, gpuSource: tool, gpus, series: kept, totals: counters(totals) };
}

/** Adds what DCGM says now: all of the GPUs where the exporter measures none, else the Xid errors alone. */
export function withDcgm(measured: Measured | undefined, dcgm: Measured | undefined): Measured | undefined {
  if (measured === undefined || dcgm === undefined) return measured ?? dcgm;
  const length = Math.max(1, ...measured.series.map(({ values }) => values.length));
  const placed = (one: Series, gpu: number): Series => ({
    ...one,
    gpu,
    values: [...Array<null>(length - 1).fill(null), one.values.at(-1) ?? null],
  });
  if (measured.gpuSource === null) {
    const series = dcgm.series.map((one) => placed(one, one.gpu ?? 0));
    return { ...measured, gpuSource: 'dcgm', gpus: dcgm.gpus, series: [...measured.series, ...series] };
  }
  const xids = dcgm.series.flatMap((one) => {
    const uuid = one.name === 'gpu_last_xid' ? (dcgm.gpus[one.gpu ?? -1]?.uuid ?? null) : null;
    const gpu = uuid === null ? -1 : measured.gpus.findIndex((known) => known.uuid === uuid);
    return gpu === -1 ? [] : [placed(one, gpu)];
  });
  return { ...measured, series: [...measured.series, ...xids] };
}
