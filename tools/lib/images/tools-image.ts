import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { TOOLS_APPLETS, TOOLS_BIN, TOOLS_PATH, TOOLS_SOURCE } from '../../../src/resources/pod/tools-volume.ts';
import { LocalFailure } from '../failure.ts';
import { requireGo } from '../go/find.ts';
import { OWN_ARCHITECTURE } from '../host/architecture.ts';
import { isStatic, type ImageSpec } from './image.ts';
import { filesIn } from '../files-in.ts';
import { ROOT } from '../paths.ts';
import { findProgram, lastLines, run } from '../shell.ts';
import type { TarEntry } from '../../../src/lib/tar.ts';

const SOURCES = join(ROOT, 'deploy', 'tools');
/** The reference of the tools image on the local cluster's real node. */
export const TOOLS_IMAGE = 'localhost/berth-tools:1';

const PROGRAMS = ['direct', 'monitor', 'relay', 'scp', 'sftp-server'];
const SYSTEM_FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];
const EXECUTABLE = 0o755;

/** rsync, with its loader and libraries by their sonames. */
interface Rsync {
  program: Buffer;
  libraries: ReadonlyMap<string, Buffer>;
}

/** The programs of the tools for one architecture. */
interface Tools {
  /** The folder of those of deploy/tools. */
  built: string;
  busybox: Buffer;
  /** The commands of busybox. */
  applets: readonly string[];
  tini: Buffer;
  rsync: Rsync | undefined;
}

async function sourceHash(folder: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of (await filesIn(folder)).toSorted())
    hash.update(`/${file}`).update(await readFile(join(folder, file)));
  return hash.digest('hex').slice(0, 12);
}

/**
 * Builds the Go programs of deploy/tools into the cache, once per content. Answers the folder with them.
 * @param architecture Go's name of it
 */
export async function buildPrograms(cache: string, architecture = OWN_ARCHITECTURE): Promise<string> {
  const folder = join(cache, 'tools', `${await sourceHash(SOURCES)}-${architecture}`);
  const present = new Set(await readdir(folder).catch(() => []));
  if (PROGRAMS.every((name) => present.has(name))) return folder;
  const go = await requireGo();
  const partial = join(cache, 'tools', `partial-${architecture}-${process.pid}`);
  await mkdir(partial, { recursive: true });
  const packages = PROGRAMS.map((name) => `./${name}`);
  const { code, stderr } = await run(go, ['build', '-trimpath', '-ldflags=-s -w', '-o', `${partial}/`, ...packages], {
    cwd: SOURCES,
    env: {
      ...process.env,
      CGO_ENABLED: '0',
      GOARCH: architecture,
      GOFLAGS: [process.env['GOFLAGS'] ?? '', '-mod=readonly', '-modcacherw'].join(' ').trim(),
      GOCACHE: join(cache, 'go', 'build'),
      GOMODCACHE: join(cache, 'go', 'mod'),
      GOWORK: 'off',
    },
  });
  if (code !== 0)
    throw new LocalFailure(
      'The programs of deploy/tools cannot be built.',
      'Read the lines below.',
      lastLines(stderr, 20),
    );
  // Another process may have finished the same build: its result is as good.
  await rename(partial, folder).catch(() => undefined);
  return folder;
}

async function hostProgram(name: string, debianPackage: string): Promise<Buffer> {
  const path = await findProgram(name, SYSTEM_FOLDERS);
  const content = path === undefined ? undefined : await readFile(path);
  if (content === undefined || !isStatic(content)) {
    throw new LocalFailure(`This machine has no static ${name}.`, `Install it: apt-get install ${debianPackage}`);
  }
  return content;
}

function inside(path: string): string {
  return `${TOOLS_PATH}/lib/${basename(path)}`;
}

/** rsync with its loader and libraries, so that it runs in any image; empty without a loader. */
function rsyncEntries({ program, libraries }: Rsync): TarEntry[] {
  const loader = [...libraries.keys()].find((name) => /^ld-[^/]*\.so/.test(name));
  if (loader === undefined) return [];
  const script = `#!${TOOLS_BIN}/sh\nexec ${inside(loader)} --library-path ${TOOLS_PATH}/lib ${inside('rsync')} "$@"\n`;
  const files = [...libraries].map(([name, content]) => entry(`lib/${name}`, content));
  return [
    { name: at('lib/'), type: 'directory' },
    entry('lib/rsync', program),
    ...files,
    entry('bin/rsync', Buffer.from(script)),
  ];
}

/** The rsync of this machine. */
async function hostRsync(): Promise<Rsync | undefined> {
  const program = await findProgram('rsync', SYSTEM_FOLDERS);
  if (program === undefined) return undefined;
  const { stdout } = await run('ldd', [program]);
  const paths = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
  const libraries = await Promise.all(paths.map(async (path) => [basename(path), await readFile(path)] as const));
  return { program: await readFile(program), libraries: new Map(libraries) };
}

function at(path: string): string {
  return `${TOOLS_SOURCE.slice(1)}/${path}`;
}

function entry(path: string, content: Buffer): TarEntry {
  return { name: at(path), type: 'file', content, mode: EXECUTABLE };
}

/** The layer that `toolsVolume` copies from, of programs for one architecture. */
export async function toolsEntries({ built, busybox, applets, tini, rsync }: Tools): Promise<TarEntry[]> {
  const programs = PROGRAMS.map(async (name) => entry(`bin/${name}`, await readFile(join(built, name))));
  return [
    { name: at(''), type: 'directory' },
    { name: at('bin/'), type: 'directory' },
    { name: at(`${basename(TOOLS_APPLETS)}/`), type: 'directory' },
    entry('bin/busybox', busybox),
    entry('bin/tini', tini),
    { name: at('bin/sh'), type: 'link', target: 'busybox' },
    ...applets.map((name): TarEntry => ({ name: at(`applets/${name}`), type: 'link', target: '../bin/busybox' })),
    ...(await Promise.all(programs)),
    ...(rsync === undefined ? [] : rsyncEntries(rsync)),
  ];
}

/** The commands of a busybox that runs on this machine. */
export async function appletsOf(busybox: string): Promise<string[]> {
  const { stdout } = await run(busybox, ['--list']);
  return stdout.split('\n').filter((name) => name !== '' && name !== 'busybox');
}

/** The image of the tools for this machine. Needs Go, and busybox-static and tini of the distribution. */
export async function toolsImage(reference: string, cache: string): Promise<ImageSpec> {
  const built = await buildPrograms(cache);
  const applets = await appletsOf((await findProgram('busybox', SYSTEM_FOLDERS)) ?? 'busybox');
  const busybox = await hostProgram('busybox', 'busybox-static');
  const tini = await hostProgram('tini-static', 'tini');
  const layer = await toolsEntries({ built, busybox, applets, tini, rsync: await hostRsync() });
  return { reference, layer, user: '65532:65532' };
}
