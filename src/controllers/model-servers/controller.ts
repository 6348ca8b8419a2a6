import type { Lease, Service } from '../../kube/types.ts';
import type { ReadStore } from '../../kube/watch/store.ts';
import { keyOf } from '../../kube/types.ts';
import { LEASE_SERVICE, notesOf } from '../../resources/model-servers/lease.ts';
import { Controller } from '../../runtime/controller.ts';
import { Fence } from '../../runtime/fence.ts';
import { storeSource } from '../../runtime/source.ts';
import { type CommonDeps, RECONCILE_TIMEOUT_MS } from '../common-deps.ts';
import { ModelServers } from './reconcile.ts';

/** What the controller of model servers needs beside what all controllers have. */
export interface ModelServerOptions {
  /** Narrowed to the label `berth.dev/model-server=true`. */
  services: ReadStore<Service>;
  /** Those of Berth's own namespace with the label of model servers. */
  leases: ReadStore<Lease>;
  /** Where the operator lets Berth scale workloads. */
  namespaces: readonly string[];
  /** Berth's own namespace. */
  namespace: string;
}

const WORKERS = 2;

/** Lets the workloads of model servers go to zero while nobody calls them, and brings them back. Keys are Services. */
export function createModelServerController(
  { client, clock, log, metrics }: Pick<CommonDeps, 'client' | 'clock' | 'log' | 'metrics'>,
  options: ModelServerOptions,
): Controller {
  const fence = new Fence(clock, log);
  const servers = new ModelServers({ ...options, client, clock, fence });
  return new Controller({
    name: 'model-server',
    sources: [
      storeSource(options.services, (service) => [keyOf(service)]),
      storeSource(options.leases, (lease) => {
        const service = notesOf(lease)[LEASE_SERVICE];
        return service === undefined ? [] : [service];
      }),
    ],
    reconcile: (key, context) => servers.reconcile(key, context),
    concurrency: WORKERS,
    timeoutMs: RECONCILE_TIMEOUT_MS,
    fence,
    clock,
    log,
    metrics: metrics('model-server', WORKERS),
  });
}
