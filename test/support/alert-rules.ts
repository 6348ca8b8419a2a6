import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { ROOT } from '../../tools/lib/paths.ts';

export interface AlertRule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
}

/** The rules of the chart, as text. */
export const ALERTS_TEXT = readFileSync(join(ROOT, 'charts/berth/files/alerts.yaml'), 'utf8');

export const ALERTS: readonly AlertRule[] = (parse(ALERTS_TEXT) as { groups: { rules: AlertRule[] }[] }).groups.flatMap(
  ({ rules }) => rules,
);

/** A busy machine may answer no scrape for as long as this. No rule waits for less. */
const LEAST_WAIT_MS = 5_000;

/** Rules and queries whose minutes pass faster by this factor. */
export function faster(text: string, factor: number): string {
  const ms = (minutes: string): number => (Number(minutes) * 60_000) / factor;
  return text
    .replaceAll(/for: (\d+)m/g, (_, minutes: string) => `for: ${Math.max(ms(minutes), LEAST_WAIT_MS)}ms`)
    .replaceAll(/\[(\d+)m/g, (_, minutes: string) => `[${ms(minutes)}ms`);
}

/** The same, and thresholds in seconds with them. */
export function hastened(text: string, factor: number): string {
  return faster(text, factor).replaceAll(/> (\d{3,})\b/g, (_, seconds: string) => `> ${Number(seconds) / factor}`);
}

const METRICS = readFileSync(join(ROOT, 'docs/run/metrics.md'), 'utf8');

/** The rows of the table of docs/run/metrics.md. */
export const METRIC_ROWS = METRICS.match(/^\| `[a-z_]+` \| .*$/gm) ?? [];

/** Name and type of each documented metric. */
export const METRIC_TYPES: ReadonlyMap<string, string> = new Map(
  METRIC_ROWS.map((row) => {
    const [, name = '', type = ''] = /^\| `([a-z_]+)` \| (\w+) \|/.exec(row) ?? [];
    return [name, type];
  }),
);

/** Those metrics that every program on Node.js has with the library that Berth uses. */
export const isOfNode = (name: string): boolean => /^(process|nodejs)_/.test(name);
