import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { OWN_ARCHITECTURE } from '../../lib/host/architecture.ts';
import { isStatic } from '../../lib/images/image.ts';
import { appletsOf, buildPrograms, toolsEntries } from '../../lib/images/tools-image.ts';
import { type FromDebian, librariesIn, unpackAll } from './base.ts';
import { aptOptions, librariesOf } from './debian.ts';

/** What rsync and its libraries are linked to (`ldd`). */
const LIBRARIES = /\/(ld-linux-[^/]*\.so\.\d|lib(acl|c|crypto|lz4|popt|xxhash|z|zstd)\.so\.\d)$/;

/** A program of the unpacked packages, which must be linked statically, because it runs in any image. */
async function staticProgram(root: string, path: string): Promise<Buffer> {
  const content = await readFile(join(root, path));
  if (isStatic(content)) return content;
  throw new LocalFailure(`Debian's ${basename(path)} is not static.`, 'Report this: the package has changed.');
}

/**
 * The tools of instances for an architecture: ours, and busybox, tini and rsync of Debian's packages. The commands of
 * busybox are asked of that of this machine, which runs here, and is made from the same source.
 */
export async function imageTools(architecture: string, cache: string): Promise<FromDebian> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'berth-tools-')));
  try {
    const [root, own] = [join(folder, 'root'), join(folder, 'own')];
    const options = await aptOptions(architecture, cache);
    const names = ['busybox-static', 'tini', 'rsync', ...(await librariesOf('rsync', options))];
    const unpacked = await unpackAll(names, root, cache, options);
    await unpackAll(['busybox-static'], own, cache, await aptOptions(OWN_ARCHITECTURE, cache));
    const libraries = await librariesIn(root, LIBRARIES);
    const entries = await toolsEntries({
      built: await buildPrograms(cache, architecture),
      busybox: await staticProgram(root, 'bin/busybox'),
      applets: await appletsOf(join(own, 'bin/busybox')),
      tini: await staticProgram(root, 'usr/bin/tini-static'),
      rsync: {
        program: await readFile(join(root, 'usr/bin/rsync')),
        libraries: new Map([...libraries].map(([name, content]) => [basename(name), content])),
      },
    });
    return { entries, packages: unpacked };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
