import type { LocalCluster } from './bring-up.ts';
import type { RunningServer } from './server.ts';

/** What is printed when everything runs: where it is, and lines to paste one by one. */
export function tourOf(cluster: LocalCluster, server: RunningServer | undefined): string {
  const where = [`Cluster     ${cluster.nodes}`, `Kubeconfig  ${cluster.kubeconfig}`];
  if (server === undefined) return [...where, ...kubectlLines(cluster)].join('\n');
  return [
    '',
    'Berth is running.',
    '',
    `Base URL    ${server.url}`,
    `API key     ${server.apiKey}`,
    ...where,
    `SSH         127.0.0.1:${server.sshPort}`,
    `Metrics     http://127.0.0.1:${server.metricsPort}/metrics`,
    `Values      ${server.envFile}`,
  ].join('\n');
}

function kubectlLines({ kubeconfig, programs }: LocalCluster): string[] {
  const path = programs === undefined ? [] : [`export PATH="$PATH:${programs}"`];
  return ['', ...path, `export KUBECONFIG='${kubeconfig}'`, 'kubectl get nodes'];
}
