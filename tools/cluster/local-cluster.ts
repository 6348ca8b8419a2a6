import type { KubeClient } from '../../src/kube/client/client.ts';
import type { LocalFailure } from '../lib/failure.ts';
import type { Consent } from '../lib/host/meet-needs.ts';
import type { Progress } from '../lib/progress.ts';
import type { Engine } from './kind/engine.ts';
import type { Routes } from './kind/routes.ts';
import type { Way } from './ways.ts';

export interface BringUpOptions extends Consent {
  progress: Progress;
  state: string;
  cache: string;
  /** Whether these two name a cluster, or the environment does, as kubectl reads it. */
  given: boolean;
  kubeconfig: string | undefined;
  context: string | undefined;
  /** Whether to start programs of its own also where kind is there. */
  built: boolean;
  /** Whether a DRA driver gives the GPUs of the real node, instead of a device plugin. */
  dra: boolean;
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
  kind: { engine: Engine; routes: Routes | undefined } | undefined;
  /** Whether the real node has the tools image and the small image of this checkout. */
  ownImages: boolean;
  /** Resolves with the reason when the cluster breaks by itself. */
  broken: Promise<LocalFailure>;
  stop(): Promise<void>;
}

/** The steps of every way. */
export const STEPS = {
  load: { title: 'Loading the tools image into the node', index: 2, next: 'the custom resources and the GPU fleet' },
  define: { title: 'Defining the custom resources and the GPU fleet', index: 3, next: 'the server' },
};
