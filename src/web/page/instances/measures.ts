import type { MetricsRecord } from '../../../wire/records.ts';

type Name = MetricsRecord['data'][number]['name'];

interface Measure {
  title: string;
  name: Name;
  /** The series of what there is of it, or a number. */
  limit?: Name | number;
  show: (value: number) => string;
}

/** What is drawn of an instance. */
interface Drawn {
  title: string;
  /** Newest value of each line. */
  now: string;
  /** A line for each GPU, or one of the instance. */
  lines: readonly (readonly (number | null)[])[];
  /** What the chart goes up to; undefined: as its values do. */
  limit: number | undefined;
  show: (value: number) => string;
}

const MEBIBYTE = 1024 ** 2;
const GIBIBYTE = 1024 ** 3;

function digits(value: number): string {
  return value.toLocaleString(undefined, { maximumFractionDigits: value < 1 ? 2 : value < 10 ? 1 : 0 });
}

const percent = (value: number): string => `${Math.round(value * 100)} %`;
const bytes = (value: number): string =>
  value > 0 && value < GIBIBYTE ? `${digits(value / MEBIBYTE)} MiB` : `${digits(value / GIBIBYTE)} GiB`;

const MEASURES: readonly Measure[] = [
  { title: 'GPU load', name: 'gpu_utilization_ratio', limit: 1, show: percent },
  { title: 'GPU memory', name: 'gpu_memory_used_bytes', limit: 'gpu_memory_limit_bytes', show: bytes },
  { title: 'CPU', name: 'cpu_cores', show: (value) => `${digits(value)} cores` },
  { title: 'Memory', name: 'memory_used_bytes', limit: 'memory_limit_bytes', show: bytes },
  { title: 'Disk', name: 'disk_used_bytes', limit: 'disk_limit_bytes', show: bytes },
  { title: 'Received', name: 'network_receive_bytes_per_second', show: (value) => `${bytes(value)}/s` },
  { title: 'Sent', name: 'network_transmit_bytes_per_second', show: (value) => `${bytes(value)}/s` },
  { title: 'GPU temperature', name: 'gpu_temperature_celsius', limit: 100, show: (value) => `${digits(value)} °C` },
];

function known(values: readonly (number | null)[]): number[] {
  return values.filter((value) => value !== null);
}

/** The charts of what was measured: those that have a value. */
export function drawnOf({ data }: Pick<MetricsRecord, 'data'>): Drawn[] {
  const linesOf = (name: Name) => data.filter((series) => series.name === name).map(({ values }) => values);
  return MEASURES.flatMap(({ title, name, limit, show }): Drawn[] => {
    const lines = linesOf(name);
    if (lines.every((values) => known(values).length === 0)) return [];
    const now = lines.map((values) => known(values).at(-1)).map((value) => (value === undefined ? '–' : show(value)));
    const limits = typeof limit === 'string' ? linesOf(limit).flatMap(known) : [];
    const most = typeof limit === 'number' ? limit : limits.length === 0 ? undefined : Math.max(...limits);
    return [{ title, now: now.join(', '), lines, limit: most, show }];
  });
}
