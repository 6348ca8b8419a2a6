import { mkdtemp, readdir, readFile, readlink, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { findProgram } from '../../lib/shell.ts';
import type { TarEntry } from '../../../src/lib/tar.ts';
import { aptOptions, debFiles, unpackDeb } from './debian.ts';
import type { DebianPackage } from './sbom.ts';

/** Packages of Debian whose libraries Node's binary is linked to (`readelf -d`). */
const PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'];
/** The libraries that Node needs. The rest of libc6 (locales, converters, other name services) stays out. */
const LIBRARIES = /\/(ld-linux-[^/]*\.so\.\d|lib(c|m|dl|pthread|rt|resolv|stdc\+\+|gcc_s|atomic)\.so\.\d)$/;
const EXECUTABLE = 0o755;

const file = (name: string, content: Buffer | string, mode?: number): TarEntry => ({
  name,
  type: 'file',
  content: Buffer.from(content),
  ...(mode !== undefined && { mode }),
});

const directory = (name: string, mode?: number): TarEntry => ({
  name,
  type: 'directory',
  ...(mode !== undefined && { mode }),
});

/** The user of the image, and how it looks up host names. */
const ETC: TarEntry[] = [
  directory('etc/'),
  file('etc/passwd', 'root:x:0:0:root:/root:/sbin/nologin\nberth:x:65532:65532:berth:/nonexistent:/sbin/nologin\n'),
  file('etc/group', 'root:x:0:\nberth:x:65532:\n'),
  file('etc/nsswitch.conf', 'hosts: files dns\n'),
  directory('tmp/', 0o1777),
];

/** Those libraries of unpacked packages that match, by folder and soname, such as `x86_64-linux-gnu/libc.so.6`. */
export async function librariesIn(root: string, pattern: RegExp): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isDirectory() || !pattern.test(path)) continue;
    const triplet = /\/lib\/([^/]+-linux-gnu[^/]*)\//.exec(path)?.[1];
    if (triplet === undefined) continue;
    // Links that leave the unpacked folder lead to the loader, which is found by its own name.
    const target = await realpath(path).catch(() => undefined);
    if (target?.startsWith(root)) found.set(`${triplet}/${entry.name}`, await readFile(target));
  }
  return found;
}

/** The loader at the path that Node's program header names, which differs by architecture. */
function loaderEntries(entries: readonly TarEntry[]): TarEntry[] {
  const loader = entries.find(({ name }) => basename(name).startsWith('ld-linux'));
  if (loader?.type !== 'file')
    throw new LocalFailure('The package libc6 has no loader.', 'Report this: the package has changed.');
  const folder = basename(loader.name).includes('x86-64') ? 'lib64/' : 'lib/';
  const at = { ...loader, name: `${folder}${basename(loader.name)}` };
  return folder === 'lib64/' ? [directory(folder), at] : [at];
}

function parents(entries: readonly TarEntry[]): TarEntry[] {
  const names = new Set(
    entries.flatMap(({ name }) => {
      const parts = name.split('/').slice(0, -1);
      return parts.map((_, index) => `${parts.slice(0, index + 1).join('/')}/`);
    }),
  );
  const present = new Set(entries.map(({ name }) => name));
  return [...names].filter((name) => !present.has(name)).map((name) => directory(name));
}

/** Adds the folders that the entries stand in. */
export function withParents(entries: readonly TarEntry[]): TarEntry[] {
  return [...entries, ...parents(entries)];
}

const licencePath = (name: string): string => `usr/share/doc/${name}/copyright`;

async function licenceOwner(root: string, name: string): Promise<string> {
  const link = await readlink(join(root, 'usr/share/doc', name)).catch(() => name);
  return basename(link);
}

/** Downloads packages and unpacks them into a folder. */
export async function unpackAll(
  names: readonly string[],
  root: string,
  cache: string,
  options: readonly string[],
): Promise<DebianPackage[]> {
  const packages: DebianPackage[] = [];
  const files = names.length === 0 ? [] : await debFiles(names, cache, options);
  for (const deb of files) packages.push(await unpackDeb(deb, root));
  return packages;
}

/** Entries of the image, and the packages that they are from. */
export interface FromDebian {
  entries: TarEntry[];
  packages: DebianPackage[];
}

/** What Node needs around it, from Debian's packages: loader, C and C++ libraries, their licences, /etc. */
export async function baseEntries(architecture: string, cache: string): Promise<FromDebian> {
  if ((await findProgram('apt-get')) === undefined) {
    throw new LocalFailure('This machine has no apt-get.', 'Build with `docker build -f deploy/Dockerfile .` instead.');
  }
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'berth-image-')));
  try {
    const root = join(folder, 'root');
    const options = await aptOptions(architecture, cache);
    const packages = await unpackAll(PACKAGES, root, cache, options);
    // Packages of one source share a copyright file: their folder of documents is a link to the folder that has it.
    const owners = await Promise.all(packages.map(({ name }) => licenceOwner(root, name)));
    const names = new Set(owners);
    const others = [...names].filter((owner) => !packages.some(({ name }) => name === owner));
    packages.push(...(await unpackAll(others, root, cache, options)));
    const libraries = await librariesIn(root, LIBRARIES);
    const found = [...libraries].map(([name, content]) => file(`lib/${name}`, content, EXECUTABLE));
    const licences = await Promise.all(
      [...names].map(async (name) => file(licencePath(name), await readFile(join(root, licencePath(name))))),
    );
    return { entries: [...ETC, ...found, ...loaderEntries(found), ...licences], packages };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
