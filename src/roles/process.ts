import type { Logger } from 'pino';
import { collectDefaultMetrics, Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import { createClientMetrics } from '../kube/client/client-metrics.ts';
import type { KubeClient } from '../kube/client/client.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import { loadKubeConfig, type KubeConnection } from '../kube/config/config.ts';
import { createKubeClient } from '../kube/client/rest-client.ts';
import { ClockCheck } from '../runtime/clock-check.ts';
import { createLog } from './log.ts';

/** What all roles of a process share. */
export interface Process {
  /** Its name. */
  role: string;
  config: Config;
  log: Logger;
  registry: Registry;
  clock: Clock;
  /** The API server's time, where this machine's is another. */
  billingClock: Pick<Clock, 'now'>;
  connection: KubeConnection;
  client: KubeClient;
}

/** The logger, the metrics and the connection to the API server. Rejects with KubeConfigError without a cluster. */
export async function createProcess(config: Config, role: string): Promise<Process> {
  const registry = new Registry();
  const log = createLog({ level: config.logLevel, role, registry });
  collectDefaultMetrics({ register: registry });
  const clock = systemClock();
  const connection = await loadKubeConfig({ kubeconfig: config.kubeconfig });
  const metrics = createClientMetrics(registry, new URL(connection.server).host);
  const billingClock = new ClockCheck(clock);
  const client = createKubeClient(connection, { clock, metrics, onDate: (answer) => billingClock.saw(answer) });
  return { role, config, log, registry, clock, billingClock, connection, client };
}
