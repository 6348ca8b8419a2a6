import { type CounterName, COUNTERS, type Measured, type Series } from './measured.ts';
import { SERIES, type SeriesName } from './schema.ts';

export type MetricsFormat = 'json' | 'prometheus' | 'openmetrics';

const FORMATS: Readonly<Record<string, MetricsFormat>> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  'text/plain': 'prometheus',
  'text/*': 'prometheus',
  'application/openmetrics-text': 'openmetrics',
};

/** The content types of the texts. */
export const TEXT_TYPES = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const;

/**
 * What a client would rather have. Only types and weights count: Prometheus asks for versions and ways of escaping, and
 * every version can read these texts.
 */
export function formatOf(accept = '*/*'): MetricsFormat {
  const wanted = accept.split(',').flatMap((part) => {
    const [type = '', ...parameters] = part.split(';').map((one) => one.trim().toLowerCase());
    const format = FORMATS[type];
    const weight = Number(parameters.find((one) => one.startsWith('q='))?.slice(2) ?? 1);
    return format === undefined || !(weight > 0) ? [] : [{ format, weight, isExact: !type.includes('*') }];
  });
  const best = wanted.toSorted((a, b) => b.weight - a.weight || Number(b.isExact) - Number(a.isExact))[0];
  return best?.format ?? 'json';
}

const RATES: ReadonlySet<string> = new Set(Object.values(COUNTERS).map(({ rate }) => rate));

function labelsOf(instance: string, { gpu }: Series, { gpus }: Measured): string {
  const labels: [string, string][] = [['instance_id', instance]];
  if (gpu !== null) labels.push(['gpu', String(gpu)]);
  const uuid = gpu === null ? null : (gpus[gpu]?.uuid ?? null);
  if (uuid !== null) labels.push(['uuid', uuid.replaceAll(/[^\w/-]/g, '')]);
  return labels.map(([name, value]) => `${name}="${value}"`).join(',');
}

/**
 * The newest values in Prometheus' text format, or in OpenMetrics. The counters are as the kernel has them; a metric of
 * which nothing is known is left out.
 */
export function prometheusText(instance: string, measured: Measured, format: 'prometheus' | 'openmetrics'): string {
  const lines: string[] = [];
  const head = (name: string, type: string, help: string): void => {
    lines.push(`# HELP berth_instance_${name} ${help}`, `# TYPE berth_instance_${name} ${type}`);
  };
  for (const [name, { help }] of Object.entries(COUNTERS)) {
    const total = measured.totals[name as CounterName];
    if (total === undefined) continue;
    // In OpenMetrics the family of a counter has no suffix.
    head(format === 'openmetrics' ? name.replace(/_total$/, '') : name, 'counter', help);
    lines.push(`berth_instance_${name}{instance_id="${instance}"} ${total}`);
  }
  for (const [name, help] of Object.entries(SERIES) as [SeriesName, string][]) {
    if (RATES.has(name)) continue;
    const known = measured.series.filter((one) => one.name === name && (one.values.at(-1) ?? null) !== null);
    if (known.length === 0) continue;
    head(name, 'gauge', help);
    for (const one of known) {
      lines.push(`berth_instance_${name}{${labelsOf(instance, one, measured)}} ${one.values.at(-1)}`);
    }
  }
  if (format === 'openmetrics') lines.push('# EOF');
  return lines.map((line) => `${line}\n`).join('');
}
