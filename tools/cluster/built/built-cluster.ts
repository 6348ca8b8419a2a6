import { chmodSync, copyFileSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { systemClock } from '../../../src/lib/clock.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { LocalFailure } from '../../lib/failure.ts';
import { waitFor } from '../../lib/wait.ts';
import { brokenPromise } from './broken.ts';
import * as components from './components.ts';
import { type BuiltOptions, launch, type Launched } from './launch.ts';
import { joinRealNode, labelGpus, REAL_GPU, REAL_NODE } from './real-node.ts';
import type { ClusterNetwork } from './network.ts';
import type { Gpu } from '../fleet/labels.ts';

/** A running cluster of programs that are built from Go modules. */
export interface BuiltCluster {
  kubeconfig: string;
  client: KubeClient;
  /** The folder of kubectl and the other programs. */
  programs: string;
  /** The first process of the real node's namespaces; undefined when all nodes are simulated. */
  initPid: number | undefined;
  network: ClusterNetwork | undefined;
  cgroup: string | undefined;
  /** The API server's audit log, with `audit`. */
  auditLog: string;
  /** Resolves with the reason when the cluster breaks by itself. */
  broken: Promise<LocalFailure>;
  /** Starts a program again that a test has killed. */
  startAgain(program: 'kube-apiserver' | 'kubelet'): void;
  /** Labels the real node with these GPUs, and starts the device plugin that offers them. Another one must have ended. */
  startPlugin(gpu: Gpu): Promise<void>;
  /** From now on the GPUs of the real node with these UUIDs are sick, and no others. */
  setSick(uuids: readonly string[]): void;
  stop(): Promise<void>;
}

/** Milliseconds within which the API server must answer; it takes 4 s on two idle cores. */
const READY_TIMEOUT = 120_000;

/** Starts the control plane and, when asked for, the real node; resolves when both are ready. */
export async function startBuiltCluster(options: BuiltOptions): Promise<BuiltCluster> {
  const { state, programs } = options;
  const logs = join(state, 'logs');
  for (const folder of [join(state, 'cluster'), logs]) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
  await using stack = new AsyncDisposableStack();
  const launched = await launch(options, logs);
  const { launcher, layout, network, cgroup } = launched;
  stack.defer(() => launcher.stop());
  const broken = brokenPromise(launcher, logs);
  const failed = broken.then((failure) => Promise.reject(failure));
  // `broken` reports what ends after the start.
  failed.catch(() => undefined);
  const kubeconfig = join(state, 'kubeconfig');
  copyFileSync(join(layout.credentials, 'admin.kubeconfig'), kubeconfig);
  chmodSync(kubeconfig, 0o600);
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });
  stack.defer(() => client.close());
  await startComponents(options, launched, client, failed);
  const running = stack.move();
  return {
    kubeconfig,
    client,
    programs,
    initPid: launcher.initPid,
    network,
    cgroup,
    auditLog: components.auditLog(layout),
    broken,
    startAgain: (program) =>
      launcher.start(program === 'kubelet' ? components.kubelet(layout) : components.apiServer(layout)),
    startPlugin: async (gpu) => {
      await labelGpus(client, REAL_NODE, gpu);
      launcher.start(components.gpuPlugin(layout, gpu));
    },
    setSick: (uuids) => {
      const file = components.sickGpus(layout);
      writeFileSync(`${file}.new`, uuids.join('\n'));
      renameSync(`${file}.new`, file);
    },
    stop: async () => {
      await running.disposeAsync();
      rmSync(join(state, 'cluster'), { recursive: true, force: true });
    },
  };
}

/** Starts every component in its turn. `failed` rejects when one of them ends. */
async function startComponents(
  { node, networkPolicies, signal }: BuiltOptions,
  { launcher, layout }: Launched,
  client: KubeClient,
  failed: Promise<never>,
): Promise<void> {
  launcher.start(components.etcd(layout));
  launcher.start(components.apiServer(layout));
  if (node !== undefined) launcher.start(components.containerd(layout));
  await Promise.race([untilReady(client, signal), failed]);
  launcher.start(components.controllerManager(layout));
  launcher.start(components.scheduler(layout));
  launcher.start(components.kwok(layout));
  const { initPid } = launcher;
  if (node === undefined || initPid === undefined) return;
  await Promise.race([
    joinRealNode({ launcher, layout, client, initPid, busybox: node.busybox, gpu: node.gpu ?? REAL_GPU, signal }),
    failed,
  ]);
  if (networkPolicies !== undefined) launcher.start(components.networkPolicies(layout, networkPolicies));
}

async function untilReady(client: KubeClient, signal: AbortSignal): Promise<void> {
  const ready = await waitFor(
    async () => {
      try {
        const answer = await client.stream('/readyz', {}, { signal });
        await finished(answer.resume());
        return true;
      } catch {
        return false;
      }
    },
    { timeout: READY_TIMEOUT, interval: 100, signal },
  );
  if (ready === true) return;
  throw new LocalFailure('The API server was not ready after two minutes.', 'Read .berth/logs/kube-apiserver.log.');
}
