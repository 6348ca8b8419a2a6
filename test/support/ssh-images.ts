import { mkdir, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CONTAINERD_SOCKET } from '../../tools/lib/images/image.ts';
import { importImage, type ImageSpec, type NodeAccess } from '../../tools/lib/images/image.ts';
import { cacheFolder } from '../../tools/lib/paths.ts';
import { findProgram, run } from '../../tools/lib/shell.ts';
import { toolsImage } from '../../tools/lib/images/tools-image.ts';

export const TOOLS = 'localhost/berth-tools:test';
/** A full distribution. */
export const DEBIAN = 'localhost/berth-debian:test';
/** The same for a numbered user that no file knows. */
export const NONROOT = 'localhost/berth-nonroot:test';
/** Debian with its Jupyter server and a Python kernel. */
export const JUPYTER = 'localhost/berth-jupyter:test';
/** Nothing but one program, as distroless images are: no shell, no libraries. */
export const BARE = 'localhost/berth-bare:test';

const WITH_JUPYTER = { name: 'jupyter', packages: 'jupyter-server,python3-ipykernel' };

/** A Debian root file system from the distribution's packages, made once per machine. */
async function debianRoot(cache: string, extra?: { name: string; packages: string }): Promise<string> {
  const path = join(cache, 'images', `debian-bookworm${extra === undefined ? '' : `-${extra.name}`}.tar`);
  const present = await stat(path).catch(() => undefined);
  if (present !== undefined) return path;
  await mkdir(join(cache, 'images'), { recursive: true });
  const partial = `${path}.${process.pid}`;
  const { code, stderr } = await run('mmdebstrap', [
    '--variant=essential',
    ...(extra === undefined ? [] : [`--include=${extra.packages}`]),
    '--format=tar',
    'bookworm',
    partial,
  ]);
  if (code !== 0) throw new Error(`A Debian image needs mmdebstrap and a package mirror: ${stderr.slice(-500)}`);
  await rename(partial, path);
  return path;
}

/** Makes what takes minutes on a new machine, before the time limits of tests begin to count. `files` will run. */
export async function makeSshImages(files: readonly string[]): Promise<void> {
  if ((await findProgram('mmdebstrap')) === undefined) return;
  await debianRoot(cacheFolder(process.env));
  const texts = await Promise.all(files.map((file) => readFile(file, 'utf8')));
  if (texts.some((text) => text.includes(importJupyterImage.name)))
    await debianRoot(cacheFolder(process.env), WITH_JUPYTER);
}

async function bareImage(): Promise<Omit<ImageSpec, 'reference'>> {
  const busybox = await findProgram('busybox', ['/usr/bin', '/bin']);
  const passwd = 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n';
  return {
    env: ['PATH=/app', 'APP_MODE=bare'],
    layer: [
      { name: 'app/', type: 'directory' },
      { name: 'app/server', type: 'file', content: await readFile(busybox ?? ''), mode: 0o755 },
      { name: 'etc/', type: 'directory' },
      { name: 'etc/passwd', type: 'file', content: Buffer.from(passwd) },
      { name: 'root/', type: 'directory', mode: 0o700 },
      { name: 'tmp/', type: 'directory', mode: 0o1777 },
    ],
  };
}

/** What the node's containerd has, so that a file of tests imports only what no other one did before. */
async function presentImages({ initPid, programs }: NodeAccess): Promise<Set<string>> {
  const inside = ['--target', String(initPid), '--mount', '--net', join(programs, 'ctr')];
  const { stdout } = await run('nsenter', [...inside, '-a', CONTAINERD_SOCKET, '-n', 'k8s.io', 'images', 'ls', '-q']);
  return new Set(stdout.split('\n'));
}

/** Puts the images that the SSH tests run on onto the real node. */
export async function importSshImages(node: NodeAccess): Promise<void> {
  const cache = cacheFolder(process.env);
  const env = [
    'PATH=/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin',
    'CUDA_VERSION=12.4',
    'NVIDIA_VISIBLE_DEVICES=all',
  ];
  const debian = async () => ({ env, layer: { tar: await debianRoot(cache) } });
  const specs: Record<string, () => Promise<Omit<ImageSpec, 'reference'>>> = {
    [TOOLS]: () => toolsImage(TOOLS, cache),
    [BARE]: bareImage,
    [DEBIAN]: debian,
    [NONROOT]: async () => ({ ...(await debian()), user: '1234:1234' }),
  };
  const present = await presentImages(node);
  for (const [reference, spec] of Object.entries(specs)) {
    if (!present.has(reference)) await importImage(node, { ...(await spec()), reference });
  }
}

/** The same for the image with Jupyter, which is large. */
export async function importJupyterImage(node: NodeAccess): Promise<void> {
  if ((await presentImages(node)).has(JUPYTER)) return;
  const tar = await debianRoot(cacheFolder(process.env), WITH_JUPYTER);
  await importImage(node, { reference: JUPYTER, layer: { tar } });
}
