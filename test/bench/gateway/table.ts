import { cpus } from 'node:os';
import { CASES, type Case } from './cases.ts';
import type { Measured } from './index.ts';
import { judged, median } from '../figures.ts';
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

const MOST_CPU = 1.5;
const OURS = "Berth's own steps cost about as much CPU as all of the bare handler, on one thread";
const THREADS = 'the router has as many threads as there are cores, and Berth has one';

/** Markdown: one row for each figure of Berth that has an aim, beside the bare handler and the routers that were measured. */
export function aimsTable(
  names: { berth: string; bare: string; rivals: readonly string[] },
  measured: ReadonlyMap<string, Measured[]>,
): string {
  const of = (name: string, { title }: Case, pick: (one: Measured) => number): number =>
    median((measured.get(`${name}|${title}`) ?? []).map(pick));
  const times = (other: string, scene: Case, pick: (one: Measured) => number): number =>
    of(names.berth, scene, pick) / of(other, scene, pick);
  const rate = ({ result }: Measured): number => result.perSecond;
  const aimed = CASES.flatMap((scene) => (scene.least === undefined ? [] : [{ scene, least: scene.least }]));
  const rows = aimed.flatMap(({ scene, least }) => [
    [scene.title, names.bare, 'rate', times(names.bare, scene, rate), { least, cause: OURS }] as const,
    [
      scene.title,
      names.bare,
      'CPU',
      times(names.bare, scene, ({ cpu }) => cpu),
      { most: MOST_CPU, cause: OURS },
    ] as const,
    ...names.rivals.map(
      (rival) => [scene.title, rival, 'rate', times(rival, scene, rate), { least: 1, cause: THREADS }] as const,
    ),
  ]);
  const lines = rows
    .filter(([, , , value]) => !Number.isNaN(value))
    .map(
      ([title, other, what, value, aim]) =>
        `| ${[title, `${what} of ${other}`, value.toFixed(2), judged(aim, value)].join(' | ')} |`,
    );
  return ['| case | Berth, as a part of the | here | to reach |', '| --- | --- | --- | --- |', ...lines].join('\n');
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
