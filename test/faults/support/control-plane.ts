import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, copyFileSync, cpSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { NAMESPACES } from '../../../src/kube/types.ts';
import { applyDefinitions } from '../../../tools/cluster/apply.ts';
import { ensurePrograms } from '../../../tools/lib/go/build.ts';
import * as components from '../../../tools/cluster/built/components.ts';
import { launch } from '../../../tools/cluster/built/launch.ts';
import { cacheFolder, stateFolder } from '../../../tools/lib/paths.ts';
import { plainProgress } from '../../../tools/lib/progress.ts';
import { Tether } from '../../../tools/lib/tether.ts';
import { waitFor } from '../../support/wait-for.ts';
import { bumpRevision } from './etcd.ts';

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
  /** Copies all data; the servers stop for it. */
  backUp(): Promise<void>;
  /** Puts the copy back, as newer than all that was seen since. */
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
  const programs = await ensurePrograms({ cache, realNode: false, tidy: false, progress, signal });
  const { launcher, layout } = await launch({ state, programs, signal }, logs);
  const kubeconfig = join(state, 'kubeconfig');
  copyFileSync(join(layout.credentials, 'admin.kubeconfig'), kubeconfig);
  const tether = new Tether();
  const etcd = createServer(components.etcd(layout), logs, tether);
  const apiServer = createServer(components.apiServer(layout), logs, tether);
  const client = createKubeClient(await loadKubeConfig({ kubeconfig }), { clock: systemClock() });

  const [data, copy] = [join(layout.data, 'etcd'), join(layout.data, 'copy')];

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

  async function withoutServers(work: () => void): Promise<void> {
    await apiServer.kill();
    await etcd.kill();
    work();
    etcd.start();
  }

  async function backUp(): Promise<void> {
    await withoutServers(() => cpSync(data, copy, { recursive: true }));
    apiServer.start();
    await ready();
  }

  async function restore(): Promise<void> {
    const { resourceVersion } = await client.list(NAMESPACES);
    await withoutServers(() => {
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
    });
    await bumpRevision(layout, Number(resourceVersion));
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
  return { kubeconfig, apiServer, etcd, ready, backUp, restore, [Symbol.asyncDispose]: stop };
}
