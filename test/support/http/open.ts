import { pino } from 'pino';
import { inject } from 'vitest';
import { type Cluster, connect } from './api.ts';

/** The API over the cluster that the integration tests share. Logs only what is fatal. */
export function openCluster(): Promise<Cluster> {
  const { kubeconfig } = inject('cluster');
  return connect(kubeconfig, pino({ level: process.env['BERTH_TEST_LOG'] ?? 'fatal' }));
}
