import type { KubeClient } from '../../../src/kube/client/client.ts';
import type { Gpu } from '../../../tools/cluster/fleet/labels.ts';

/** A cluster for end-to-end tests: one node with two GPUs and a StorageClass, and nothing else. */
export interface E2eCluster {
  kubeconfig: string;
  client: KubeClient;
  /** Puts an image archive (docker's or OCI's format) on the node. */
  loadImage(archive: string): Promise<void>;
  /** Path of kubectl. */
  kubectl: string;
  /** Path of the API server's audit log, one JSON object per line. */
  auditLog: string;
  /** The first process of the node's namespaces. */
  initPid: number;
  /** The address of this machine that pods reach. */
  hostAddress: string;
  stop(): Promise<void>;
}

export interface DriverOptions {
  /** A folder for this cluster alone. */
  state: string;
  /** The GPUs of the node; two L4 by default. */
  gpu?: Gpu;
  signal: AbortSignal;
}

export type Driver<C extends E2eCluster = E2eCluster> = (options: DriverOptions) => Promise<C>;
