import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { TarEntry } from '../../../src/lib/tar.ts';
import { archiveOf, compress, type Layer, sha256 } from './oci.ts';

/**
 * The layer of these entries, compressed only when the folder has not kept it from a build before. The folder keeps one:
 * layers with the program of Node seldom change, and take seconds each.
 */
export async function keptLayer(entries: readonly TarEntry[], folder: string): Promise<Layer> {
  const archive = archiveOf(entries);
  const diffId = sha256(archive);
  const file = `${diffId.replace(':', '-')}.tar.gz`;
  const kept = await readFile(join(folder, file)).catch(() => undefined);
  if (kept !== undefined && isOf(kept, archive)) return { diffId, compressed: kept };
  const compressed = compress(archive);
  await mkdir(folder, { recursive: true });
  const others = (await readdir(folder)).filter((name) => name !== file);
  // Put in place whole, because another build may read it.
  const part = join(folder, `${file}.${process.pid}`);
  await writeFile(part, compressed);
  await rename(part, join(folder, file));
  await Promise.all(others.map((name) => rm(join(folder, name), { force: true })));
  return { diffId, compressed };
}

/** Whether this is the archive, compressed. */
function isOf(compressed: Buffer, archive: Buffer): boolean {
  try {
    return gunzipSync(compressed).equals(archive);
  } catch {
    return false;
  }
}
