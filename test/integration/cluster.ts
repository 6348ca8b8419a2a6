import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { bringUp } from '../../tools/cluster/bring-up.ts';
import type { LocalCluster } from '../../tools/cluster/local-cluster.ts';
import { REAL_NODE } from '../../tools/cluster/built/real-node.ts';
import { explainFailure } from '../../tools/lib/failure.ts';
import { takeState } from '../../tools/cluster/supervisor/supervise.ts';
import { type LocalOptions, readOptions } from '../../tools/cluster/options.ts';
import { cacheFolder, stateFolder } from '../../tools/lib/paths.ts';
import { buildPage } from '../../tools/lib/page.ts';
import { plainProgress } from '../../tools/lib/progress.ts';
import { removeRecord } from '../../tools/cluster/supervisor/record.ts';
import { provideNeeds } from '../support/provide-needs.ts';
import { makeSshImages } from '../support/ssh-images.ts';

/** The cluster of the worker that runs a test; `inject('cluster')` in the test. */
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
    /** The cluster of each worker. */
    clusters: readonly TestCluster[];
  }
}

interface Started extends AsyncDisposable {
  cluster: LocalCluster;
}

function asTestCluster({ kubeconfig, initPid, programs }: LocalCluster): TestCluster {
  return { kubeconfig, initPid, programs, realNode: initPid === undefined ? undefined : REAL_NODE };
}

/** Starts a cluster in a folder of its own in the state folder. */
async function start(name: string, options: LocalOptions): Promise<Started> {
  const state = join(stateFolder(), name);
  const progress = plainProgress();
  await using stack = new AsyncDisposableStack();
  const lock = await takeState(state);
  stack.defer(() => {
    removeRecord(state);
    lock.release();
  });
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
    signal: new AbortController().signal,
  });
  progress.line(cluster.nodes);
  stack.defer(() => cluster.stop());
  const meant = 'A test may have killed the API server on purpose.';
  void cluster.broken.then((failure) => process.stderr.write(`${explainFailure(failure)}\n${meant}\n`));
  const started = stack.move();
  return { cluster, [Symbol.asyncDispose]: () => started.disposeAsync() };
}

function filesOf({ name, vitest }: TestProject): string[] {
  return vitest.state.getPaths().filter((path) => path.includes(`/test/${name}/`));
}

/** Starts a cluster for each worker before the first test, and ends them after the last. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const options = readOptions([], process.env, join(stateFolder(), 'kubeconfig'));
  await using stack = new AsyncDisposableStack();
  try {
    const files = filesOf(project);
    await buildPage();
    const images = makeSshImages(files);
    images.catch(() => undefined);
    const begin = async (worker: number): Promise<LocalCluster> =>
      stack.use(await start(`${project.name}-${worker}`, options)).cluster;
    // The first one builds what all of them take from the cache.
    const first = await begin(1);
    const others = Math.max(0, Math.min(project.config.maxWorkers, files.length) - 1);
    const more = Array.from({ length: others }, (_, index) => begin(index + 2));
    project.provide('clusters', [first, ...(await Promise.all(more))].map(asTestCluster));
    // Each worker puts its own in its place.
    project.provide('cluster', asTestCluster(first));
    await images;
    await provideNeeds(project, first);
  } catch (error) {
    throw new Error(explainFailure(error), { cause: error });
  }
  const started = stack.move();
  return () => started.disposeAsync();
}
