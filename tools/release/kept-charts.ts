import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { LocalFailure } from '../lib/failure.ts';
import { ROOT } from '../lib/paths.ts';
import { lastLines, run } from '../lib/shell.ts';
import { helmEnvironment } from './helm.ts';

const CHART = join(ROOT, 'charts/berth');
/** One packaged chart of each version, definitions included, for tests of upgrades. */
const KEPT = join(ROOT, 'test/e2e/charts');

function chartVersion(): string {
  const { version } = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as { version: string };
  return version;
}

const pathOf = (version: string): string => join(KEPT, `berth-${version}.tgz`);

function numbers(version: string): number[] {
  return version.split('.').map(Number);
}

/** The newest of these versions (`1.2.3`) before `current`; `current` itself when there is none. */
export function versionBefore(current: string, versions: readonly string[]): string {
  const compare = (a: string, b: string): number =>
    numbers(a).reduce((order, part, index) => order || part - (numbers(b)[index] ?? 0), 0);
  const older = versions.filter((version) => compare(version, current) < 0);
  return older.toSorted(compare).at(-1) ?? current;
}

/** The packaged chart of the release before that of this checkout. */
export function previousChart(): string {
  const versions = readdirSync(KEPT).map((name) => name.slice('berth-'.length, -'.tgz'.length));
  return pathOf(versionBefore(chartVersion(), versions));
}

async function must(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, { env: helmEnvironment() });
  if (code !== 0)
    throw new LocalFailure('The chart cannot be packaged.', 'Read the lines below.', lastLines(stderr, 8));
  return stdout;
}

/** The contents of a package, without the times in it. */
async function contentOf(archive: string): Promise<string> {
  return must('tar', ['--extract', '--gzip', '--to-stdout', `--file=${archive}`]);
}

/** Packages the chart into a temporary folder, and passes the archive to `use`. */
async function packaged<T>(helm: string, use: (archive: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-chart-'));
  try {
    await must(helm, ['package', CHART, '--destination', folder]);
    return await use(join(folder, basename(pathOf(chartVersion()))));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whether the package of the chart's version holds what the chart does. */
export async function isKept(helm: string): Promise<boolean> {
  const kept = pathOf(chartVersion());
  if (!existsSync(kept)) return false;
  return packaged(helm, async (archive) => (await contentOf(archive)) === (await contentOf(kept)));
}

/** Keeps a package of the chart under its version. Packages of other versions stay as they were released. */
export async function keepChart(helm: string): Promise<void> {
  if (await isKept(helm)) return;
  mkdirSync(KEPT, { recursive: true });
  await packaged(helm, async (archive) => copyFileSync(archive, pathOf(chartVersion())));
}
