import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheFolder } from '../../tools/lib/paths.ts';
import { findProgram, isExecutable } from '../../tools/lib/shell.ts';
import { debFiles, unpackDeb } from '../../tools/release/image/debian.ts';

/**
 * The path of a program: of this machine, or of its Debian package. That is unpacked into the cache and not installed:
 * its service would start. `libraries` are packages that it needs beside it, in the folder `lib` of the same tree. Throws
 * LocalFailure without either.
 */
export async function debProgram(
  program: string,
  debPackage = program,
  libraries: readonly string[] = [],
): Promise<string> {
  const installed = await findProgram(program);
  if (installed !== undefined) return installed;
  const cache = cacheFolder(process.env);
  const folder = join(cache, debPackage);
  const unpacked = join(folder, 'usr/bin', program);
  if (await isExecutable(unpacked)) return unpacked;
  await mkdir(cache, { recursive: true });
  // Whole or not at all: other tests may look for it meanwhile.
  const part = await mkdtemp(`${folder}.`);
  try {
    for (const deb of await debFiles([debPackage, ...libraries], cache)) await unpackDeb(deb, part);
    await rename(part, folder).catch(async (error: unknown) => {
      if (!(await isExecutable(unpacked))) throw error;
    });
  } finally {
    await rm(part, { recursive: true, force: true });
  }
  return unpacked;
}
