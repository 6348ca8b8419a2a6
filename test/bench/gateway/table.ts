import { cpus } from 'node:os';
import { CASES, type Case } from './cases.ts';
import type { Measured } from './index.ts';
import type { Target } from './target.ts';

/** Markdown: one row per target, the median of the rounds in every cell. */
export function table(
  targets: readonly Target[],
  measured: ReadonlyMap<string, Measured[]>,
  memory: ReadonlyMap<string, number>,
): string {
  const titles = ['', ...CASES.map(({ title }) => `${title}; CPU µs per call`), 'peak RSS with 1,000 slow streams, MB'];
  const rows = targets.map(({ name }) => {
    const cells = CASES.map((scene) => cell(scene, measured.get(`${name}|${scene.title}`)));
    return [name, ...cells, memory.get(name)?.toFixed(0) ?? '-'];
  });
  const lines = [titles, titles.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`);
  return `${cpus().length} cores, ${cpus()[0]?.model}, Node ${process.version}\n\n${lines.join('\n')}`;
}

function cell({ figure }: Case, measured: readonly Measured[] | undefined): string {
  if (measured === undefined) return '-';
  const of = (pick: (measured: Measured) => number) => median(measured.map(pick));
  const errors = measured.reduce((sum, { result }) => sum + result.errors, 0);
  const rate = of(({ result }) => result.perSecond);
  if (Number.isNaN(rate) || rate === 0) return 'fails';
  const remark = `; ${of(({ cpu }) => cpu).toFixed(0)}${errors > 0 ? `, ${errors} errors` : ''}`;
  const text = Math.round(rate).toLocaleString('en');
  if (figure === 'rate') return `${text}${remark}`;
  const first = of(({ result }) => result.firstP50).toFixed(2);
  if (figure === 'stream') return `${text} (${first})${remark}`;
  return `${text} (${of(({ result }) => result.p50).toFixed(2)} / ${of(({ result }) => result.p99).toFixed(2)})${remark}`;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
