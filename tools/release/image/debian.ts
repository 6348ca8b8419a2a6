import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { OWN_ARCHITECTURE } from '../../lib/host/architecture.ts';
import { lastLines, run } from '../../lib/shell.ts';
import type { DebianPackage } from './sbom.ts';

/** Where apt keeps what it knows of the packages for this machine. */
const LISTS = '/var/lib/apt/lists';

async function must(command: string, args: readonly string[], cwd: string): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, { cwd });
  if (code === 0) return stdout;
  throw new LocalFailure(
    `${command} ${args[0] ?? ''} failed.`,
    'Run `apt-get update`; without apt, build with `docker build -f deploy/Dockerfile .`.',
    lastLines(stderr, 8),
  );
}

/** A package as apt would download it. */
export interface Download {
  name: string;
  file: string;
  sha256: string;
}

/** Reads the output of `apt-get download --print-uris`, sorted by file. */
export function parseDownloads(text: string): Download[] {
  const found = [...text.matchAll(/^'[^']+' (([^_ ]+)_\S+) \d+ SHA256:([\da-f]{64})$/gm)];
  return found
    .map(([, file = '', name = '', sha256 = '']) => ({ name, file, sha256 }))
    .toSorted((a, b) => (a.file < b.file ? -1 : 1));
}

async function isGood(path: string, sha256: string): Promise<boolean> {
  const content = await readFile(path).catch(() => undefined);
  return content !== undefined && createHash('sha256').update(content).digest('hex') === sha256;
}

/** apt keeps here what it has parsed of its lists. Images of containers turn this off, and each call parses anew. */
function parsedLists(folder: string): Record<string, string> {
  return {
    'Dir::Cache::pkgcache': join(folder, 'pkgcache.bin'),
    'Dir::Cache::srcpkgcache': join(folder, 'srcpkgcache.bin'),
  };
}

/**
 * Options by which apt knows the packages of an architecture. Those of another one than this machine's have lists of their
 * own, made by the machine's sources, as new as its own lists: no setting of the machine changes. Throws LocalFailure.
 */
export async function aptOptions(architecture: string, cache: string): Promise<string[]> {
  const folder = join(cache, 'apt', architecture);
  await mkdir(join(folder, 'cache/archives/partial'), { recursive: true });
  if (architecture === OWN_ARCHITECTURE) return optionsOf(parsedLists(folder));
  const lists = join(folder, 'lists');
  const options = optionsOf({
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Dir::State::Lists': lists,
    'Dir::State::status': '/dev/null',
    'Dir::Cache': join(folder, 'cache'),
    ...parsedLists(folder),
  });
  const changed = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0;
  const known = join(folder, 'known');
  if ((await changed(known)) <= (await changed(LISTS))) {
    await mkdir(join(lists, 'partial'), { recursive: true });
    await must('apt-get', [...options, 'update'], '/');
    await writeFile(known, '');
  }
  return options;
}

function optionsOf(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

/** The libraries that a package of the architecture depends on, by the names of their packages. */
export async function librariesOf(name: string, options: readonly string[]): Promise<string[]> {
  const text = await must('apt-cache', [...options, 'depends', name], '/');
  return [...text.matchAll(/^ +Depends: ((?:lib|zlib)\S+)$/gm)].map(([, found = '']) => found);
}

/**
 * The files of these packages in the versions of apt's lists. They are downloaded once per machine: a file of the cache
 * folder that has the right digest needs no network. Throws LocalFailure.
 * @param options those of another architecture, as `aptOptions` gives them
 */
export async function debFiles(
  names: readonly string[],
  cache: string,
  options: readonly string[] = [],
): Promise<string[]> {
  const folder = join(cache, 'debs');
  await mkdir(folder, { recursive: true });
  // In the root folder, because apt leaves out what the current folder has.
  const downloads = parseDownloads(await must('apt-get', [...options, 'download', '--print-uris', ...names], '/'));
  const paths: string[] = [];
  for (const { name, file, sha256 } of downloads) {
    const path = join(folder, file);
    if (!(await isGood(path, sha256))) await download(name, path, options);
    paths.push(path);
  }
  if (paths.length === names.length) return paths;
  throw new LocalFailure(`apt does not know all of ${names.join(', ')}.`, 'Run `apt-get update`.');
}

async function download(name: string, path: string, options: readonly string[]): Promise<void> {
  const folder = await mkdtemp(`${path}.`);
  try {
    await must('apt-get', [...options, 'download', '-o', 'APT::Sandbox::User=root', name], folder);
    await rename(join(folder, path.slice(path.lastIndexOf('/') + 1)), path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Unpacks the files of a package into a folder. Returns its name and version. */
export async function unpackDeb(deb: string, root: string): Promise<DebianPackage> {
  await must('dpkg-deb', ['--extract', deb, root], '/');
  const fields = ['--show', '--showformat=${Package} ${Version} ${Architecture}', deb];
  const [name = '', version = '', architecture = ''] = (await must('dpkg-deb', fields, '/')).split(' ');
  return { name, version, architecture };
}
