import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { Inventory } from '../inventory/inventory.ts';
import type { DeviceStores } from '../inventory/devices/device-index.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { EventRecorder } from '../kube/events.ts';
import type { NetworkPolicy } from '../kube/network-policy.ts';
import type { KubeObject } from '../kube/types.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { Clock } from '../lib/clock.ts';
import type { GpuPoolSpec } from '../resources/gpu-pool.ts';
import { INSTANCE_HISTORIES } from '../resources/instance-history.ts';
import { INSTANCE_LOGS } from '../resources/instance-log.ts';
import type { ClockCheck } from '../runtime/clock-check.ts';
import { createControllerMetrics } from '../runtime/controller-metrics.ts';
import { createLeaderMetric, Election } from '../runtime/lease.ts';
import { CONTROLLER_LEASE } from '../runtime/lease-record.ts';
import { RecordTimes } from '../runtime/record-times.ts';
import { CutWrites, guardWrites } from '../runtime/write-guard.ts';
import type { Tracer } from '../runtime/tracing/tracer.ts';
import { createCatchUpMetric } from './catch-up.ts';
import type { InstanceConfig } from './gpu-instance/act/run.ts';
import type { PodProbes } from './gpu-instance/controller.ts';
import { createEndingMetric, createStartMetric } from './gpu-instance/start-metric.ts';
import { traceStarts } from './gpu-instance/trace-starts.ts';
import { UnbilledPlaces } from './gpu-instance/unbilled-places.ts';
import { UnrecordedInstances } from './gpu-instance/unrecorded.ts';
import { lead } from './lead.ts';
import type { OutsideServers } from './status/model-server.ts';
import type { ModelServerOptions } from './model-servers/controller.ts';
import { createFleetMetrics } from './fleet-metrics.ts';
import type { ControllerStores } from './stores.ts';
import { limitReader } from './tenants/tenant-ceilings.ts';

export interface ControllersDeps extends PodProbes {
  client: KubeClient;
  /** For the lease alone. It should have connections of its own: a burst of calls must not delay the lease. */
  leaseClient: KubeClient;
  /** The caller keeps them up to date until after `stop`. */
  stores: ControllerStores;
  /** Those of all namespaces, where an instance waits until they close its own; else undefined. */
  networkPolicies?: ReadStore<NetworkPolicy> | undefined;
  /** What is in ResourceSlices; absent: nothing. */
  devices?: DeviceStores | undefined;
  /** Of nodes that Berth's tools run on; absent: all. */
  architectures?: ReadonlySet<string> | undefined;
  registry: Registry;
  log: Logger;
  clock: Clock;
  /** Traces the starts of instances; undefined: not at all. */
  tracer?: Tracer | undefined;
  /** Absent where no model server may scale to zero. */
  modelServers?: ModelServerOptions | undefined;
  /** Absent where nothing outside the cluster is called. */
  outsideServers?: OutsideServers | undefined;
  /** Whether metrics name tenants; by default they do not. */
  metricsNameTenants?: boolean;
  /** Of the GPUPool that a leader makes where there never was one; undefined: it makes none. */
  defaultPool?: GpuPoolSpec | undefined;
  /** Whether an idle instance ends only when the replicas that serve instances have reported. */
  hearsSessions: boolean;
  /** Hears of the answers of `leaseClient`. */
  clockCheck?: ClockCheck | undefined;
  /** The lease is in its namespace. */
  config: InstanceConfig;
}

export interface RunningControllers {
  /** Resolves when they have ended: `ended` when they gave up by themselves and this process should restart. */
  readonly ended: Promise<'ended' | 'stopped'>;
  readonly inventory: Inventory;
  /** Takes no new work, lets running reconciles end, gives the lease back, and sends the last Events for two seconds. */
  stop(): Promise<void>;
}

/** Milliseconds that running reconciles get to finish before they are aborted: the next leader goes on with them. */
const GRACE_MS = 1_000;

/** The controllers of one replica. Its inventory is always up to date; it reconciles while it has the lease. */
export async function startControllers(deps: ControllersDeps): Promise<RunningControllers> {
  const { stores, clock, log, registry, config } = deps;
  const stop = new AbortController();
  const abort = new AbortController();
  await Promise.all(
    [
      ...Object.values(stores),
      ...Object.values(deps.devices ?? {}),
      ...(deps.networkPolicies ? [deps.networkPolicies] : []),
    ].map(({ synced }: Pick<ReadStore<KubeObject>, 'synced'>) => synced),
  );
  const { architectures } = deps;
  const inventory = new Inventory({ ...stores, devices: deps.devices }, clock, { architectures });
  const unrecorded = new UnrecordedInstances(log, clock);
  const unbilled = new UnbilledPlaces({ ...stores, clock });
  const unfollow = [
    stores.instances.onChange((change) => {
      unrecorded.noteChange(change);
      unbilled.noteChange(change);
    }),
    stores.namespaces.onChange((change) => unbilled.noteNamespace(change)),
  ];
  const metrics = createControllerMetrics(registry, clock);
  const ceilingsOf = limitReader(stores.tenantPolicies, stores.namespaces);
  // A grant that was cut off, by the end or by the time limit of its reconcile, may arrive after the next leader has
  // looked, unless that leader waits for the lease to end.
  const cut = new CutWrites(clock);
  const election = new Election({
    client: deps.leaseClient,
    namespace: config.namespace,
    name: CONTROLLER_LEASE,
    identity: `${hostname()}_${process.pid}_${randomUUID()}`,
    clock,
    random: Math.random,
    log,
    mayRelease: () => !cut.mayArrive,
    clockCheck: deps.clockCheck,
    onStatus: createLeaderMetric(registry)(CONTROLLER_LEASE),
  });
  const onBehind = createCatchUpMetric(registry);
  const notes = {
    noteStages: createStartMetric(registry),
    noteEnding: createEndingMetric(registry),
    noteStatus: deps.tracer && traceStarts(deps.tracer),
  };
  const showFleet = createFleetMetrics(registry, {
    ...stores,
    inventory,
    unrecorded,
    clock,
    namesTenants: deps.metricsNameTenants ?? false,
  });
  const client = guardWrites(
    deps.client,
    () => election.mayWrite(),
    (type) => {
      // Nothing is decided by a history or a log.
      if (type !== INSTANCE_HISTORIES && type !== INSTANCE_LOGS) cut.note();
    },
  );
  // A leader that goes after a burst has many Events left. They say what it did, so they may follow the lease.
  const teller = guardWrites(
    deps.client,
    () => stop.signal.aborted || election.mayWrite(),
    () => undefined,
  );
  const events = new EventRecorder({ client: teller, component: 'berth-controller', clock, log });
  const closing = new AbortController();
  const recorded = events.run(closing.signal);
  const ended = election.run({ stop: stop.signal, abort: abort.signal }, (signals, floor) =>
    lead(
      {
        ...deps,
        ...notes,
        recordTimes: new RecordTimes(clock, floor),
        random: Math.random,
        client,
        events,
        inventory,
        unrecorded,
        unbilled,
        metrics,
        ceilingsOf,
        onBehind,
        showFleet,
      },
      signals,
    ),
  );
  return {
    ended,
    inventory,
    async stop() {
      stop.abort();
      const cancel = clock.setTimeout(() => abort.abort(new Error('The time to stop is over.')), GRACE_MS);
      await ended;
      cancel();
      closing.abort();
      await recorded;
      for (const end of unfollow) end();
      inventory.close();
    },
  };
}
