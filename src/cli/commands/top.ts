import type { Api } from '../api/client.ts';
import { isPassing } from '../api/client.ts';
import { findInstance, instancePath } from '../api/find-instance.ts';
import type { MetricsRecord } from '../../wire/records.ts';
import type { Input } from '../options.ts';
import { printJson, type Session } from '../session.ts';
import { widthOf } from '../width.ts';

type Series = MetricsRecord['data'][number];
type Values = Series['values'];

const BARS = '\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588';
/** Columns of a chart at most: one for each minute. */
const WIDEST = 60;
const NARROWEST = 10;

/** The values in that many columns, each the largest of its steps; undefined where nothing was measured. */
function columnsOf(values: Values, width: number): (number | undefined)[] {
  const step = Math.max(1, values.length / width);
  return Array.from({ length: Math.min(width, values.length) }, (_, column) => {
    const part = values.slice(
      Math.floor(column * step),
      Math.max(Math.floor((column + 1) * step), Math.floor(column * step) + 1),
    );
    const known = part.filter((value) => value !== null);
    return known.length === 0 ? undefined : Math.max(...known);
  });
}

/** The values as bars, of which the highest is `most`. */
export function chart(values: Values, width: number, most: number): string {
  return columnsOf(values, width)
    .map((value) => {
      if (value === undefined) return ' ';
      const height = most <= 0 ? 0 : Math.round((Math.min(value, most) / most) * (BARS.length - 1));
      return BARS[height];
    })
    .join('');
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Bytes in the largest unit that fits. */
export function bytesOf(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

interface Row {
  name: string;
  now: string;
  values: Values;
  most: number;
}

const last = (values: Values): number | undefined => values.findLast((value) => value !== null) ?? undefined;
const largest = (values: Values): number => Math.max(0, ...values.map((value) => value ?? 0));

/** What is drawn: the series, how its newest value is written, and the series that is its limit. */
const SHOWN: readonly [
  series: string,
  name: string,
  write: (value: number, limit?: number) => string,
  limit?: string,
][] = [
  ['gpu_utilization_ratio', 'load', (value) => `${Math.round(value * 100)} %`],
  ['gpu_memory_used_bytes', 'memory', (value, limit) => ofLimit(value, limit), 'gpu_memory_limit_bytes'],
  ['gpu_temperature_celsius', 'temperature', (value) => `${Math.round(value)} \u00b0C`],
  ['gpu_power_watts', 'power', (value) => `${Math.round(value)} W`],
  ['cpu_cores', 'CPU cores', (value) => value.toFixed(1)],
  ['memory_used_bytes', 'memory', (value, limit) => ofLimit(value, limit), 'memory_limit_bytes'],
  ['disk_used_bytes', 'disk', (value, limit) => ofLimit(value, limit), 'disk_limit_bytes'],
  ['disk_read_bytes_per_second', 'disk read', (value) => `${bytesOf(value)}/s`],
  ['disk_written_bytes_per_second', 'disk written', (value) => `${bytesOf(value)}/s`],
  ['network_receive_bytes_per_second', 'received', (value) => `${bytesOf(value)}/s`],
  ['network_transmit_bytes_per_second', 'sent', (value) => `${bytesOf(value)}/s`],
];

function ofLimit(value: number, limit: number | undefined): string {
  return limit === undefined ? bytesOf(value) : `${bytesOf(value)} of ${bytesOf(limit)}`;
}

function rowsOf({ data }: MetricsRecord, gpu: number | null): Row[] {
  const find = (wanted: string | undefined): Values | undefined =>
    data.find((one) => one.name === wanted && one.gpu === gpu)?.values;
  return SHOWN.flatMap(([series, name, write, limited]) => {
    const values = find(series) ?? [];
    const now = last(values);
    if (now === undefined) return [];
    const limit = last(find(limited) ?? []);
    const most = series === 'gpu_utilization_ratio' ? 1 : (limit ?? largest(values));
    return [{ name: gpu === null ? name : `GPU ${gpu} ${name}`, now: write(now, limit), values, most }];
  });
}

/** The hour of an instance: for each series its name, its newest value, and a chart that fits the screen. */
export function hourOf(record: MetricsRecord, width = 100): string {
  const gpus = [...new Set(record.data.map(({ gpu }) => gpu))].filter((gpu) => gpu !== null);
  const rows = [...gpus.flatMap((gpu) => rowsOf(record, gpu)), ...rowsOf(record, null)];
  const [names, values] = [rows.map(({ name }) => name.length), rows.map(({ now }) => widthOf(now))];
  const [left, middle] = [Math.max(0, ...names), Math.max(0, ...values)];
  const room = Math.min(WIDEST, Math.max(NARROWEST, width - left - middle - 4));
  return rows
    .map(
      ({ name, now, values: all, most }) =>
        `${name.padEnd(left)}  ${now.padStart(middle)}  ${chart(all, room, most)}\n`,
    )
    .join('');
}

async function draw(api: Api, id: string, input: Input, session: Session): Promise<number> {
  const { terminal } = session;
  const record = await api.get<MetricsRecord>(instancePath(id, '/metrics'));
  if (input.flag('json')) await printJson(session, record);
  else {
    const text = hourOf(record, terminal.columns.out);
    if (text === '') terminal.say('Nothing was measured yet: the first values come some seconds after the start.');
    // From the upper left corner, over what stands there.
    const clear = input.flag('watch') && terminal.screen ? '\u001b[H\u001b[J' : '';
    await terminal.out(`${clear}${text}`);
  }
  return record.step_seconds * 1000;
}

/** `berth top`: what an instance used in the last hour. */
export async function top(input: Input, session: Session): Promise<void> {
  const api = await session.api();
  const { id } = await findInstance(api, input.operands[0] ?? '');
  let pause = await draw(api, id, input, session);
  while (input.flag('watch')) {
    await session.sleep(pause);
    try {
      pause = await draw(api, id, input, session);
    } catch (error) {
      // As while a replica is replaced.
      if (!isPassing(error)) throw error;
    }
  }
}
