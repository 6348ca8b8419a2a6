import type { MetricsRecord } from '../../../wire/records.ts';

type Name = MetricsRecord['data'][number]['name'];

interface Measure {
  title: string;
  name: Name;
  /** The series of what there is of it, or a number. */
  limit?: Name | number;
  /** What the chart goes up to at least: what an idle machine uses is not drawn like a load. */
  least?: number;
  show: (value: number) => string;
}

/** What is drawn of an instance. */
interface Drawn {
  title: string;
  /** Newest value of each line. */
  now: string;
  /** A line for each GPU, or one of the instance. */
  lines: readonly (readonly (number | null)[])[];
  /** What the chart goes up to. */
  top: number;
  show: (value: number) => string;
}

const MEMORY_UNITS = ['B', 'KiB', 'MiB', 'GiB'];
const RATE_UNITS = ['B/s', 'kB/s', 'MB/s', 'GB/s'];

function digits(value: number): string {
  return value.toLocaleString(undefined, { maximumFractionDigits: value < 1 ? 2 : value < 10 ? 1 : 0 });
}

const percent = (value: number): string => `${Math.round(value * 100)} %`;

function scaled(value: number, base: number, units: readonly string[]): string {
  const power = Math.max(
    0,
    units.findLastIndex((_, index) => value >= base ** index),
  );
  return `${digits(power === 0 ? Math.round(value) : value / base ** power)} ${units[power]}`;
}

const bytes = (value: number): string => scaled(value, 1024, MEMORY_UNITS);
const rate = (value: number): string => scaled(value, 1000, RATE_UNITS);

function cores(value: number): string {
  const text = digits(value);
  return `${text} ${text === '1' ? 'core' : 'cores'}`;
}

const MEASURES: readonly Measure[] = [
  { title: 'GPU load', name: 'gpu_utilization_ratio', limit: 1, show: percent },
  { title: 'GPU memory', name: 'gpu_memory_used_bytes', limit: 'gpu_memory_limit_bytes', show: bytes },
  { title: 'CPU', name: 'cpu_cores', least: 0.1, show: cores },
  { title: 'Memory', name: 'memory_used_bytes', limit: 'memory_limit_bytes', show: bytes },
  { title: 'Disk', name: 'disk_used_bytes', limit: 'disk_limit_bytes', show: bytes },
  { title: 'Received', name: 'network_receive_bytes_per_second', least: 1000, show: rate },
  { title: 'Sent', name: 'network_transmit_bytes_per_second', least: 1000, show: rate },
  { title: 'GPU temperature', name: 'gpu_temperature_celsius', limit: 100, show: (value) => `${digits(value)} °C` },
];

export function known(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

/** The charts of what was measured: those that have a value. */
export function drawnOf({ data }: Pick<MetricsRecord, 'data'>): Drawn[] {
  const linesOf = (name: Name) => data.filter((series) => series.name === name).map(({ values }) => values);
  return MEASURES.flatMap(({ title, name, limit, least = 0, show }): Drawn[] => {
    const lines = linesOf(name);
    if (lines.every((values) => known(values).length === 0)) return [];
    const now = lines.map((values) => known(values).at(-1)).map((value) => (value === undefined ? '–' : show(value)));
    const limits = typeof limit === 'string' ? linesOf(limit).flatMap(known) : [];
    const there = typeof limit === 'number' ? limit : limits.length === 0 ? undefined : Math.max(...limits);
    const most = Math.max(least, ...lines.flatMap(known));
    return [{ title, now: now.join(', '), lines, top: there ?? (most > 0 ? roundAbove(most) : 1), show }];
  });
}

/** @param times seconds since the epoch, evenly apart: with seconds if two are within a minute */
export function clocks(times: readonly number[]): string[] {
  const [first = 0, next = first + 60] = times;
  const second = next - first < 60 ? ({ second: '2-digit' } as const) : {};
  return times.map((at) =>
    new Date(at * 1000).toLocaleTimeString(undefined, { hour: 'numeric', minute: '2-digit', ...second }),
  );
}

/** The least of 1, 2, 4 and 6 times a power of ten that is not below `value`, which is above 0: half of it is short, too. */
export function roundAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 4, 6].find((step) => step * power >= value) ?? 10);
}
