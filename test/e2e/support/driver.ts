import type { KubeClient } from '../../../src/kube/client/client.ts';

/** A cluster for end-to-end tests, however it was made: empty but for one node with two GPUs and a StorageClass. */
export interface E2eCluster {
  kubeconfig: string;
  client: KubeClient;
  /** Puts an image archive (docker's or OCI's format) on the node. */
  loadImage(archive: string): Promise<void>;
  /** Path of kubectl. */
  kubectl: string;
  /** Path of the API server's audit log, one JSON object per line. */
  auditLog: string;
  stop(): Promise<void>;
}

export interface DriverOptions {
  /** A folder of the cluster's own. */
  state: string;
  signal: AbortSignal;
}

export type Driver<C extends E2eCluster = E2eCluster> = (options: DriverOptions) => Promise<C>;
