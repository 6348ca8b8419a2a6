import { systemClock } from '../../../src/lib/clock.ts';
import { loadKubeConfig } from '../../../src/kube/config/config.ts';
import { createKubeClient } from '../../../src/kube/client/rest-client.ts';
import type { RunningControllers } from '../../../src/controllers/start.ts';
import { type FaultProxy, faultProxy } from '../../support/fault-proxy/proxy.ts';
import { plainConnection } from '../../support/test-cluster.ts';
import { recordWrites, type Write } from './counting-client.ts';
import type { ReplicaOptions } from './replica.ts';
import type { World } from './world.ts';

/** Watch caches of the controllers. */
export const CACHES = 13;

/** A way to the API server through a proxy that injects faults. */
export interface BrokenWay extends AsyncDisposable {
  readonly proxy: FaultProxy;
  /** What the replicas on this way wrote. */
  readonly writes: readonly Write[];
  replica(options?: Pick<ReplicaOptions, 'wrapLease'>): Promise<RunningControllers & AsyncDisposable>;
}

/** A proxy in front of the world's API server; its replicas renew their lease past it. */
export async function brokenWay(world: World): Promise<BrokenWay> {
  const upstream = await loadKubeConfig({ kubeconfig: world.kubeconfig });
  const proxy = await faultProxy(upstream);
  const connection = plainConnection(proxy.server);
  const writes: Write[] = [];
  const client = recordWrites(createKubeClient(connection, { clock: systemClock() }), writes);
  const replicas: AsyncDisposable[] = [];
  return {
    proxy,
    writes,
    async replica(options = {}) {
      const replica = await world.replica({ client, ...options });
      replicas.push(replica);
      return replica;
    },
    async [Symbol.asyncDispose]() {
      for (const replica of replicas) await replica[Symbol.asyncDispose]();
      await connection.close();
      await proxy[Symbol.asyncDispose]();
      await upstream.close();
    },
  };
}
