import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { KubeClient } from '../../../src/kube/client.ts';
import { LEASES } from '../../../src/kube/types.ts';
import { waitFor } from '../../support/wait-for.ts';
import { LEASE_NAMESPACE } from './replica.ts';

const SCRIPT = fileURLToPath(new URL('controller-process.ts', import.meta.url));

/** Replicas in processes of their own; one that ends is started again, as a Deployment would. */
export interface ReplicaSet extends AsyncDisposable {
  /** The process that holds the lease. */
  leader(): Promise<ChildProcess>;
}

/** Starts replicas and waits until one leads. */
export async function startReplicaSet(client: KubeClient, kubeconfig: string, count: number): Promise<ReplicaSet> {
  const children = new Set<ChildProcess>();
  let stopping = false;

  async function start(): Promise<void> {
    // The process id makes the identity in the lease tell which process leads.
    const child = spawn(process.execPath, [SCRIPT, kubeconfig], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.add(child);
    child.on('exit', () => {
      children.delete(child);
      if (!stopping) void start();
    });
    await once(child.stdout, 'data');
  }

  await Promise.all(Array.from({ length: count }, start));
  return {
    leader: () =>
      waitFor(
        'a leader among the processes',
        async () => {
          const { spec } = await client.get(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
          return [...children].find(({ pid }) => spec?.holderIdentity?.startsWith(`${hostname()}_${pid}_`));
        },
        60_000,
      ),
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
