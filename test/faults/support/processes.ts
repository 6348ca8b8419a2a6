import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { LEASES } from '../../../src/kube/types.ts';
import { writeKubeconfig } from '../../support/fault-proxy/kubeconfig.ts';
import { waitFor } from '../../support/wait-for.ts';
import { LEASE_NAMESPACE } from './replica.ts';
import { isEven } from './seed.ts';

const SCRIPT = fileURLToPath(new URL('controller-process.ts', import.meta.url));

/** Replicas in processes of their own; one that ends is started again, as a Deployment would. */
interface ReplicaSet extends AsyncDisposable {
  /** The process that holds the lease. */
  leader(): Promise<ChildProcess>;
  /** How processes ended by themselves or were ended: exit codes and signals. */
  readonly exits: readonly (number | string | null)[];
}

// The process id makes the identity in the lease tell which process leads.
function spawnReplica(kubeconfig: string) {
  return spawn(process.execPath, [SCRIPT, kubeconfig, String(isEven(inject('seed')))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** One replica in a process of its own, on its way to the API server by this URL. */
export async function startProcessBehind(server: string): Promise<ChildProcess & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-replica-'));
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server);
  const child = spawnReplica(kubeconfig);
  await once(child.stdout, 'data');
  return Object.assign(child, {
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill('SIGCONT');
      if (child.kill('SIGKILL')) await ended;
      await rm(folder, { recursive: true });
    },
  });
}

/** Waits until one of the processes that live has the lease of this namespace. */
export function leaderAmong(
  client: KubeClient,
  namespace: string,
  children: Iterable<ChildProcess>,
): Promise<ChildProcess> {
  const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;
  return waitFor(
    'a leader among the processes',
    async () => {
      const { items } = await client.list(LEASES, { namespace });
      const holder = items.find(({ metadata }) => metadata.name === 'berth-controller')?.spec?.holderIdentity;
      const alive = [...children].filter(isAlive);
      return alive.find(({ pid }) => holder?.startsWith(`${hostname()}_${pid}_`) === true);
    },
    120_000,
  );
}

/** Starts replicas and waits until one leads. */
export async function startReplicaSet(client: KubeClient, kubeconfig: string, count: number): Promise<ReplicaSet> {
  const children = new Set<ChildProcess>();
  const exits: (number | string | null)[] = [];
  let stopping = false;

  async function start(): Promise<void> {
    const child = spawnReplica(kubeconfig);
    children.add(child);
    child.on('exit', (code, signal) => {
      children.delete(child);
      if (stopping) return;
      exits.push(code ?? signal);
      void start();
    });
    await once(child.stdout, 'data');
  }

  await Promise.all(Array.from({ length: count }, start));
  return {
    exits,
    leader: () => leaderAmong(client, LEASE_NAMESPACE, children),
    async [Symbol.asyncDispose]() {
      stopping = true;
      const ended = [...children].map((child) => once(child, 'exit'));
      for (const child of children) {
        child.kill('SIGCONT');
        child.kill('SIGKILL');
      }
      await Promise.all(ended);
      await client.delete(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
    },
  };
}
