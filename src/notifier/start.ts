import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { KubeClient } from '../kube/client/client.ts';
import { keyOf } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { InstanceHistory } from '../resources/instance-history.ts';
import { Controller, type RunSignals } from '../runtime/controller.ts';
import { createControllerMetrics } from '../runtime/controller-metrics.ts';
import { NOTIFIER_LEASE } from '../runtime/lease-record.ts';
import { createLeaderMetric, Election } from '../runtime/lease.ts';
import { guardWrites } from '../runtime/write-guard.ts';
import { storeSource } from '../runtime/source.ts';
import { Deliverer, type DelivererDeps, DELIVERIES, type NotifierStores } from './deliverer.ts';
import { EventIndex } from './event-index.ts';
import { Lags, createNotifierMetrics } from './metrics.ts';

/** Milliseconds of one turn: more than it takes by itself, with its last delivery. */
const RECONCILE_MS = 60_000;
/** Milliseconds that deliveries get to end. The next leader repeats those that are cut off. */
const GRACE_MS = 11_000;

export interface NotifierDeps extends Pick<DelivererDeps, 'targets' | 'key' | 'clock'> {
  client: KubeClient;
  /** For the lease alone, with connections of its own. */
  leaseClient: KubeClient;
  stores: NotifierStores & { histories: ReadStore<InstanceHistory> };
  /** Berth's own, where the Lease is. */
  namespace: string;
  registry: Registry;
  log: Logger;
}

export interface RunningNotifier {
  /** `ended`: it gave up by itself, and the process should restart. */
  readonly ended: Promise<'ended' | 'stopped'>;
  /** Takes no new event, lets deliveries end, and gives the lease back. */
  stop(): Promise<void>;
}

type LeadDeps = Omit<DelivererDeps, 'stopping' | 'index' | 'stores'> &
  Pick<NotifierDeps, 'log' | 'stores'> & { metrics: ReturnType<typeof createControllerMetrics> };

/** One term. What an earlier one remembered may be behind what another leader did since. */
async function lead(deps: LeadDeps, signals: RunSignals): Promise<void> {
  const { stores, clock, log, lags, metrics } = deps;
  lags.clear();
  const index = new EventIndex(stores.histories);
  const deliverer = new Deliverer({ ...deps, index, stopping: signals.stop });
  const keysIn = (namespace = ''): string[] => stores.webhooks.by('namespace', namespace).map(keyOf);
  const controller = new Controller({
    name: 'webhooks',
    sources: [
      storeSource(stores.webhooks, (webhook) => [keyOf(webhook)]),
      storeSource(stores.histories, ({ metadata }) => keysIn(metadata.namespace)),
      storeSource(stores.tenantLimits, ({ metadata }) => keysIn(metadata.namespace)),
    ],
    reconcile: (key, context) => deliverer.reconcile(key, context),
    concurrency: DELIVERIES,
    timeoutMs: RECONCILE_MS,
    clock,
    log,
    metrics: metrics('webhooks', DELIVERIES),
  });
  await controller.run(signals).finally(() => index.close());
  lags.clear();
}

/** The notifier of one replica: it delivers while it has the lease. */
export function startNotifier(deps: NotifierDeps): RunningNotifier {
  const { clock, log, namespace, registry } = deps;
  const stop = new AbortController();
  const abort = new AbortController();
  const lags = new Lags();
  const count = createNotifierMetrics(registry, () => lags.oldestMs(clock.now()));
  const metrics = createControllerMetrics(registry, clock);
  const election = new Election({
    client: deps.leaseClient,
    namespace,
    name: NOTIFIER_LEASE,
    identity: `${hostname()}_${process.pid}_${randomUUID()}`,
    clock,
    random: Math.random,
    log,
    // A status that still arrives takes a cursor back at most: that repeats events and loses none.
    mayRelease: () => true,
    onStatus: createLeaderMetric(registry)(NOTIFIER_LEASE),
  });
  const mayDeliver = (): boolean => election.mayWrite();
  const client = guardWrites(deps.client, mayDeliver, () => undefined);
  const ended = election.run({ stop: stop.signal, abort: abort.signal }, (signals) =>
    lead({ ...deps, random: Math.random, client, mayDeliver, count, metrics, lags }, signals),
  );
  return {
    ended,
    async stop() {
      stop.abort();
      const cancel = clock.setTimeout(() => abort.abort(new Error('The time to stop is over.')), GRACE_MS);
      await ended;
      cancel();
    },
  };
}
