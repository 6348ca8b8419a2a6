import { createWriteStream, mkdirSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { OWN_ARCHITECTURE } from '../../lib/host/architecture.ts';
import { LocalFailure, runMain } from '../../lib/failure.ts';
import { buildPage } from '../../lib/page.ts';
import { cacheFolder, ROOT } from '../../lib/paths.ts';
import { lastLines, run } from '../../lib/shell.ts';
import { IMAGE_NAME } from '../names.ts';
import { appEntries } from './app.ts';
import { baseEntries, withParents } from './base.ts';
import { runtimePackages, type Lock } from './closure.ts';
import { keptLayer } from './kept-layer.ts';
import { NODE_LOCK, nodeProgram } from './node-program.ts';
import { layerOf, ociArchive } from './oci.ts';
import { cycloneDx, type GoModule } from './sbom.ts';
import { imageTools } from './tools.ts';

const DIST = join(ROOT, 'dist');
/** They are in the bundle of the page. */
const EXCLUDED = ['@xterm/xterm', '@xterm/addon-fit'];

async function must(command: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(command, args, { cwd: ROOT });
  if (code !== 0) throw new LocalFailure(`${command} failed.`, 'Read the lines below.', lastLines(stdout + stderr, 20));
  return stdout;
}

async function goModules(): Promise<GoModule[]> {
  const text = await readFile(join(ROOT, 'deploy/tools/go.mod'), 'utf8');
  return [...text.matchAll(/^\s*(?:require\s+)?([\w.-]+\.[\w.-]+\/\S+) (v\S+)/gm)].map(
    ([, path = '', version = '']) => ({ path, version }),
  );
}

/** The layer of an image that differs by its architecture: Node, what it needs, and the tools of instances. */
async function platformLayer(architecture: string, cache: string) {
  const base = await baseEntries(architecture, cache);
  const tools = await imageTools(architecture, cache);
  const { content, sha256 } = await nodeProgram(architecture, cache);
  const node = { name: 'usr/bin/node', type: 'file' as const, content, mode: 0o755 };
  return {
    architecture,
    layer: await keptLayer(withParents([...base.entries, node, ...tools.entries]), join(cache, 'layers', architecture)),
    node: { version: NODE_LOCK.version, architecture, sha256 },
    packages: [...base.packages, ...tools.packages],
  };
}

/**
 * Builds the image of all roles into dist/, for the architectures that are named (this machine's by default) under one
 * index, with its bill of materials beside it and in it.
 */
async function main(): Promise<void> {
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lock;
  const packages = runtimePackages(lock, EXCLUDED);
  await buildPage();
  await must(process.execPath, [join(ROOT, 'tools/site/main.ts')]);
  const compiled = join(DIST, 'app');
  await rm(compiled, { recursive: true, force: true });
  await must(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json']);
  const named = process.argv.slice(2);
  const platforms = [];
  for (const architecture of named.length === 0 ? [OWN_ARCHITECTURE] : named)
    platforms.push(await platformLayer(architecture, cacheFolder(process.env)));
  const nodes = platforms.map(({ node }) => node);
  const debian = platforms.flatMap((platform) => platform.packages);
  const sbom = cycloneDx({ lock, npm: packages, nodes, debian, go: await goModules() });
  const bill = Buffer.from(`${JSON.stringify(sbom, undefined, 1)}\n`);
  const app = await appEntries({ root: ROOT, compiled, packages });
  const shared = layerOf(withParents([...app, { name: 'app/sbom.cdx.json', type: 'file', content: bill }]));
  const images = platforms.map(({ architecture, layer }) => ({ architecture, layers: [layer, shared] }));
  const version = lock.version ?? '';
  const reference = `${IMAGE_NAME}:${version}`;
  const image = {
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
  const { digest, parts } = ociArchive(images, image, reference);
  mkdirSync(DIST, { recursive: true });
  await pipeline(Readable.from(parts), createWriteStream(join(DIST, 'berth-image.tar')));
  await writeFile(join(DIST, 'berth-sbom.cdx.json'), bill);
  const size = parts.reduce((sum, part) => sum + part.length, 0);
  console.log(`${reference} ${digest} dist/berth-image.tar ${(size / 1e6).toFixed(1)} MB`);
}

await runMain(main);
