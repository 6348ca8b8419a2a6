import { ConfigError, readConfig } from '../config/config.ts';
import { KubeConfigError } from '../kube/errors.ts';
import { Shutdown, stopOnSignals } from '../runtime/shutdown.ts';
import { startMetricsServer } from './metrics-server.ts';
import { createProcess } from './process.ts';
import { type Role, RoleContext } from './role.ts';
import { Caches } from '../caches/caches.ts';
import type { Reads } from '../caches/table.ts';
import { InformerMetrics } from '../kube/watch/informer-metrics.ts';

// Loaded on demand: a role does not need the code of the others in memory.
const controller = async (): Promise<Role> => (await import('./controller.ts')).controllerRole;
const api = async (): Promise<Role> => (await import('./api.ts')).apiRole;
const dashboard = async (): Promise<Role> => (await import('./dashboard.ts')).dashboardRole;
const apiWithDashboard = async (): Promise<Role> => (await import('./api-with-dashboard.ts')).apiWithDashboardRole;
const notifier = async (): Promise<Role> => (await import('./notifier.ts')).notifierRole;
const ssh = async (): Promise<Role> => (await import('./ssh.ts')).sshRole;

/** Roles that show the specs of instances to clients. The others read texts where they need them. */
const SHOWING = new Set(['api', 'all']);

const ROLES: Readonly<Record<string, readonly (() => Promise<Role>)[]>> = {
  controller: [controller],
  api: [api],
  dashboard: [dashboard],
  ssh: [ssh],
  notifier: [notifier],
  all: [controller, apiWithDashboard, ssh],
};

/** What a server role reads of the objects in its caches. */
export function readsOf(name: string): Reads {
  return { texts: SHOWING.has(name) };
}

/** Milliseconds from SIGTERM to the end. Sessions and model streams get this long to finish. */
const GRACE_MS = 30_000;

async function start(name: string, roles: readonly Role[]): Promise<void> {
  const config = readConfig(process.env);
  const proc = await createProcess(config, name);
  const shutdown = new Shutdown({ clock: proc.clock, log: proc.log, graceMs: GRACE_MS });
  const ignoreSignals = stopOnSignals(process, shutdown);
  shutdown.defer('signals', ignoreSignals);
  shutdown.defer('connections', () => proc.connection.close());
  const watching = new AbortController();
  const metrics = new InformerMetrics(proc.registry);
  const { namespace, claimOnPod } = config;
  const reads = readsOf(name);
  const caches = new Caches({ ...proc, namespace, metrics, reads, claimOnPod }, watching.signal);
  shutdown.defer('watches', async () => {
    watching.abort();
    await caches.ended();
  });
  try {
    // Before every role has started there may be no cache yet, and `synced` is true of none.
    let started = false;
    const health = { ready: () => started && caches.synced && !shutdown.stopping.aborted };
    const files = config.metricsTls === undefined ? undefined : { folder: config.metricsTls, ...proc };
    const server = await startMetricsServer(config.metrics, proc.registry, health, files);
    shutdown.defer('metrics', () => server.close());
    const context = new RoleContext(proc, caches, shutdown);
    for (const role of roles) await role(context);
    started = true;
    proc.log.info({ server: proc.connection.server }, 'Started');
  } catch (error) {
    await shutdown.stop('start failed');
    throw error;
  }
}

/** Runs a server role until SIGTERM or SIGINT. When it cannot start, it prints one line that says why and exits with 1. */
export async function runRole(name: string): Promise<void> {
  const roles = ROLES[name];
  if (!roles) throw new RangeError(`no such role: ${name}`);
  try {
    await start(name, await Promise.all(roles.map((load) => load())));
  } catch (error) {
    const known = error instanceof ConfigError || error instanceof KubeConfigError;
    const code = (error as NodeJS.ErrnoException).code;
    if (!known && code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
    process.stderr.write(`berth: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
