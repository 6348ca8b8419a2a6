import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { LocalFailure } from '../../lib/failure.ts';
import { ensurePrograms } from '../../lib/go/build.ts';
import { importImage, type ImageSpec } from '../../lib/images/image.ts';
import { TOOLS_IMAGE, toolsImage } from '../../lib/images/tools-image.ts';
import type { Progress } from '../../lib/progress.ts';
import { findProgram } from '../../lib/shell.ts';
import { type BringUpOptions, type LocalCluster, STEPS } from '../local-cluster.ts';
import { brokenPromise } from '../built/broken.ts';
import { kwok } from '../built/components.ts';
import { writeKwokStages } from '../built/config-files.ts';
import { ProcessLauncher } from '../built/process-launcher.ts';
import { smallImage } from '../built/real-node.ts';
import { decideImages } from '../decide-node.ts';
import type { Engine } from './engine.ts';
import { createKind, deleteKind, type KindCluster } from './kind-cluster.ts';
import { addRoutes, removeRoutes, type Routes } from './routes.ts';

/** Makes a kind cluster whose node has the images of this checkout, with kwok beside it and routes to its pods. */
export async function useKind(
  engine: Engine,
  options: BringUpOptions,
): Promise<Omit<LocalCluster, 'programs' | 'initPid' | 'link' | 'cgroup'>> {
  const { state, cache, tidy, progress, total, signal } = options;
  const programs = await ensurePrograms({ cache, cluster: 'with kind', tidy, progress, signal });
  progress.step({
    title: `Creating a kind cluster with ${engine}`,
    index: 1,
    total,
    expect: 60,
    next: STEPS.load.next,
  });
  await using stack = new AsyncDisposableStack();
  stack.defer(async () => {
    const left = await deleteKind(state, engine);
    if (left.length > 0) throw new LocalFailure(`These are left: ${left.join(', ')}.`, 'Run `npm stop`.');
  });
  const cluster = await createKind({ state, engine, audit: false, signal });
  stack.defer(() => cluster.client.close());
  const simulator = startSimulator(state, programs, cluster);
  stack.defer(() => simulator.stop());
  progress.step({ ...STEPS.load, total });
  const images = await ownImages(options);
  for (const image of images) await importImage(cluster.node, image);
  const routes = await leadIn(cluster.node, cluster.network, progress);
  if (routes !== undefined) stack.defer(() => removeRoutes(routes));
  await lookForKubectl(progress);
  const started = stack.move();
  return {
    way: 'kind',
    kubeconfig: cluster.kubeconfig,
    client: cluster.client,
    nodes: `Node ${cluster.node.node} runs real containers (its two GPUs are not real); all sim-* nodes are simulated.`,
    kind: { engine, routes },
    ownImages: images.length > 0,
    broken: brokenPromise(simulator, join(state, 'logs')),
    stop: () => started.disposeAsync(),
  };
}

/** Runs kwok for the simulated nodes, and notices when the real one ends. */
function startSimulator(state: string, programs: string, { kubeconfig, node, network }: KindCluster): ProcessLauncher {
  const folder = join(state, 'kind');
  const layout = { programs, credentials: folder, config: folder, simulatedCidr: network.simulatedCidr };
  copyFileSync(kubeconfig, join(folder, 'kwok.kubeconfig'));
  writeKwokStages(layout);
  const launcher = new ProcessLauncher(join(state, 'logs'));
  launcher.start(kwok(layout));
  launcher.start({ name: 'node', command: node.engine, args: ['wait', node.node] });
  return launcher;
}

/** The two images of this checkout. Where they cannot be made, one line says what runs in their place. */
async function ownImages(options: BringUpOptions): Promise<ImageSpec[]> {
  try {
    const busybox = await decideImages(options);
    return [await toolsImage(TOOLS_IMAGE, options.cache), await smallImage(busybox)];
  } catch (error) {
    if (!(error instanceof LocalFailure)) throw error;
    options.progress.line(`Instances pull the published images, because ${error.message} ${error.remedy}`);
    return [];
  }
}

type Lines = Pick<Progress, 'line'>;

/** kind brings no kubectl, as programs of our own do. */
export async function lookForKubectl(progress: Lines): Promise<void> {
  if ((await findProgram('kubectl')) !== undefined) return;
  progress.line('The tour needs kubectl, which is not installed: https://kubernetes.io/docs/tasks/tools');
}

/** Leads this machine to the pods. Where it cannot, one line says what does not work. */
export async function leadIn(
  { engine, node }: Pick<KindCluster['node'], 'engine' | 'node'>,
  network: Parameters<typeof addRoutes>[2],
  progress: Lines,
): Promise<Routes | undefined> {
  try {
    return await addRoutes(engine, node, network);
  } catch (error) {
    if (!(error instanceof LocalFailure)) throw error;
    const reason = [error.message, ...error.details].join(' ');
    progress.line(`This machine reaches no pods, so models and monitors in the cluster do not answer: ${reason}`);
    return undefined;
  }
}
