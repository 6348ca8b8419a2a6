import type { Component } from './components.ts';

/** Starts the components of a cluster, and ends them all, also when this process is killed. */
export interface Launcher {
  start(component: Component): void;
  /** Calls the listener with the name of a component that ended by itself, and with `namespaces` when all of them did. */
  onExit(listener: (name: string) => void): void;
  /** The first process of the cluster's namespaces as the host sees it; undefined when components run in the host's. */
  readonly initPid: number | undefined;
  /** Resolves when no process, link or cgroup of the cluster is left. */
  stop(): Promise<void>;
}
