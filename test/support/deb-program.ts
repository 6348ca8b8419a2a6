import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { LocalFailure } from '../../tools/lib/failure.ts';
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
  const places = ['bin', 'sbin'].map((bin) => join(folder, 'usr', bin, program));
  const find = async (): Promise<string | undefined> => {
    for (const place of places) if (await isExecutable(place)) return place;
    return undefined;
  };
  const unpacked = await find();
  if (unpacked !== undefined) return unpacked;
  await mkdir(cache, { recursive: true });
  // Whole or not at all: other tests may look for it meanwhile.
  const part = await mkdtemp(`${folder}.`);
  try {
    for (const deb of await debFiles([debPackage, ...libraries], cache)) await unpackDeb(deb, part);
    await rename(part, folder).catch(async (error: unknown) => {
      if ((await find()) === undefined) throw error;
    });
  } finally {
    await rm(part, { recursive: true, force: true });
  }
  const made = await find();
  if (made === undefined)
    throw new LocalFailure(`The package ${debPackage} has no program ${program}.`, 'Name the one that has it.');
  return made;
}
