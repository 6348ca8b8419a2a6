import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { podTarget } from '../../../src/access/pod-target.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { PODS } from '../../../src/kube/types.ts';
import { bringUp } from '../../../tools/cluster/bring-up.ts';
import { importImage } from '../../../tools/lib/images/image.ts';
import { readOptions } from '../../../tools/cluster/options.ts';
import { cacheFolder, stateFolder } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { toolsImage } from '../../../tools/lib/images/tools-image.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { TOOLS_BIN, toolsVolume } from '../../../src/resources/pod/tools-volume.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { loneGateway, type LoneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';
import { newEd25519Key } from '../../../src/ssh/login/ed25519-key.ts';
import { startSshd } from './sshd.ts';

const IMAGE = 'localhost/berth-tools:bench';

/** A way to where programs run. */
export interface Way {
  /** A command line that a shell command is appended to, in quotes. */
  shell: string;
  /** What rsync takes for a remote shell; the name of the host is any word. */
  remoteShell: string;
  /** Scp with its flags; the name of the host is any word. */
  scp: string;
  /** There. */
  rsync: string;
  /** There, where copies go. */
  folder: string;
}

/** One pod on the real node, with a gateway in this process and kubectl before it. */
export interface Place {
  server: SshServer;
  privateKey: string;
  /** To the pod. */
  direct: Way;
  exec: Way;
  kubectl: Way;
  /** To this machine, by OpenSSH's server. */
  sshd: Way;
  /** A folder for files of this run. */
  folder: string;
  stop(): Promise<void>;
}

/** Brings up a cluster of its own; needs root. */
export async function makePlace(): Promise<Place> {
  const progress = plainProgress();
  const cluster = await bringUp({
    ...readOptions([], process.env, join(stateFolder(), 'kubeconfig')),
    state: join(stateFolder(), 'bench'),
    cache: cacheFolder(process.env),
    interactive: false,
    tidy: false,
    otherMakers: false,
    total: 3,
    progress,
    signal: new AbortController().signal,
  });
  const { initPid, programs, kubeconfig, client } = cluster;
  if (initPid === undefined || programs === undefined) throw new Error('The bench needs the real node.');
  await importImage({ initPid, programs }, await toolsImage(IMAGE, cacheFolder(process.env)));
  const { volume, initContainer, mount } = toolsVolume(IMAGE);
  const ref = { namespace: 'default', name: 'bench' };
  const main = {
    name: 'main',
    image: IMAGE,
    command: [`${TOOLS_BIN}/tini`, '--', `${TOOLS_BIN}/busybox`, 'sleep', '2147483647'],
    volumeMounts: [mount],
  };
  const spec = { nodeName: 'real-0', initContainers: [initContainer], containers: [main], volumes: [volume] };
  await waitFor('the service account', () =>
    client.create(PODS, { metadata: ref, spec: { ...spec, terminationGracePeriodSeconds: 0 } }).catch(() => undefined),
  );
  const pod = await waitFor(
    'the pod',
    async () => {
      const seen = await client.get(PODS, ref);
      return seen.status?.containerStatuses?.[0]?.state?.running === undefined ? undefined : seen;
    },
    60_000,
  );
  const target = podTarget(pod);
  const endpoint = await loadKubeConfig({ kubeconfig });
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const executable = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o700 });
    return path;
  };
  const inPod = { rsync: `${TOOLS_BIN}/rsync`, folder: '' };
  const bySsh = (name: string, key: string, options: Record<string, string | number>) => {
    const identity = join(folder, name);
    writeFileSync(identity, key, { mode: 0o600 });
    const all = { ...options, IdentitiesOnly: 'yes', StrictHostKeyChecking: 'no', LogLevel: 'ERROR' };
    const flags = Object.entries({ ...all, UserKnownHostsFile: '/dev/null' }).map(
      ([option, value]) => `-o ${option}=${value}`,
    );
    const line = ['-F none', `-i ${identity}`, ...flags].join(' ');
    return { shell: `ssh ${line} 127.0.0.1`, remoteShell: `ssh ${line}`, scp: `scp ${line}` };
  };
  // The clients are those of one tenant.
  const ceilings = { ...DEFAULT_CEILINGS, ssh: { ...DEFAULT_CEILINGS.ssh, connections: 100_000 } };
  const server = { endpoint, ceilingsOf: () => ceilings };
  const direct = await loneGateway(server, target);
  const exec = await loneGateway(server, { ...target, address: undefined });
  const gateway = (name: string, { server: { address }, key }: LoneGateway): Way => ({
    ...bySsh(name, key, { Port: address.port, User: 'i-one' }),
    ...inPod,
  });
  const own = newEd25519Key('');
  const sshd = await startSshd(folder, own.public);
  const run = `exec ${programs}/kubectl --kubeconfig ${kubeconfig} exec -i bench -c main --`;
  const fileServer = executable('kubectl-sftp', `${run} ${TOOLS_BIN}/sftp-server`);
  return {
    server: direct.server,
    privateKey: direct.key,
    direct: gateway('direct', direct),
    exec: gateway('exec', exec),
    kubectl: {
      shell: executable('kubectl-sh', `${run} ${TOOLS_BIN}/busybox sh -c "$*"`),
      remoteShell: executable('kubectl-shell', `shift\n${run} "$@"`),
      scp: `scp -S ${fileServer}`,
      ...inPod,
    },
    sshd: { ...bySsh('sshd-key', own.private, { Port: sshd.port }), rsync: 'rsync', folder },
    folder,
    stop: async () => {
      await Promise.all([direct.server.close(0), exec.server.close(0), sshd.stop()]);
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
