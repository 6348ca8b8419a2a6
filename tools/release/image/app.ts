import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TarEntry } from '../../../src/lib/tar.ts';
import { filesIn } from '../../lib/files-in.ts';
import { isRuntimeFile } from './closure.ts';

const EXECUTABLE = 0o755;
/** The files of docs/ that the server hands out. */
const GUIDES: ReadonlySet<string> = new Set(
  ['http.md', 'webhooks.md', 'cli.md', 'ssh.md', 'models.md'].map((name) => `use/${name}`),
);
const SOURCE = /(?:\.(?:ts|tsx|mts|cts|map)|tsconfig\.json)$/;

/** The files under a folder for which `keep` is true, with `prefix` before their names. Links are not followed. */
async function filesOf(folder: string, prefix: string, keep: (path: string) => boolean): Promise<TarEntry[]> {
  const paths = (await filesIn(folder)).filter(keep);
  return Promise.all(
    paths.map(async (path) => ({
      name: `${prefix}${path}`,
      type: 'file',
      content: await readFile(join(folder, path)),
    })),
  );
}

export interface AppSources {
  root: string;
  /** The compiled code. */
  compiled: string;
  /** Paths of packages in the root's lock file. */
  packages: readonly string[];
}

/** The compiled code, the files that it reads, those of docs/ that it hands out among them, and its packages, under /app; and `berth` on the PATH. */
export async function appEntries({ root, compiled, packages }: AppSources): Promise<TarEntry[]> {
  const code = await filesOf(compiled, 'app/', () => true);
  const assets = await filesOf(join(root, 'src'), 'app/', (path) => !SOURCE.test(path));
  const guides = await filesOf(join(root, 'docs'), 'app/docs/', (path) => GUIDES.has(path));
  const modules = await Promise.all(
    packages.map((path) =>
      filesOf(join(root, path), `app/${path}/`, (name) => !name.startsWith('node_modules/') && isRuntimeFile(name)),
    ),
  );
  const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { name: string; version: string };
  const { name, version } = manifest;
  const entries: TarEntry[] = [
    ...code.map((entry) => (entry.name === 'app/main.js' ? asCommand(entry) : entry)),
    ...assets,
    ...guides,
    ...modules.flat(),
    {
      name: 'app/package.json',
      type: 'file',
      content: Buffer.from(`${JSON.stringify({ name, version, type: 'module' })}\n`),
    },
    { name: 'app/LICENSE', type: 'file', content: await readFile(join(root, 'LICENSE')) },
    { name: 'usr/local/bin/berth', type: 'link', target: '/app/main.js' },
  ];
  return entries;
}

/** Makes a file executable. Its first line names Node itself, because the image has no `env`. */
function asCommand(entry: TarEntry): TarEntry {
  if (entry.type !== 'file') return entry;
  const text = entry.content.toString().replace(/^#!.*\n/, '');
  return { ...entry, content: Buffer.from(`#!/usr/bin/node\n${text}`), mode: EXECUTABLE };
}
