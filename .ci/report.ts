// `report.ts FOLDER` ends a run of CI, from what its phases left in the folder: prints what failed, the times, the slowest
// test files, and `N passed, N failed` as the last line. Writes times.json there. Ends with 1 when something failed.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const [RESULTS = ''] = process.argv.slice(2);
/** Lines of the end of a failed phase that are printed again, where it names no test. */
const LINES = 40;
/** Lines that are printed of each failed test. */
const SAID = 8;

/** What Vitest's JSON reporter writes, as far as it is read here. */
interface VitestResults {
  testResults: { name: string; startTime: number; endTime: number }[];
}

function read(name: string): string {
  const path = join(RESULTS, name);
  return existsSync(path) ? stripVTControlCharacters(readFileSync(path, 'utf8')) : '';
}

/** The tests of a phase; a phase that failed and says nothing of tests counts as one. */
function countsOf(log: string, hasFailed: boolean) {
  const [, passed, failed, skipped] =
    [...log.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm)].at(-1) ?? [];
  const counts = { passed: Number(passed ?? 0), failed: Number(failed ?? 0), skipped: Number(skipped ?? 0) };
  return hasFailed && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

/** The first lines of each failure that the log names, else its end. */
function failuresOf(log: string): string {
  const lines = log.trimEnd().split('\n');
  const starts = lines.flatMap((line, at) => (/^\s*FAIL\s/.test(line) ? [at] : []));
  if (starts.length === 0) return lines.slice(-LINES).join('\n');
  return starts
    .map((at, index) => lines.slice(at, Math.min(at + SAID, starts[index + 1] ?? Infinity)).join('\n'))
    .join('\n');
}

function filesOf(phase: string) {
  const text = read(`${phase}.json`);
  const { testResults } = text === '' ? { testResults: [] } : (JSON.parse(text) as VitestResults);
  return testResults.map(({ name, startTime, endTime }) => ({
    file: relative(ROOT, name),
    seconds: Math.round((endTime - startTime) / 100) / 10,
  }));
}

const phases = read('phases')
  .trimEnd()
  .split('\n')
  .map((line) => {
    const [name = '', code, seconds] = line.split(' ');
    const log = read(`${name}.log`);
    return { name, log, failed: code !== '0', seconds: Number(seconds), counts: countsOf(log, code !== '0') };
  });
const files = phases.flatMap(({ name }) => filesOf(name)).toSorted((a, b) => b.seconds - a.seconds);
const print = (line: string) => process.stdout.write(`${line}\n`);

for (const { name, log } of phases.filter(({ failed }) => failed)) print(`== failed: ${name}\n${failuresOf(log)}\n`);
print('== phases');
for (const { name, seconds, failed } of phases)
  print(`${String(seconds).padStart(7)} s  ${name}${failed ? ', FAILED' : ''}`);
print('== slowest test files');
for (const { file, seconds } of files.slice(0, 10)) print(`${seconds.toFixed(1).padStart(7)} s  ${file}`);
const times = { phases: phases.map(({ name, seconds, failed }) => ({ name, seconds, failed })), files };
writeFileSync(join(RESULTS, 'times.json'), `${JSON.stringify(times, undefined, 1)}\n`);

const sum = (pick: 'passed' | 'failed' | 'skipped') => phases.reduce((total, { counts }) => total + counts[pick], 0);
print(`${sum('passed')} passed, ${sum('failed')} failed${sum('skipped') === 0 ? '' : `, ${sum('skipped')} skipped`}`);
process.exitCode = phases.some(({ failed }) => failed) ? 1 : 0;
