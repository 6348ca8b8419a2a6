import { join } from 'node:path';
import { applyFinalizers } from '../../tools/cluster/apply.ts';
import { bringUp } from '../../tools/cluster/bring-up.ts';
import type { LocalCluster } from '../../tools/cluster/local-cluster.ts';
import { takeState } from '../../tools/cluster/supervisor/supervise.ts';
import { readOptions } from '../../tools/cluster/options.ts';
import { cacheFolder, stateFolder } from '../../tools/lib/paths.ts';
import { plainProgress } from '../../tools/lib/progress.ts';
import { kindsCounted } from '../support/kinds-counted.ts';
import { removeRecord } from '../../tools/cluster/supervisor/record.ts';

/**
 * Starts a cluster for a benchmark, passes the path of its kubeconfig to `use`, and ends the cluster after that. A cluster
 * that KUBECONFIG names is used as it is, and stays.
 */
export async function withCluster(use: (kubeconfig: string, cluster: LocalCluster) => Promise<void>): Promise<void> {
  const state = join(stateFolder(), 'bench');
  const lock = await takeState(state);
  const progress = plainProgress();
  const cluster = await bringUp({
    ...readOptions([], process.env, join(stateFolder(), 'kubeconfig')),
    state,
    cache: cacheFolder(process.env),
    interactive: false,
    tidy: false,
    otherMakers: false,
    total: 2,
    progress,
    signal: new AbortController().signal,
  });
  try {
    // The policy stays in the cluster, so a given cluster gets it from an installation alone.
    if (cluster.way !== 'given') await applyFinalizers(cluster.client, new AbortController().signal);
    await kindsCounted(cluster.client);
    await use(cluster.kubeconfig, cluster);
  } finally {
    await cluster.stop();
    removeRecord(state);
    lock.release();
  }
}
