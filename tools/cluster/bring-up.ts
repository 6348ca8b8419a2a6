import type { KubeClient } from '../../src/kube/client/client.ts';
import { readConfig } from '../../src/config/config.ts';
import { applyDefinitions, applyFleet, createNamespace } from './apply.ts';
import { lookForGo } from '../lib/go/find.ts';
import { ensurePrograms, needsGo } from '../lib/go/build.ts';
import { startBuiltCluster } from './built/built-cluster.ts';
import { chooseContext, connectGiven } from './given-cluster.ts';
import { decideNode } from './decide-node.ts';
import type { Consent } from '../lib/host/meet-needs.ts';
import type { Progress } from '../lib/progress.ts';
import { giveGpus } from './built/real-node.ts';
import { createKind, deleteKind, installKwok, kindName } from './kind-cluster.ts';
import type { LocalFailure } from '../lib/failure.ts';
import { defaultKubeconfig } from './options.ts';
import { findProgram, run } from '../lib/shell.ts';
import { importImage } from '../lib/images/image.ts';
import { TOOLS_IMAGE, toolsImage } from '../lib/images/tools-image.ts';
import { chooseWay, type HostFacts, type Way } from './ways.ts';

export interface BringUpOptions extends Consent {
  progress: Progress;
  state: string;
  cache: string;
  /** Whether these two name a cluster, or the environment does, as kubectl reads it. */
  given: boolean;
  kubeconfig: string | undefined;
  context: string | undefined;
  /** How many steps the whole start has: three for the cluster, and those that follow. */
  total: number;
  /** Whether to remove what only the build of the programs needed. */
  tidy: boolean;
  /** Whether the fleet has nodes and pools of AMD and Intel too. Tests count on those of NVIDIA alone. */
  otherMakers: boolean;
  signal: AbortSignal;
}

/** A cluster with Berth's custom resources and, unless it was given, a GPU fleet. */
export interface LocalCluster {
  way: Way;
  /** A value for KUBECONFIG, whose current context is the cluster: one path, or several. */
  kubeconfig: string;
  client: KubeClient;
  /** One sentence on what the nodes are. */
  nodes: string;
  programs: string | undefined;
  initPid: number | undefined;
  link: string | undefined;
  cgroup: string | undefined;
  /** Resolves with the reason when the cluster breaks by itself. */
  broken: Promise<LocalFailure>;
  stop(): Promise<void>;
}

const STEPS = {
  load: { title: 'Loading the tools image into the node', index: 2, next: 'the custom resources and the GPU fleet' },
  define: { title: 'Defining the custom resources and the GPU fleet', index: 3, next: 'the server' },
};

const NEVER = new Promise<LocalFailure>(() => undefined);

/** Brings up a cluster by the first way that works on this machine. When it throws, nothing is left running. */
export async function bringUp(options: BringUpOptions): Promise<LocalCluster> {
  const facts = await inspectHost(options);
  const way = chooseWay(facts);
  const cluster = await create(way, facts, options);
  const { progress, signal, total } = options;
  try {
    progress.step({ ...STEPS.define, total });
    await createNamespace(cluster.client, readConfig(process.env).namespace, signal);
    await applyDefinitions(cluster.client, signal);
    // A given cluster gets nothing that an installation would not bring.
    if (way !== 'given') await applyFleet(cluster.client, options.otherMakers, signal);
    progress.end();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** Looks for what the ways to a cluster need. */
export async function inspectHost({ given, cache }: { given: boolean; cache: string }): Promise<HostFacts> {
  const go = await lookForGo();
  if (given) return { given, engine: undefined, kind: false, go, ready: false };
  return {
    given,
    engine: await findEngine(),
    kind: (await findProgram('kind')) !== undefined,
    go,
    ready: !(await needsGo(cache, false)),
  };
}

/** The container engine that answers on this machine. */
export async function findEngine(): Promise<'docker' | 'podman' | undefined> {
  for (const engine of ['docker', 'podman'] as const) {
    if ((await findProgram(engine)) === undefined) continue;
    if ((await run(engine, ['info'], { timeout: 10_000 })).code === 0) return engine;
  }
  return undefined;
}

async function create(way: Way, { engine, go }: HostFacts, options: BringUpOptions): Promise<LocalCluster> {
  if (way === 'given') return useGiven(options);
  if (way === 'kind' && engine !== undefined) return useKind(engine, options);
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

async function useKind(engine: 'docker' | 'podman', options: BringUpOptions): Promise<LocalCluster> {
  const { state, progress, total, signal } = options;
  progress.step({ title: `Creating a kind cluster with ${engine}`, index: 1, total, expect: 60, next: 'the fleet' });
  const remove = () => deleteKind({ state, engine, run });
  try {
    const kubeconfig = await createKind({ state, engine, run, signal });
    const client = await connectGiven({ kubeconfig, context: undefined, signal });
    await installKwok(client, signal);
    await giveGpus(client, `${kindName(state)}-control-plane`);
    const stop = async () => {
      await client.close();
      await remove();
    };
    return { ...NO_NODE, way: 'kind', kubeconfig, client, nodes: KIND_NODES, stop };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function useBuilt(go: HostFacts['go'], options: BringUpOptions): Promise<LocalCluster> {
  const { state, cache, tidy, progress, total, signal } = options;
  const decision =
    !go.usable && (await needsGo(cache, true))
      ? { simulated: `a real node needs programs that must be built, and ${go.detail}` }
      : await decideNode(options);
  const tools = 'tools' in decision ? decision.tools : undefined;
  if ('simulated' in decision) progress.line(`All nodes are simulated: ${decision.simulated}.`);
  const programs = await ensurePrograms({ cache, realNode: tools !== undefined, tidy, progress, signal });
  const title = tools === undefined ? 'Starting the control plane' : 'Starting the control plane and a real node';
  progress.step({ title, index: 1, total, expect: 8, next: 'the images of the node' });
  const cluster = await startBuiltCluster({ state, programs, node: tools, signal });
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
      : 'Node real-0 runs real containers (its two GPUs are not real); all sim-* nodes are simulated.';
  return { ...cluster, way: 'built', nodes, link: cluster.network?.link };
}

const KIND_NODES = 'The node of kind runs real containers (its two GPUs are not real); all sim-* nodes are simulated.';

const NO_NODE = {
  programs: undefined,
  initPid: undefined,
  link: undefined,
  cgroup: undefined,
  broken: NEVER,
} satisfies Partial<LocalCluster>;
