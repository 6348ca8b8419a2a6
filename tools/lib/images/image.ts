import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { once } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LocalFailure } from '../failure.ts';
import { OWN_ARCHITECTURE } from '../host/architecture.ts';
import { run } from '../shell.ts';
import { TAR_END, tarHeader, tarOf, tarPadding, type TarEntry } from '../../../src/lib/tar.ts';

/** Where containerd listens, inside the cluster's mount namespace. */
export const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';

/** A container image of one layer. */
export interface ImageSpec {
  /** Full reference, such as `localhost/berth-busybox:1`. */
  reference: string;
  /** The root file system: members in memory, or the path of an uncompressed tar file. */
  layer: readonly TarEntry[] | { tar: string };
  entrypoint?: readonly string[];
  cmd?: readonly string[];
  env?: readonly string[];
  user?: string;
  workingDir?: string;
}

/** A way to the containerd of a built cluster's real node: its namespaces, and the folder of the built programs. */
export interface NodeAccess {
  initPid: number;
  programs: string;
}

/** A way to the containerd of a node of kind: the container that is the node. */
export interface NodeContainer {
  engine: string;
  node: string;
}

/** The command line of ctr on the node, up to its arguments. */
function ctrOn(access: NodeAccess | NodeContainer): [string, ...string[]] {
  if ('engine' in access) return [access.engine, 'exec', '--interactive', access.node, 'ctr'];
  return ['nsenter', '--target', String(access.initPid), '--mount', '--net', join(access.programs, 'ctr')];
}

/**
 * The image as a docker-archive (manifest.json, configuration, one layer). It is a stream, so that a large layer takes no
 * memory.
 */
export async function imageArchive(spec: ImageSpec): Promise<Readable> {
  const layer = 'tar' in spec.layer ? spec.layer.tar : tarOf(spec.layer);
  const { digest, size } = await measure(layer);
  const config = Buffer.from(
    JSON.stringify({
      architecture: OWN_ARCHITECTURE,
      os: 'linux',
      config: {
        Entrypoint: spec.entrypoint,
        Cmd: spec.cmd,
        Env: spec.env ?? ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
        User: spec.user,
        WorkingDir: spec.workingDir,
      },
      rootfs: { type: 'layers', diff_ids: [`sha256:${digest}`] },
    }),
  );
  const manifest = [{ Config: 'config.json', RepoTags: [spec.reference], Layers: ['layer.tar'] }];
  async function* parts(): AsyncGenerator<Buffer> {
    yield tarHeader({ name: 'layer.tar', type: 'file' }, size);
    if (typeof layer === 'string') yield* createReadStream(layer) as AsyncIterable<Buffer>;
    else yield layer;
    yield tarPadding(size);
    yield tarOf([
      { name: 'config.json', type: 'file', content: config },
      { name: 'manifest.json', type: 'file', content: Buffer.from(JSON.stringify(manifest)) },
    ]).subarray(0, -TAR_END.length);
    yield TAR_END;
  }
  return Readable.from(parts());
}

async function measure(layer: string | Buffer): Promise<{ digest: string; size: number }> {
  const hash = createHash('sha256');
  if (typeof layer !== 'string') return { digest: hash.update(layer).digest('hex'), size: layer.length };
  for await (const chunk of createReadStream(layer) as AsyncIterable<Buffer>) hash.update(chunk);
  return { digest: hash.digest('hex'), size: (await stat(layer)).size };
}

/** Imports the image into the node's containerd, where the kubelet finds it. */
export async function importImage(node: NodeAccess | NodeContainer, spec: ImageSpec): Promise<void> {
  await importArchive(node, await imageArchive(spec), spec.reference);
}

/**
 * The same for an archive in docker's or OCI's format; `title` names it in a failure.
 * @param unpack whether containers of it start at once; otherwise the first one unpacks it
 */
export async function importArchive(
  node: NodeAccess | NodeContainer,
  archive: Readable,
  title: string,
  unpack = true,
): Promise<void> {
  const [command, ...inside] = ctrOn(node);
  const args = ['-a', CONTAINERD_SOCKET, '-n', 'k8s.io', 'images', 'import', `--no-unpack=${!unpack}`, '-'];
  const child = spawn(command, [...inside, ...args], { stdio: ['pipe', 'ignore', 'pipe'] });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
  });
  const exit = once(child, 'exit') as Promise<[number | null]>;
  // When ctr ends early, the pipe breaks. The output of ctr says why.
  await pipeline(archive, child.stdin).catch(() => undefined);
  const [code] = await exit;
  if (code !== 0)
    throw new LocalFailure(`The image ${title} cannot be imported.`, 'Read the lines below.', errors.split('\n'));
}

/** A root file system with busybox and all its commands, for sandboxes, tests and the tour. `busybox` must be static. */
export async function busyboxLayer(busybox: string): Promise<TarEntry[]> {
  const content = await readFile(busybox);
  const { stdout } = await run(busybox, ['--list']);
  const commands = stdout.split('\n').filter((name) => name !== '' && name !== 'busybox');
  return [
    { name: 'bin/', type: 'directory' },
    { name: 'etc/', type: 'directory' },
    { name: 'root/', type: 'directory', mode: 0o700 },
    { name: 'tmp/', type: 'directory', mode: 0o1777 },
    { name: 'bin/busybox', type: 'file', content, mode: 0o755 },
    ...commands.map((name): TarEntry => ({ name: `bin/${name}`, type: 'link', target: 'busybox' })),
    textFile('etc/passwd', 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n'),
    textFile('etc/group', 'root:x:0:\nnogroup:x:65534:\n'),
  ];
}

function textFile(name: string, text: string): TarEntry {
  return { name, type: 'file', content: Buffer.from(text) };
}

/** Whether an ELF program is linked statically: it names no interpreter (program header type 3, PT_INTERP). */
export function isStatic(elf: Buffer): boolean {
  if (elf.length < 64 || elf.readUInt32BE(0) !== 0x7f454c46) return false;
  const offset = Number(elf.readBigUInt64LE(32));
  const size = elf.readUInt16LE(54);
  const count = elf.readUInt16LE(56);
  for (let index = 0; index < count; index++) {
    if (elf.readUInt32LE(offset + index * size) === 3) return false;
  }
  return true;
}
