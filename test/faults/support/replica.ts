import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import { LEASES } from '../../../src/kube/types.ts';
import { Caches } from '../../../src/caches/caches.ts';
import { CONTROLLER_CACHES } from '../../../src/controllers/stores.ts';
import { type RunningControllers, startControllers } from '../../../src/controllers/start.ts';

/** Where the lease of every test's controllers is: one lease, so that tests side by side never have two leaders. */
export const LEASE_NAMESPACE = 'default';

export interface ReplicaOptions {
  kubeconfig: string;
  /** Puts itself between the controllers and the API server. */
  wrap?: (client: KubeClient) => KubeClient;
  wrapLease?: (client: KubeClient) => KubeClient;
  /** Whether the pod of a first start bears the claim. */
  claimOnPod: boolean;
  /** Another way to the API server, for example through a proxy. */
  client?: KubeClient;
  /** The machine's, where it is absent. */
  clock?: Clock;
  /** Whether it waits for the reports of gateways before it ends an idle instance. */
  hearsSessions?: boolean;
  /** Whether an instance waits until policies close its namespace. */
  requiresNetworkPolicy?: boolean;
}

/** One replica of the controllers in this process. */
export async function startReplica(options: ReplicaOptions): Promise<RunningControllers & AsyncDisposable> {
  const { clock = systemClock() } = options;
  const connection = await loadKubeConfig({ kubeconfig: options.kubeconfig });
  const direct = createKubeClient(connection, { clock });
  const base = options.client ?? direct;
  const client = options.wrap?.(base) ?? base;
  const log = pino({ level: process.env['BERTH_TEST_LOG'] ?? 'silent' });
  const watching = new AbortController();
  // As the controller role has it: it shows no specs.
  const reads = { texts: false };
  const { claimOnPod } = options;
  const caches = new Caches({ client, namespace: LEASE_NAMESPACE, clock, log, reads, claimOnPod }, watching.signal);
  const controllers = await startControllers({
    client,
    leaseClient: options.wrapLease?.(direct) ?? direct,
    stores: caches.pick(CONTROLLER_CACHES),
    networkPolicies: options.requiresNetworkPolicy === true ? caches.get('networkPolicies') : undefined,
    registry: new Registry(),
    log,
    clock,
    hearsSessions: options.hearsSessions ?? false,
    config: {
      namespace: LEASE_NAMESPACE,
      defaultImage: 'debian:12',
      toolsImage: 'localhost/berth-tools:test',
      imagePullSecrets: [],
      imagePullPolicy: 'IfNotPresent',
      ssh: { host: 'ssh.test', port: 2222 },
      claimOnPod,
    },
  });
  async function stop(): Promise<void> {
    await controllers.stop();
    watching.abort();
    await caches.ended();
    await direct.close();
  }
  return { ended: controllers.ended, inventory: controllers.inventory, stop, [Symbol.asyncDispose]: stop };
}

/** What the end of the lease's term does after its holder died, without the wait. */
export async function expireLease(client: KubeClient): Promise<void> {
  await client.delete(LEASES, { namespace: LEASE_NAMESPACE, name: 'berth-controller' });
}
