import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { fetch } from 'undici';
import { findStaticBusybox } from '../../../tools/lib/host/requirements.ts';
import { busyboxLayer } from '../../../tools/lib/images/image.ts';
import { run } from '../../../tools/lib/shell.ts';
import { OWN_ARCHITECTURE } from '../../../tools/lib/host/architecture.ts';
import { createAuthority, issue } from '../../../tools/lib/x509.ts';
import { tarOf } from '../../../src/lib/tar.ts';
import { ANY_CERTIFICATE, serveRegistry } from './serve.ts';

/** On the loopback of the node, where containerd takes any certificate. Images of instances name no port. */
const SERVER = 'localhost';
/** The only user of the registry. */
export const USER = 'puller';
export const PASSWORD = 'swordfish';
/** The same as bcrypt has it, as the registry reads it. */
const HTPASSWD = `${USER}:$2b$05$abcdefghijklmnopqrstuupWDwJQeCHYIBQy8WvkVB6ImhZ476YYy\n`;

export interface PrivateRegistry extends AsyncDisposable {
  /** As images and credentials name it. */
  server: string;
  /** Stores an image of busybox under a name such as private/app:1; returns the reference that the node pulls. */
  push(name: string): Promise<string>;
  /**
   * Stores the image for this machine of an OCI archive under a name such as mirror/app:1, as an image of its own: a kubelet that
   * pulled it with a password asks for the password wherever the same image is used. Returns its digest.
   */
  pushArchive(archive: string, name: string): Promise<string>;
}

function digestOf(blob: Buffer): string {
  return `sha256:${createHash('sha256').update(blob).digest('hex')}`;
}

/** Calls of the registry's own interface (OCI distribution specification), as its user. */
function uploader(base: string) {
  const authorization = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`;
  async function call(method: string, url: string, body?: Buffer, type = 'application/octet-stream') {
    const headers = { authorization, 'content-type': type };
    const answer = await fetch(url, {
      method,
      headers,
      dispatcher: ANY_CERTIFICATE,
      ...(body !== undefined && { body }),
    });
    if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
  return {
    async blob(repository: string, blob: Buffer): Promise<void> {
      const begun = await call('POST', `${base}/v2/${repository}/blobs/uploads/`);
      const { pathname, search } = new URL(begun.headers.get('location') ?? '', base);
      await call('PUT', `${base}${pathname}${search}&digest=${encodeURIComponent(digestOf(blob))}`, blob);
    },
    manifest: (repository: string, tag: string, manifest: Buffer, type: string) =>
      call('PUT', `${base}/v2/${repository}/manifests/${tag}`, manifest, type),
  };
}

async function pushImage(base: string, repository: string, tag: string): Promise<void> {
  const layer = tarOf(await busyboxLayer((await findStaticBusybox()) ?? ''));
  const packed = gzipSync(layer, { level: 1 });
  const config = Buffer.from(
    JSON.stringify({
      architecture: OWN_ARCHITECTURE,
      os: 'linux',
      config: { Cmd: ['/bin/sh'], Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
      // Each image has a configuration of its own, so that none is on the node by another name.
      author: `${repository}:${tag}`,
    }),
  );
  const descriptor = (mediaType: string, blob: Buffer) => ({ mediaType, size: blob.length, digest: digestOf(blob) });
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: descriptor('application/vnd.docker.container.image.v1+json', config),
    layers: [descriptor('application/vnd.docker.image.rootfs.diff.tar.gzip', packed)],
  };
  const to = uploader(base);
  for (const blob of [packed, config]) await to.blob(repository, blob);
  await to.manifest(repository, tag, Buffer.from(JSON.stringify(manifest)), mediaType);
}

interface OciIndex {
  manifests: { digest: string; platform?: { architecture: string } }[];
}

interface OciManifest {
  mediaType: string;
  config: { digest: string; size: number };
  layers: { digest: string }[];
}

async function pushArchive(base: string, archive: string, repository: string, tag: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-archive-'));
  try {
    const { code, stderr } = await run('tar', ['-xf', archive, '-C', folder]);
    if (code !== 0) throw new Error(stderr);
    const { manifests } = JSON.parse(await readFile(join(folder, 'index.json'), 'utf8')) as OciIndex;
    const read = (digest = ''): Promise<Buffer> => readFile(join(folder, 'blobs', digest.replace(':', '/')));
    const images = JSON.parse((await read(manifests[0]?.digest)).toString()) as OciIndex;
    const own = images.manifests.find(({ platform }) => platform?.architecture === OWN_ARCHITECTURE);
    const found = JSON.parse((await read(own?.digest)).toString()) as OciManifest;
    const given = JSON.parse((await read(found.config.digest)).toString()) as object;
    const config = Buffer.from(JSON.stringify({ ...given, author: `${repository}:${tag}` }));
    const described = { ...found.config, digest: digestOf(config), size: config.length };
    const manifest = Buffer.from(JSON.stringify({ ...found, config: described }));
    const to = uploader(base);
    await to.blob(repository, config);
    for (const { digest } of found.layers) await to.blob(repository, await read(digest));
    await to.manifest(repository, tag, manifest, found.mediaType);
    return digestOf(manifest);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The address of the first interface inside the namespaces of the node that is not the loopback. */
async function addressOf(initPid: number): Promise<string> {
  const { stdout } = await run('nsenter', ['--target', String(initPid), '--net', 'ip', '-4', '-o', 'address', 'show']);
  const addresses = [...stdout.matchAll(/^\d+: (\S+)\s+inet ([\d.]+)/gm)];
  const [, , address = ''] = addresses.find(([, name]) => name !== 'lo' && name !== 'cni0') ?? [];
  return address;
}

/** A real registry with a login, in the network namespace of the real node. */
export async function startRegistry(initPid: number): Promise<PrivateRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-registry-'));
  const { certificate, key } = await issue(await createAuthority('berth-test'), {
    commonName: SERVER,
    hosts: [SERVER],
  });
  const files = { htpasswd: HTPASSWD, 'tls.crt': certificate, 'tls.key': key };
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o600 });
  const config = {
    version: '0.1',
    log: { level: 'warn' },
    storage: { filesystem: { rootdirectory: join(folder, 'data') } },
    http: {
      addr: ':443',
      secret: 'of this test',
      tls: { certificate: join(folder, 'tls.crt'), key: join(folder, 'tls.key') },
    },
    auth: { htpasswd: { realm: 'berth-test', path: join(folder, 'htpasswd') } },
  };
  const base = `https://${await addressOf(initPid)}`;
  const inNetwork = ['nsenter', '--target', String(initPid), '--net'];
  const registry = await serveRegistry({ folder, config, before: inNetwork, answers: { base, status: 401 } });
  return {
    server: SERVER,
    async push(name) {
      const [repository = '', tag = ''] = name.split(':');
      await pushImage(base, repository, tag);
      return `${SERVER}/${name}`;
    },
    async pushArchive(archive, name) {
      const [repository = '', tag = ''] = name.split(':');
      return pushArchive(base, archive, repository, tag);
    },
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
