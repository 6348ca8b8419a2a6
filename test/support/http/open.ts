import { pino } from 'pino';
import { inject } from 'vitest';
import { type Cluster, connect } from './api.ts';

/** The cluster of the worker, and the API on it. Logs only what is fatal. */
export function openCluster(): Promise<Cluster> {
  const { kubeconfig } = inject('cluster');
  return connect(kubeconfig, inject('api'), pino({ level: process.env['BERTH_TEST_LOG'] ?? 'fatal' }));
}
