import { readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** The files below a folder, by their paths in it. Links are not followed. */
export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((one) => one.isFile()).map((one) => relative(folder, join(one.parentPath, one.name)));
}
