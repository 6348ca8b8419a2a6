import { setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { isObject } from '../../../lib/json.ts';
import { countStructure } from '../../../lib/json-structure.ts';
import { cutList } from './report-pieces.ts';
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
/** Objects, lists and commas of the longest report: a schema looks at each before it refuses. */
const STRUCTURE_MAX = MAX_SERIES * (MAX_VALUES + 8);
/** Characters of a report beside its series, and of one series. */
const MAX_REST = 64 * 1024;
const MAX_ONE = 16 * 1024;
/** Series that are read in one go: some two milliseconds. Others have their turn after them. */
const SERIES_AT_ONCE = 32;

const numberSchema = z.number().min(0).max(Number.MAX_SAFE_INTEGER);

/** A value that is none counts as unknown. A schema for each of a hundred thousand would take longer than all else. */
const valuesSchema = z.custom<readonly unknown[]>((value) => Array.isArray(value) && value.length <= MAX_VALUES);

const reportSchema = z.object({
  age: z.number().min(0).max(MAX_AGE).catch(MAX_AGE),
  tool: z.enum(['nvidia-smi', 'rocm-smi']).nullable().catch(null),
  gpus: z.array(z.object({ uuid: z.string().regex(UUID).nullable().catch(null) })).max(MAX_GPUS),
  totals: z.unknown(),
  // Without those that were cut out.
  series: z.array(z.unknown()).max(0),
});

const seriesSchema = z.object({
  name: z.string().max(64),
  gpu: z.int().min(0).max(MAX_GPUS).nullish(),
  values: valuesSchema,
});

/** Powers of ten up to here are exact. */
const EXACT = 1e22;

/** Whole numbers from a million on, else nine digits: more than any of the meters knows. */
export function rounded(value: number): number {
  if (value >= 1e6 || Number.isInteger(value)) return Math.round(value);
  const scale = 10 ** (8 - Math.floor(Math.log10(value)));
  return scale <= EXACT ? Math.round(value * scale) / scale : Number(value.toPrecision(9));
}

function isMeasure(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

/** The exporter has the percent of its tools. */
const PERCENT = 'gpu_utilization_percent';

function nameOf(name: string): string {
  return name === PERCENT ? 'gpu_utilization_ratio' : name;
}

function valuesOf({ name, values }: { name: string; values: readonly unknown[] }): (number | null)[] {
  const isPercent = name === PERCENT;
  return values.map((one) => (isMeasure(one) ? rounded(isPercent ? Math.min(1, one / 100) : one) : null));
}

function counters(totals: unknown): Measured['totals'] {
  if (!isObject(totals)) return {};
  const known = Object.keys(COUNTERS).filter((name) => numberSchema.safeParse(totals[name]).success);
  return Object.fromEntries(known.map((name) => [name, totals[name]]));
}

/**
 * What the exporter of an instance reports, at `now` (milliseconds since the epoch). It runs in the tenant's container:
 * only known series with numbers are kept, and at most an hour of them. Rejects when it is no report.
 */
export async function readReport(text: string, now: number): Promise<Measured> {
  const bytes = Buffer.from(text);
  if (countStructure(bytes, STRUCTURE_MAX) > STRUCTURE_MAX) throw tooLong();
  await turn();
  const pieces = cutList(bytes, 'series', MAX_SERIES);
  if (pieces === undefined) throw tooLong();
  const { rest, elements } = pieces;
  if (rest.length > MAX_REST || elements.some((one) => one.length > MAX_ONE)) throw tooLong();
  const { age, tool, gpus, totals } = reportSchema.parse(JSON.parse(rest));
  const seen = new Set<string>();
  const found: Series[] = [];
  let length = 0;
  for (const [index, element] of elements.entries()) {
    if (index % SERIES_AT_ONCE === 0) await turn();
    const one = seriesSchema.parse(JSON.parse(element));
    length = Math.max(length, one.values.length);
    const name = nameOf(one.name);
    const gpu = one.gpu ?? null;
    const isOfGpu = name.startsWith('gpu_');
    if (!isSeriesName(name) || isOfGpu !== (gpu !== null) || (gpu !== null && gpu >= gpus.length)) continue;
    if (seen.has(`${name}/${gpu}`)) continue;
    seen.add(`${name}/${gpu}`);
    found.push({ name, gpu, values: valuesOf(one) });
  }
  const series = found.map((one) => ({ ...one, values: padded(one.values, length) }));
  return { at: now - age * 1000, gpuSource: tool, gpus, series, totals: counters(totals) };
}

function tooLong(): Error {
  return new Error('The report is too long.');
}

/** What is not known of the time before. */
function padded(values: readonly (number | null)[], length: number): (number | null)[] {
  return values.length === length ? [...values] : [...Array<null>(length - values.length).fill(null), ...values];
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
