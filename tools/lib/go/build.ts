import { mkdir, readdir, readFile, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { arch, platform } from 'node:os';
import { join } from 'node:path';
import { LocalFailure, systemCode } from '../failure.ts';
import { tryLock, type FileLock } from '../lock.ts';
import type { Progress } from '../progress.ts';
import { isExecutable, run } from '../shell.ts';
import { waitFor } from '../wait.ts';
import { downloadable, downloadPrograms, dropPartials, readPins, type Pins } from './archives.ts';
import { diagnoseBuild } from './diagnose.ts';
import { requireGo } from './find.ts';
import {
  buildArguments,
  KWOK_STAGE_FOLDERS,
  KWOK_STAGES,
  moduleFolder,
  programsFor,
  versionHash,
  type ClusterPrograms,
  type Program,
} from './programs.ts';

/** Bytes that a build from nothing takes at its peak: module downloads, Go's build cache and the programs. */
const NEEDED_BYTES = 8e9;

/** The file that marks a Go folder that may be removed after the build. */
const OURS = '.made-for-one-build';

/** Milliseconds to wait for another checkout that builds: longer than any build. */
const LOCK_TIMEOUT = 3_600_000;

export interface BuildOptions {
  cache: string;
  cluster: ClusterPrograms;
  /** Remove the downloads and intermediate files of a complete build, unless they were there before it. */
  tidy: boolean;
  progress: Progress;
  signal: AbortSignal;
  /** The releases that may be downloaded; those of deploy/local/archives.sha256 by default. */
  pins?: Pins;
}

/** Where finished programs of these locked versions live. */
export function programFolder(cache: string): string {
  return join(cache, 'bin', versionHash(`${platform()}/${arch()}`));
}

/** The programs that still have to be built. */
export async function missingPrograms(cache: string, cluster: ClusterPrograms): Promise<Program[]> {
  const folder = programFolder(cache);
  const present = new Set(await readdir(folder).catch(() => []));
  return programsFor(cluster).filter(({ name }) => !present.has(name));
}

/**
 * Downloads what is missing, builds what cannot be downloaded, and returns the folder of the programs. After an
 * interruption the next call goes on with the first unfinished program. Of two checkouts the second waits for the first, and shares its result.
 * Throws LocalFailure with the last lines of the compiler.
 */
export async function ensurePrograms(options: BuildOptions): Promise<string> {
  const { cache, progress, signal } = options;
  const folder = programFolder(cache);
  if ((await missingFiles(options)).length === 0) return folder;
  await makeFolders(cache, folder);
  const lock = await takeLock(join(cache, 'build.lock'), progress, signal);
  try {
    const pins = options.pins ?? (await readPins());
    await downloadPrograms({ folder, missing: await missingFiles(options), pins, progress, signal });
    if ((await missingFiles(options)).length > 0) await buildMissing(folder, options);
  } finally {
    lock.release();
  }
  return folder;
}

async function buildMissing(folder: string, options: BuildOptions): Promise<void> {
  const { cache, cluster, progress } = options;
  const go = await requireGo();
  await claimGoFolder(cache);
  const missing = await missingPrograms(cache, cluster);
  if (missing.length > 5) await requireSpace(cache);
  for (const [position, program] of missing.entries()) {
    progress.step({
      title: `Building ${program.name}`,
      index: position + 1,
      total: missing.length,
      expect: program.seconds,
      next: missing[position + 1]?.name ?? 'start the cluster',
    });
    await buildProgram(go, program, options);
  }
  if (!(await hasStages(cache))) await writeStages(go, folder, options);
  await dropPartials(folder);
  if (options.tidy) await dropGoFolder(cache, progress);
  progress.end();
}

/** Whether this machine needs Go for a cluster: some program is neither in the cache nor in a release. */
export async function needsGo(cache: string, cluster: ClusterPrograms): Promise<boolean> {
  const missing = await missingFiles({ cache, cluster });
  return downloadable(missing, await readPins()).length < missing.length;
}

/** The names of the files that the folder of the programs lacks. */
async function missingFiles({ cache, cluster }: Pick<BuildOptions, 'cache' | 'cluster'>): Promise<string[]> {
  const programs = (await missingPrograms(cache, cluster)).map(({ name }) => name);
  return (await hasStages(cache)) ? programs : [...programs, KWOK_STAGES];
}

async function hasStages(cache: string): Promise<boolean> {
  return (await readdir(programFolder(cache)).catch((): string[] => [])).includes(KWOK_STAGES);
}

async function makeFolders(cache: string, folder: string): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    throw new LocalFailure(
      `The cache folder ${cache} cannot be written (${systemCode(error) ?? String(error)}).`,
      'Set BERTH_CACHE to a folder that can.',
    );
  }
}

