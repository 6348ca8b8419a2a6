import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bringUp } from '../../tools/cluster/bring-up.ts';
import { REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { explainFailure } from '../../tools/lib/failure.ts';
import { takeState } from '../../tools/cluster/supervisor/supervise.ts';
import { readOptions } from '../../tools/cluster/options.ts';
import { cacheFolder, stateFolder } from '../../tools/lib/paths.ts';
import { buildPage } from '../../tools/lib/page.ts';
import { plainProgress } from '../../tools/lib/progress.ts';
import { removeRecord } from '../../tools/cluster/supervisor/record.ts';
import { provideNeeds } from '../support/provide-needs.ts';

/** The cluster that all integration tests share; `inject('cluster')` in a test. */
export interface TestCluster {
  kubeconfig: string;
  /** Name of the node that runs real containers; undefined when all are simulated. */
  realNode: string | undefined;
  /** For importImage: first process of the real node's namespaces. */
  initPid: number | undefined;
  /** The folder of kubectl, ctr and the other programs; undefined on a given cluster. */
  programs: string | undefined;
}

declare module 'vitest' {
  interface ProvidedContext {
    cluster: TestCluster;
  }
}

/** Starts the cluster before the first integration test, and ends it after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const state = join(stateFolder(), 'test');
  const options = readOptions([], process.env, join(stateFolder(), 'kubeconfig'));
  const { stderr } = process;
  const progress = plainProgress();
  const interrupted = new AbortController();
  try {
    const lock = await takeState(state);
    await buildPage();
    const cluster = await bringUp({
      ...options,
      state,
      cache: cacheFolder(process.env),
      interactive: false,
      // The tests build other tools from the same downloads.
      tidy: false,
      otherMakers: false,
      total: 3,
      progress,
      signal: interrupted.signal,
    });
    const { kubeconfig, initPid, programs } = cluster;
    progress.line(cluster.nodes);
    project.provide('cluster', {
      kubeconfig,
      initPid,
      programs,
      realNode: initPid === undefined ? undefined : REAL_NODE,
    });
    await provideNeeds(project, cluster);
    const meant = 'A test may have killed the API server on purpose.';
    void cluster.broken.then((failure) => stderr.write(`${explainFailure(failure)}\n${meant}\n`));
    return async () => {
      await cluster.stop();
      removeRecord(state);
      lock.release();
    };
  } catch (error) {
    throw new Error(explainFailure(error), { cause: error });
  }
}
