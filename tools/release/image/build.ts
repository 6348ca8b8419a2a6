import { createWriteStream, mkdirSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LocalFailure, runMain } from '../../lib/failure.ts';
import { buildPage } from '../../lib/page.ts';
import { cacheFolder, ROOT } from '../../lib/paths.ts';
import { lastLines, run } from '../../lib/shell.ts';
import { toolsImage } from '../../lib/images/tools-image.ts';
import type { TarEntry } from '../../../src/lib/tar.ts';
import { IMAGE_NAME } from '../names.ts';
import { appEntries } from './app.ts';
import { baseEntries, withParents } from './base.ts';
import { runtimePackages, type Lock } from './closure.ts';
import { lockedNode } from './node-program.ts';
import { layerOf, ociArchive } from './oci.ts';
import { cycloneDx, type DebianPackage, type GoModule } from './sbom.ts';

const DIST = join(ROOT, 'dist');
/** They are in the bundle of the page. */
const EXCLUDED = ['@xterm/xterm', '@xterm/addon-fit'];
/** Packages of Debian that the tools come from. */
const TOOL_PACKAGES = ['busybox-static', 'tini', 'rsync'];

async function must(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, { cwd: ROOT });
  if (code !== 0) throw new LocalFailure(`${command} failed.`, 'Read the lines below.', lastLines(stdout + stderr, 20));
  return stdout;
}

async function installedPackages(names: readonly string[]): Promise<DebianPackage[]> {
  const text = await must('dpkg-query', ['--show', '--showformat=${Package} ${Version} ${Architecture}\n', ...names]);
  return text
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
    .map(([name = '', version = '', architecture = '']) => ({ name, version, architecture }));
}

async function goModules(): Promise<GoModule[]> {
  const text = await readFile(join(ROOT, 'deploy/tools/go.mod'), 'utf8');
  return [...text.matchAll(/^\s*(?:require\s+)?([\w.-]+\.[\w.-]+\/\S+) (v\S+)/gm)].map(
    ([, path = '', version = '']) => ({ path, version }),
  );
}

async function toolEntries(): Promise<readonly TarEntry[]> {
  const { layer } = await toolsImage('unused', cacheFolder(process.env));
  if ('tar' in layer) throw new TypeError('The tools image is not made of entries.');
  return layer;
}

/** Builds the image of all roles into dist/, with its bill of materials beside it and in it. */
async function main(): Promise<void> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const packages = runtimePackages(lock, EXCLUDED);
  await buildPage();
  await must(process.execPath, [join(ROOT, 'tools/site/main.ts')]);
  const compiled = join(DIST, 'app');
  await rm(compiled, { recursive: true, force: true });
  await must(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json']);
  const base = await baseEntries(cacheFolder(process.env));
  const content = await readFile(process.execPath);
  const program = { version: process.versions.node, sha256: lockedNode(content, arch()) };
  const node = { name: 'usr/bin/node', type: 'file' as const, content, mode: 0o755 };
  const debian = [...base.packages, ...(await installedPackages(TOOL_PACKAGES))];
  const sbom = cycloneDx({ lock, npm: packages, node: program, debian, go: await goModules() });
  const bill = Buffer.from(`${JSON.stringify(sbom, undefined, 1)}\n`);
  const app = await appEntries({ root: ROOT, compiled, packages });
  const layers = [
    layerOf(withParents([...base.entries, node, ...(await toolEntries())])),
    layerOf(withParents([...app, { name: 'app/sbom.cdx.json', type: 'file', content: bill }])),
  ];
  const version = lock.version ?? '';
  const reference = `${IMAGE_NAME}:${version}`;
  const image = {
    architecture: arch() === 'x64' ? 'amd64' : arch(),
    user: '65532:65532',
    entrypoint: ['/usr/bin/node', '/app/main.js'],
    env: ['PATH=/usr/local/bin:/usr/bin', 'NODE_ENV=production'],
    workingDir: '/app',
    labels: {
      'org.opencontainers.image.title': 'berth',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    },
  };
  const { digest, parts } = ociArchive(layers, image, reference);
  mkdirSync(DIST, { recursive: true });
  await pipeline(Readable.from(parts), createWriteStream(join(DIST, 'berth-image.tar')));
  await writeFile(join(DIST, 'berth-sbom.cdx.json'), bill);
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  console.log(`${reference} ${digest} dist/berth-image.tar ${(size / 1e6).toFixed(1)} MB`);
}

await runMain(main);
