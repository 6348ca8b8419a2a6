import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, copyFileSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { applyDefinitions } from '../../../tools/cluster/apply.ts';
import { ensurePrograms } from '../../../tools/lib/go/build.ts';
import * as components from '../../../tools/cluster/built/components.ts';
import { launch } from '../../../tools/cluster/built/launch.ts';
import { cacheFolder, stateFolder } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { run } from '../../../tools/lib/shell.ts';
import { Tether } from '../../../tools/lib/tether.ts';
import { ETCD_TOOLS, ensureGoTools } from '../../../tools/release/go-tools.ts';
import { blockWith, readManual } from '../../support/manual.ts';
import { waitFor } from '../../support/wait-for.ts';

/** A server of a control plane that a test may kill and suspend. */
export interface Server {
  /** SIGKILL; resolves when it is dead. */
  kill(): Promise<void>;
  start(): void;
  suspend(): void;
  resume(): void;
}

/** A control plane of a test's own, simulated nodes only. */
export interface ControlPlane extends AsyncDisposable {
  readonly kubeconfig: string;
  readonly apiServer: Server;
  readonly etcd: Server;
  /** Resolves when the API server answers and has its data. */
  ready(): Promise<void>;
  /** Saves a snapshot of etcd, by the command of docs/run/install.md. */
  backUp(): Promise<void>;
  /** Restores the snapshot, by the command of docs/run/install.md. The servers stop for it. */
  restore(): Promise<void>;
}

function createServer({ command, args, name }: components.Component, logs: string, tether: Tether): Server {
  let child: ChildProcess | undefined;
  return {
    start() {
      const log = openSync(join(logs, `${name}.log`), 'a');
      child = spawn(command, args, { detached: true, stdio: ['ignore', log, log] });
      closeSync(log);
      if (child.pid !== undefined) tether.hold(child.pid);
    },
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
    suspend: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
  };
}

export async function startControlPlane(): Promise<ControlPlane> {
  const state = join(stateFolder(), 'faults');
  const logs = join(state, 'logs');
  rmSync(state, { recursive: true, force: true });
  mkdirSync(logs, { recursive: true });
  const { signal } = new AbortController();
  const progress = plainProgress();
  const cache = cacheFolder(process.env);
  const programs = await ensurePrograms({ cache, cluster: 'simulated', tidy: false, progress, signal });
  const etcdTools = await ensureGoTools({ cache, label: 'etcd', programs: ETCD_TOOLS, progress, signal });
  const { launcher, layout } = await launch({ state, programs, signal }, logs);
  const kubeconfig = join(state, 'kubeconfig');
  copyFileSync(join(layout.credentials, 'admin.kubeconfig'), kubeconfig);
  const tether = new Tether();
  const etcd = createServer(components.etcd(layout), logs, tether);
  const apiServer = createServer(components.apiServer(layout), logs, tether);
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });

  const [save = '', restoreTo = ''] = blockWith(await readManual('run/install.md'), 'etcdctl snapshot').split('\n');

  /** Runs a command of etcd's tools in the folder of the state. */
  async function withEtcdTools(command: string): Promise<void> {
    const file = (name: string): string => join(layout.credentials, name);
    const env = {
      PATH: `${etcdTools}:${process.env['PATH'] ?? ''}`,
      ETCDCTL_ENDPOINTS: `https://127.0.0.1:${layout.etcdPort}`,
      ETCDCTL_CACERT: file('ca.crt'),
      ETCDCTL_CERT: file('etcd.crt'),
      ETCDCTL_KEY: file('etcd.key'),
    };
    const { code, stdout, stderr } = await run('bash', ['-c', command], { cwd: state, env });
    if (code !== 0) throw new Error(`${command}: ${stderr}${stdout}`);
  }

  async function ready(): Promise<void> {
    await waitFor(
      'the API server to be ready',
      () =>
        client.stream('/readyz', {}, {}).then(
          (body) => body.resume() !== undefined,
          () => false,
        ),
      120_000,
    );
  }

  async function restore(): Promise<void> {
    const data = join(layout.data, 'etcd');
    await apiServer.kill();
    await etcd.kill();
    rmSync(data, { recursive: true });
    await withEtcdTools(restoreTo.replace('DIR', data));
    etcd.start();
    apiServer.start();
    await ready();
  }

  async function stop(): Promise<void> {
    await client.close();
    await launcher.stop();
    await apiServer.kill();
    await etcd.kill();
    tether.release();
    rmSync(join(state, 'cluster'), { recursive: true, force: true });
  }

  etcd.start();
  apiServer.start();
  try {
    await ready();
    for (const component of [components.controllerManager, components.scheduler, components.kwok]) {
      launcher.start(component(layout));
    }
    await applyDefinitions(client, signal);
  } catch (error) {
    await stop();
    throw error;
  }
  const backUp = (): Promise<void> => withEtcdTools(save);
  return { kubeconfig, apiServer, etcd, ready, backUp, restore, [Symbol.asyncDispose]: stop };
}
