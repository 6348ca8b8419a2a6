import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import type { KubeClient } from '../kube/client/client.ts';
import { createEventRecorder } from '../kube/events.ts';
import type { Pod } from '../kube/types.ts';
import { Inventory } from '../inventory/inventory.ts';
import type { Clock } from '../runtime/clock.ts';
import { createControllerMetrics } from '../runtime/controller-metrics.ts';
import { type Controller, createController, type Result, type RunSignals } from '../runtime/controller.ts';
import { createFence } from '../runtime/fence.ts';
import { createLeaderMetric } from '../runtime/lease/leader-metrics.ts';
import type { Source } from '../runtime/source.ts';
import { createElection } from '../runtime/lease/lease.ts';
import { guardWrites } from '../runtime/lease/write-guard.ts';
import { apiKeySources, reconcileApiKey } from './api-key/reconcile.ts';
import type { Caches } from './caches.ts';
import type { InstanceConfig, InstanceDeps, JupyterState } from './gpu-instance/act/run.ts';
import { JUPYTER_PAUSE_MS, LOGIN_PAUSE_MS } from './gpu-instance/act/login.ts';
import { createPodLooks } from './gpu-instance/pod-looks.ts';
import { createVanished } from './gpu-instance/vanished.ts';
import { reconcileInstance } from './gpu-instance/act/reconcile.ts';
import { instanceSources } from './gpu-instance/sources.ts';
import { WaitingLine } from './gpu-instance/waiting-line.ts';
import { poolSources, reconcilePool } from './gpu-pool/reconcile.ts';
import { reconcileTemplate, templateSources } from './instance-template/reconcile.ts';
import { ensurePriorityClasses } from './priority-classes.ts';
import type { StatusDeps, StatusRun } from './small-deps.ts';
import { reconcileSshKey, sshKeySources } from './ssh-key/reconcile.ts';

export interface ControllersDeps {
  client: KubeClient;
  /** For the lease alone, best with connections of its own. */
  leaseClient: KubeClient;
  caches: Caches;
  registry: Registry;
  log: Logger;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  config: InstanceConfig & {
    /** Namespace of the lease. */
    namespace: string;
  };
  /** Tries a login the way users take. Never rejects, takes at most ten seconds; left out, a Ready pod is enough. */
  checkLogin?: (pod: Pod) => Promise<boolean>;
  /** Looks for Jupyter; undefined when it cannot be told now. Never rejects, takes at most ten seconds. */
  checkJupyter?: (pod: Pod) => Promise<JupyterState | undefined>;
}

export interface RunningControllers {
  /** Resolves when it ended: `lost` when the lease went to somebody else and the process should start anew. */
  readonly ended: Promise<'lost' | 'stopped'>;
  readonly inventory: Inventory;
  /** Ends in order: no new work, running reconciles to their end, the lease given back. */
  stop(): Promise<void>;
}

const LEASE = 'berth-controller';
const WORKERS = 32;
const SMALL_WORKERS = 2;
const TIMEOUT_MS = 60_000;
const GRACE_MS = 20_000;

/**
 * The controllers of one process: its caches stay warm, and when it gets the lease it reconciles. Every write asks first
 * whether the lease may still be ours.
 */
export async function startControllers(deps: ControllersDeps): Promise<RunningControllers> {
  const { caches, clock, log, random, registry, config } = deps;
  const { stores } = caches;
  const stop = new AbortController();
  const abort = new AbortController();
  const closing = new AbortController();
  const running = caches.run(closing.signal);
  await Promise.race([Promise.all(Object.values(stores).map((store) => store.synced)), running]);
  const inventory = new Inventory(stores, clock);
  const metrics = createControllerMetrics(registry, clock);
  const election = createElection({
    client: deps.leaseClient,
    namespace: config.namespace,
    name: LEASE,
    identity: `${hostname()}_${process.pid}_${randomUUID()}`,
    clock,
    random,
    log,
    onStatus: createLeaderMetric(registry)(LEASE),
  });
  const client = guardWrites(deps.client, () => election.mayWrite());

  /** Everything a leader needs, made anew: nothing is carried over from another term. */
  async function lead(signals: RunSignals): Promise<void> {
    await ensurePriorityClasses(client, signals.abort);
    const events = createEventRecorder({ client, component: 'berth-controller', clock, log });
    const told = new AbortController();
    const telling = events.run(told.signal);
    const line = new WaitingLine(inventory);
    const fence = createFence(clock, log);
    const vanished = createVanished(log);
    const { checkLogin, checkJupyter } = deps;
    const logins = checkLogin && createPodLooks({ look: checkLogin, pauseMs: LOGIN_PAUSE_MS, clock });
    const jupyters = checkJupyter && createPodLooks({ look: checkJupyter, pauseMs: JUPYTER_PAUSE_MS, clock });
    const instanceDeps: InstanceDeps = {
      client,
      stores,
      inventory,
      line,
      fence,
      events,
      clock,
      config,
      vanished,
      logins,
      jupyters,
    };
    const statusDeps: StatusDeps = { client, stores, inventory, clock };
    const shared = { clock, log, timeoutMs: TIMEOUT_MS };
    const small = (
      name: string,
      sources: readonly Source[],
      reconcile: (run: StatusRun) => Promise<Result | void>,
    ): Controller =>
      createController({
        ...shared,
        name,
        sources,
        concurrency: SMALL_WORKERS,
        reconcile: (key, context) => reconcile({ deps: statusDeps, key, context }),
        metrics: metrics(name, SMALL_WORKERS),
      });
    const controllers: Controller[] = [
      createController({
        ...shared,
        name: 'gpuinstance',
        concurrency: WORKERS,
        sources: [
          ...instanceSources(stores, { inventory, line, vanished, clock }),
          ...[logins, jupyters].flatMap((looks) => looks?.source ?? []),
        ],
        reconcile: (key, context) => reconcileInstance({ deps: instanceDeps, key, context }),
        fence,
        metrics: metrics('gpuinstance', WORKERS),
      }),
      small('sshkey', sshKeySources(stores), reconcileSshKey),
      small('instancetemplate', templateSources(stores), reconcileTemplate),
      small('apikey', apiKeySources(stores), reconcileApiKey),
      small('gpupool', poolSources(stores, { inventory, clock }), reconcilePool),
    ];
    await Promise.all(controllers.map((controller) => controller.run(signals)));
    told.abort();
    await telling;
  }

  const ended = election.run({ stop: stop.signal, abort: abort.signal }, lead);
  return {
    ended,
    inventory,
    async stop() {
      stop.abort();
      const cancel = clock.setTimeout(() => abort.abort(new Error('The time to stop in is over.')), GRACE_MS);
      await ended;
      cancel();
      inventory.close();
      closing.abort();
      await running;
    },
  };
}
