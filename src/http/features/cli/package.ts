import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { gzipSync } from 'node:zlib';
import { type TarEntry, tarOf } from '../../../lib/tar.ts';

/** What the command line and the server share is packed whole. */
const FOLDERS = ['cli', 'wire'];
const SOURCES = new URL('../../../', import.meta.url);
const EXECUTABLE = 0o755;
const COMMANDS = { berth: 'cli/berth.js', 'kubectl-berth': 'cli/kubectl-berth.js' };

/** The renters' command line as `npm install -g` takes it. */
export interface CliPackage {
  content: Buffer;
  etag: string;
}

/** A relative import of a source file, as TypeScript's own compiler rewrites it. */
const IMPORT = /((?:from|import)\s*(?:\(\s*)?'\.{1,2}\/[^']*)\.ts'/g;

function scriptOf(name: string): { name: string; text: string } {
  const text = readFileSync(new URL(name, SOURCES), 'utf8');
  if (!name.endsWith('.ts')) return { name, text };
  return { name: name.replace(/\.ts$/, '.js'), text: stripTypeScriptTypes(text).replaceAll(IMPORT, "$1.js'") };
}

function versionOf(): string {
  for (const path of ['../../../package.json', '../../../../package.json']) {
    try {
      return (JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string }).version;
    } catch {
      continue;
    }
  }
  throw new Error('Berth has no package.json next to it.');
}

/**
 * Packs the files of the command line: those that the image has compiled, or the sources without their types. The same
 * files make the same bytes. It takes some 50 ms, so call it once.
 */
export function packCli(): CliPackage {
  const names = FOLDERS.flatMap((folder) =>
    readdirSync(new URL(folder, SOURCES), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  ).filter((name) => /\.(ts|js)$/.test(name));
  const manifest = {
    name: 'berth',
    version: versionOf(),
    description: 'Rents GPUs of a Berth server.',
    license: 'Apache-2.0',
    type: 'module',
    engines: { node: '>=20.12' },
    bin: COMMANDS,
  };
  const commands: string[] = Object.values(COMMANDS);
  const entries: TarEntry[] = names
    .toSorted()
    .map(scriptOf)
    .map(({ name, text }) => ({
      name: `package/${name}`,
      type: 'file',
      content: Buffer.from(text),
      ...(commands.includes(name) && { mode: EXECUTABLE }),
    }));
  const packed = {
    name: 'package/package.json',
    type: 'file' as const,
    content: Buffer.from(`${JSON.stringify(manifest)}\n`),
  };
  const content = gzipSync(tarOf([packed, ...entries]), { level: 9 });
  return { content, etag: `"${hash('sha256', content).slice(0, 32)}"` };
}
