import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { arch, tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { fetch } from 'undici';
import { findStaticBusybox } from '../../../tools/lib/host/requirements.ts';
import { busyboxLayer } from '../../../tools/lib/images/image.ts';
import { run } from '../../../tools/lib/shell.ts';
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
      architecture: arch() === 'x64' ? 'amd64' : arch(),
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
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
