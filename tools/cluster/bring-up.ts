import { readConfig } from '../../src/config/config.ts';
import { applyDefinitions, applyFleet, createNamespace } from './apply.ts';
import { lookForGo } from '../lib/go/find.ts';
import { ensurePrograms, needsGo } from '../lib/go/build.ts';
import { kubernetesVersion } from '../lib/go/programs.ts';
import { startBuiltCluster } from './built/built-cluster.ts';
import { chooseContext, connectGiven } from './given-cluster.ts';
import { decideNode } from './decide-node.ts';
import { findEngine } from './kind/engine.ts';
import { type BringUpOptions, type LocalCluster, STEPS } from './local-cluster.ts';
import { useKind } from './kind/use-kind.ts';
import { LocalFailure } from '../lib/failure.ts';
import { defaultKubeconfig } from './options.ts';
import { findProgram } from '../lib/shell.ts';
import { importImage } from '../lib/images/image.ts';
import { TOOLS_IMAGE, toolsImage } from '../lib/images/tools-image.ts';
import { chooseWay, type HostFacts, requireDra, type Way } from './ways.ts';

const NEVER = new Promise<LocalFailure>(() => undefined);

/** Brings up a cluster by the first way that works on this machine. When it throws, nothing is left running. */
export async function bringUp(options: BringUpOptions): Promise<LocalCluster> {
  const facts = await inspectHost(options);
  const way = chooseWay(facts);
  if (options.dra) requireDra(way, kubernetesVersion());
  const cluster = await create(way, facts, options);
  const { progress, signal, total } = options;
  try {
    progress.step({ ...STEPS.define, total });
    await createNamespace(cluster.client, readConfig(process.env).namespace, signal);
    await applyDefinitions(cluster.client, signal);
    // A given cluster gets nothing that an installation would not bring.
    if (way !== 'given') await applyFleet(cluster.client, { ...options, kind: way === 'kind' });
    progress.end();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Looks for what the ways to a cluster need. */
export async function inspectHost({
  given,
  built,
  cache,
}: Pick<BringUpOptions, 'given' | 'built' | 'cache'>): Promise<HostFacts> {
  const go = await lookForGo();
  if (given) return { given, engine: undefined, kind: false, go, ready: false };
  return {
    given,
    engine: built ? undefined : await findEngine(),
    kind: !built && (await findProgram('kind')) !== undefined,
    go,
    ready: !(await needsGo(cache, 'simulated')),
  };
}

async function create(way: Way, { engine, go }: HostFacts, options: BringUpOptions): Promise<LocalCluster> {
  if (way === 'given') return useGiven(options);
  if (way === 'kind' && engine !== undefined) return { ...NO_NODE, ...(await useKind(engine, options)) };
  return useBuilt(go, options);
}

async function useGiven({ state, kubeconfig, context, signal }: BringUpOptions): Promise<LocalCluster> {
  const client = await connectGiven({ kubeconfig, context, signal });
  const given = kubeconfig ?? defaultKubeconfig(process.env);
  return {
    ...NO_NODE,
    way: 'given',
    kubeconfig: context === undefined ? given : chooseContext(state, { kubeconfig: given, context }),
    client,
    nodes: 'The nodes are those of the given cluster.',
    stop: () => client.close(),
  };
}

async function useBuilt(go: HostFacts['go'], options: BringUpOptions): Promise<LocalCluster> {
  const { state, cache, dra, tidy, progress, total, signal } = options;
  const withNode = dra ? 'real node with DRA' : 'real node';
  const decision =
    !go.usable && (await needsGo(cache, withNode))
      ? { simulated: `a real node needs programs that must be built, and ${go.detail}` }
      : await decideNode(options);
  const tools = 'tools' in decision ? decision.tools : undefined;
  if (dra && 'simulated' in decision)
    throw new LocalFailure(`--dra needs a real node: ${decision.simulated}.`, 'Leave out --dra to simulate all nodes.');
  if ('simulated' in decision) progress.line(`All nodes are simulated: ${decision.simulated}.`);
  const programs = await ensurePrograms({
    cache,
    cluster: tools === undefined ? 'simulated' : withNode,
    tidy,
    progress,
    signal,
  });
  const title = tools === undefined ? 'Starting the control plane' : 'Starting the control plane and a real node';
  progress.step({ title, index: 1, total, expect: 8, next: 'the images of the node' });
  const cluster = await startBuiltCluster({ state, programs, node: tools && { ...tools, dra }, signal });
  if (cluster.initPid !== undefined) {
    progress.step({ ...STEPS.load, total });
    try {
      await importImage({ initPid: cluster.initPid, programs }, await toolsImage(TOOLS_IMAGE, cache));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }
  const nodes =
    tools === undefined
      ? 'All nodes are simulated: pods get ready, but no container runs.'
      : `Node real-0 runs real containers (its two GPUs are not real${dra ? ', and a DRA driver gives them' : ''}); all sim-* nodes are simulated.`;
  const ownImages = cluster.initPid !== undefined;
  return { ...cluster, way: 'built', nodes, link: cluster.network?.link, kind: undefined, ownImages };
}

const NO_NODE = {
  programs: undefined,
  initPid: undefined,
  link: undefined,
  cgroup: undefined,
  kind: undefined,
  ownImages: false,
  broken: NEVER,
} satisfies Partial<LocalCluster>;
