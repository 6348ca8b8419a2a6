import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../../../tools/lib/paths.ts';
import { ALERTS, ALERTS_TEXT, isOfNode, METRIC_ROWS, METRIC_TYPES } from '../../support/alert-rules.ts';
import { allMetrics } from '../../support/all-metrics.ts';
import { hasPrometheus, promtool } from '../../support/prometheus.ts';

/** What a query may name beside metrics: functions and words of PromQL, labels, and values in quotes are taken out. */
const WORDS = new Set([
  'by',
  'on',
  'and',
  'or',
  'sum',
  'min',
  'max',
  'rate',
  'increase',
  'absent',
  'count',
  'vector',
  'le',
]);

/** The metrics that a query reads. */
function metricsOf(query: string): string[] {
  const bare = query
    .replaceAll(/\{[^}]*\}/g, '')
    .replaceAll(/\[[^\]]*\]/g, '')
    .replaceAll(/\b(?:by|on) \([^)]*\)/g, '');
  return (bare.match(/[a-z_][a-z_0-9]*/g) ?? []).filter((word) => !WORDS.has(word) && word !== 'histogram_quantile');
}

/** Whether a role shows this series: a metric of the table, or a part of a histogram of it. */
function isKnown(series: string): boolean {
  const base = series.replace(/_(?:bucket|count|sum)$/, '');
  return METRIC_TYPES.has(series) || METRIC_TYPES.get(base) === 'histogram' || isOfNode(series);
}

interface Panel {
  id: number;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string }[];
}

const dashboard = JSON.parse(readFileSync(join(ROOT, 'charts/berth/files/dashboard.json'), 'utf8')) as {
  panels: Panel[];
  annotations: { list: { expr: string }[] };
};
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

it('the table lists every metric as the code has it, and no other', () => {
  const wanted = allMetrics().map(({ name, type, labelNames, help }) => {
    const labels = labelNames.map((label) => `\`${label}\``).join(', ') || '-';
    return `| \`${name}\` | ${String(type)} | ${labels} | ${help.replace(/\.?$/, '.')} |`;
  });
  expect(METRIC_ROWS).toEqual(wanted);
});

describe('the alerts', () => {
  const runbooks = readFileSync(join(ROOT, 'docs/run/runbooks.md'), 'utf8');
  const sections = runbooks.split(/^## /m).slice(1);

  it('have a section of the runbooks each, in the same order, which says all that it should', () => {
    expect(sections.map((section) => section.split('\n', 1)[0])).toEqual(ALERTS.map(({ alert }) => alert));
    for (const section of sections) {
      const parts = section.match(/^\*\*(?:For tenants|Look|Fix|Over)\.?\*\*/gm);
      expect(parts, section.split('\n', 1)[0]).toEqual(['**For tenants.**', '**Look.**', '**Fix.**', '**Over**']);
      expect(section).toMatch(/^```sh\n.+/m);
    }
  });

  it('link to it', () => {
    const base = 'https://github.com/berth-dev/berth/blob/main/docs/run/runbooks.md';
    for (const { alert, annotations } of ALERTS) {
      expect(annotations.runbook_url).toBe(`${base}#${alert.toLowerCase()}`);
    }
  });

  it('read metrics that are there', () => {
    const named = ALERTS.flatMap(({ expr }) => metricsOf(expr));
    expect(named.length).toBeGreaterThan(ALERTS.length);
    expect(named.filter((name) => !isKnown(name))).toEqual([]);
  });
});

describe('the dashboard', () => {
  it('reads metrics that are there', () => {
    expect(queries.length).toBeGreaterThan(30);
    expect(queries.flatMap(metricsOf).filter((name) => !isKnown(name))).toEqual([]);
  });

  it('has no two panels in one place, and none without a query', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });

  it('shows every alert', () => {
    expect(dashboard.annotations.list[0]?.expr).toContain('alertname=~"Berth.*"');
    expect(ALERTS.filter(({ alert }) => !alert.startsWith('Berth'))).toEqual([]);
  });
});

describe.skipIf(!(await hasPrometheus()))('Prometheus', () => {
  it('reads the rules', async () => {
    const { code, stdout, stderr } = await promtool(['check', 'rules', '{}/alerts.yaml'], {
      'alerts.yaml': ALERTS_TEXT,
    });
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining(`${ALERTS.length} rules found`)]);
  });

  it('reads the queries of the dashboard', async () => {
    const rules = queries.map((query, index) => ({
      record: `berth:${index}`,
      expr: query.replaceAll('$__rate_interval', '5m'),
    }));
    const text = JSON.stringify({ groups: [{ name: 'dashboard', rules }] });
    const { code, stdout, stderr } = await promtool(['check', 'rules', '{}/rules.yaml'], { 'rules.yaml': text });
    expect([code, stdout + stderr]).toEqual([0, expect.stringContaining(`${queries.length} rules found`)]);
  });
});