async function requireSpace(cache: string): Promise<void> {
  const { bavail, bsize } = await statfs(cache);
  if (bavail * bsize >= NEEDED_BYTES) return;
  throw new LocalFailure(
    `The first build needs ${NEEDED_BYTES / 1e9} GB of disk in ${cache}; ${((bavail * bsize) / 1e9).toFixed(1)} GB are free.`,
    'Free some space, or set BERTH_CACHE to a folder on a larger disk.',
  );
}

async function takeLock(path: string, progress: Progress, signal: AbortSignal): Promise<FileLock> {
  let told = false;
  const lock = await waitFor(
    () => {
      const result = tryLock(path);
      if ('release' in result) return result;
      if (!told)
        progress.line(`Another checkout (process ${result.pid}) is building the cluster programs; waiting for it.`);
      told = true;
      return undefined;
    },
    { timeout: LOCK_TIMEOUT, interval: 500, signal },
  );
  if (lock === undefined)
    throw new LocalFailure('Another build has not ended after an hour.', `End it, or remove ${path}.`);
  return lock;
}

/** Marks Go's folder as made for this build, unless it has files from before. */
async function claimGoFolder(cache: string): Promise<void> {
  const present = await readdir(join(cache, 'go')).catch(() => []);
  if (present.length > 0) return;
  await mkdir(join(cache, 'go'), { recursive: true });
  await writeFile(join(cache, 'go', OURS), '');
}

/** Removes Go's folder where it was made for one build: it has 5 GB, the programs 0.6 GB. */
async function dropGoFolder(cache: string, progress: Progress): Promise<void> {
  const present = await readdir(join(cache, 'go'));
  if (!present.includes(OURS)) return;
  progress.line('Removing the downloads and intermediate files of the build.');
  await rm(join(cache, 'go'), { recursive: true, force: true });
}

/** The environment of Go: it keeps its builds and downloads in one folder per machine, shared by all checkouts. */
export function goEnvironment(cache: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    CGO_ENABLED: '0',
    GOFLAGS: [process.env['GOFLAGS'] ?? '', '-modcacherw'].join(' ').trim(),
    GOCACHE: join(cache, 'go', 'build'),
    GOMODCACHE: join(cache, 'go', 'mod'),
    GOWORK: 'off',
  };
}

async function buildProgram(go: string, program: Program, { cache, signal }: BuildOptions): Promise<void> {
  const folder = programFolder(cache);
  if (await isExecutable(join(folder, program.name))) return;
  const partial = join(folder, `.${program.name}.partial`);
  const { code, stdout, stderr } = await run(go, buildArguments(program, partial), {
    cwd: moduleFolder(program.module),
    env: goEnvironment(cache),
    signal,
  });
  signal.throwIfAborted();
  if (code !== 0) {
    await rm(partial, { force: true });
    throw diagnoseBuild(program.name, stdout + stderr);
  }
  await rename(partial, join(folder, program.name));
}

/** Joins the stage files of the kwok module into one. */
async function writeStages(go: string, folder: string, { cache, signal }: BuildOptions): Promise<void> {
  const { code, stdout, stderr } = await run(go, ['list', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/kwok'], {
    cwd: moduleFolder('kubernetes'),
    env: goEnvironment(cache),
    signal,
  });
  if (code !== 0) throw diagnoseBuild(KWOK_STAGES, stderr);
  const documents: string[] = [];
  for (const stage of KWOK_STAGE_FOLDERS) {
    const source = join(stdout.trim(), 'kustomize/stage', stage);
    const files = (await readdir(source)).filter((file) => file.endsWith('.yaml') && !file.startsWith('kustomization'));
    for (const file of files) documents.push(await readFile(join(source, file), 'utf8'));
  }
  const partial = join(folder, `.${KWOK_STAGES}.partial`);
  await writeFile(partial, documents.join('\n---\n'));
  await rename(partial, join(folder, KWOK_STAGES));
}
