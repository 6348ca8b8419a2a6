import type { Component } from './components.ts';

/** What starts the components of a cluster and ends them all, whatever happens to this process. */
export interface Launcher {
  start(component: Component): void;
  /** Called with the name of a component that ended by itself, and with `namespaces` when everything did. */
  onExit(listener: (name: string) => void): void;
  /** The first process of the cluster's namespaces as the host sees it; undefined when components share the host's. */
  readonly initPid: number | undefined;
  /** Resolves when no process, link or cgroup of the cluster is left. */
  stop(): Promise<void>;
}

/** Quotes a word for sh. */
export function quoteWord(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
