import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { programFolder } from '../../../tools/lib/go/build.ts';
import { OWN_ARCHITECTURE } from '../../../tools/lib/host/architecture.ts';
import { KWOK_STAGES, kubernetesVersion, kwokVersion, lockedVersion } from '../../../tools/lib/go/programs.ts';
import { cacheFolder, ROOT } from '../../../tools/lib/paths.ts';
import { type Outcome, run } from '../../../tools/lib/shell.ts';
import { phase } from '../../support/phases.ts';

/** As on a machine without a Go that builds them. */
const OLD_GO = '#!/bin/sh\necho "go version go1.10 linux/amd64"\n';

let folder = '';
let checkout = '';
let server: Server;
let env: NodeJS.ProcessEnv;

/** The places of the makers' files below a mirror, with the paths of the programs that stand in for them. */
async function archives(): Promise<Map<string, string>> {
  const programs = programFolder(cacheFolder(process.env));
  const processor = OWN_ARCHITECTURE;
  const kubernetes = `dl.k8s.io/release/v${kubernetesVersion()}/bin/linux/${processor}`;
  const kwok = `github.com/kubernetes-sigs/kwok/releases/download/v${kwokVersion()}`;
  const version = `v${lockedVersion('kubernetes', 'go.etcd.io/etcd/server/v3')}`;
  const etcd = `etcd-${version}-linux-${processor}`;
  await mkdir(join(folder, etcd));
  await symlink(join(programs, 'etcd'), join(folder, etcd, 'etcd'));
  const packed = join(folder, `${etcd}.tar.gz`);
  const { code, stderr } = await run('tar', ['-czhf', packed, '-C', folder, etcd]);
  if (code !== 0) throw new Error(stderr);
  const names = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'];
  return new Map([
    ...names.map((name): [string, string] => [`${kubernetes}/${name}`, join(programs, name)]),
    [`${kwok}/kwok-linux-${processor}`, join(programs, 'kwok')],
    [`${kwok}/stage-fast.yaml`, join(programs, KWOK_STAGES)],
    [`github.com/etcd-io/etcd/releases/download/${version}/${etcd}.tar.gz`, packed],
  ]);
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/** The files of this checkout as git knows them, with its npm packages. */
async function copyCheckout(): Promise<void> {
  const copy = `git ls-files -z | tar --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C '${checkout}'`;
  const { code, stderr } = await run('bash', ['-o', 'pipefail', '-c', copy], { cwd: ROOT });
  if (code !== 0) throw new Error(stderr);
  await symlink(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
}

const npm = (...args: string[]): Promise<Outcome> => run('npm', args, { cwd: checkout, env, timeout: 400_000 });

describe.runIf(process.platform === 'linux')('the first start of a machine that has a mirror and no Go', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-first-start-'));
    checkout = join(folder, 'berth');
    await mkdir(checkout);
    await copyCheckout();
    const files = await archives();
    const pins = await Promise.all([...files].map(async ([place, path]) => `${await hashOf(path)}  ${place}\n`));
    await writeFile(join(checkout, 'deploy/local/archives.sha256'), pins.join(''));
    server = createServer((request, response) => {
      const path = files.get(request.url?.slice(1) ?? '');
      if (path === undefined) response.writeHead(404).end();
      else void pipeline(createReadStream(path), response.writeHead(200)).catch(() => response.destroy());
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    await mkdir(join(folder, 'bin'));
    await writeFile(join(folder, 'bin/go'), OLD_GO, { mode: 0o755 });
    env = {
      HOME: folder,
      PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
      BERTH_MIRROR: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    };
  });

  afterAll(async () => {
    await npm('stop');
    server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('downloads all programs, starts, and the lines of its tour work', async () => {
    const started = await phase('npm start, empty caches, from a mirror', () =>
      npm('start', '--', '--detach', '--built'),
    );
    expect(started.code, started.stderr).toBe(0);
    expect(started.stderr).toContain('Downloading kube-apiserver');
    expect(started.stderr + started.stdout).not.toMatch(/Building|Built here/);
    const lines = started.stdout.split('line by line:')[1]?.split('\nIt runs in the background')[0];
    const tour = await phase('the tour', () =>
      run('bash', ['-ec', `cd '${checkout}'\n${lines}`], { env, timeout: 180_000 }),
    );
    expect(tour.code, tour.stdout + tour.stderr).toBe(0);
    expect(tour.stdout).toMatch(/^OFFER [^]*^i-[a-z0-9]+$[^]*gpuinstance.berth.dev\/sample\s+\S/m);
    expect((await npm('stop')).stdout).toContain('Stopped');
    expect(await readFile(join(checkout, '.berth/logs/kube-apiserver.log'), 'utf8')).not.toBe('');
  }, 600_000);
});
