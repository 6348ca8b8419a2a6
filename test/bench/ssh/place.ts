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

const IMAGE = 'localhost/berth-tools:bench';

/** One pod on the real node, with a gateway in this process and kubectl before it. */
export interface Place {
  server: SshServer;
  privateKey: string;
  /** Command lines that a program of the pod is appended to: by the direct way, by exec, and by kubectl. */
  ssh: string;
  sshByExec: string;
  /** What rsync takes for a remote shell, in the same order; the name of the host is any word. */
  remoteShells: readonly string[];
  /** A folder for files of this run. */
  folder: string;
  kubectl: string;
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
  const lineTo = ({ server, key }: LoneGateway, name: string): string => {
    const identity = join(folder, name);
    writeFileSync(identity, key, { mode: 0o600 });
    const flags = `-F none -p ${server.address.port} -i ${identity} -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`;
    return `ssh ${flags} -l i-one`;
  };
  // The clients are those of one tenant.
  const ceilings = { ...DEFAULT_CEILINGS, ssh: { ...DEFAULT_CEILINGS.ssh, connections: 100_000 } };
  const server = { endpoint, ceilingsOf: () => ceilings };
  const direct = await loneGateway(server, target);
  const exec = await loneGateway(server, { ...target, address: undefined });
  const lines = [lineTo(direct, 'direct'), lineTo(exec, 'exec')];
  const run = `${programs}/kubectl --kubeconfig ${kubeconfig} exec -i bench -c main --`;
  const wrapper = join(folder, 'kubectl-shell');
  writeFileSync(wrapper, `#!/bin/sh\nshift\nexec ${run} "$@"\n`, { mode: 0o700 });
  return {
    server: direct.server,
    privateKey: direct.key,
    ssh: `${lines[0]} 127.0.0.1`,
    sshByExec: `${lines[1]} 127.0.0.1`,
    remoteShells: [...lines, wrapper],
    folder,
    kubectl: `${run} ${TOOLS_BIN}/busybox`,
    stop: async () => {
      await Promise.all([direct.server.close(0), exec.server.close(0)]);
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
