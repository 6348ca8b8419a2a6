import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../../src/lib/json.ts';
import { LocalFailure, systemCode } from '../../lib/failure.ts';
import { isIdentity, type ProcessIdentity } from '../../lib/process-identity.ts';
import type { LocalCluster } from '../local-cluster.ts';
import type { Way } from '../ways.ts';

/** What the supervisor of a cluster writes down for the other commands of the checkout. */
export interface ClusterRecord {
  supervisor: ProcessIdentity;
  phase: 'starting' | 'ready' | 'stopping';
  way?: Way;
  kubeconfig?: string;
  /** The folder of kubectl and the other programs, where they were built. */
  programs?: string | undefined;
  /** First process of the real node's namespaces; absent where all nodes are simulated. */
  initPid?: number | undefined;
  link?: string | undefined;
  cgroup?: string | undefined;
  kind?: LocalCluster['kind'];
  /** Base URL of the HTTP interface, when the server runs. */
  url?: string;
}

const FILE = 'supervisor.json';

export function writeRecord(state: string, record: ClusterRecord): void {
  const path = join(state, FILE);
  writeFileSync(`${path}.partial`, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.partial`, path);
}

/**
 * The record of the running, or crashed, cluster of a state folder; undefined when there is no record, or no valid one.
 * Throws LocalFailure when this user may not read it.
 */
export function readRecord(state: string): ClusterRecord | undefined {
  const path = join(state, FILE);
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isObject(value) && isIdentity(value['supervisor']) ? (value as unknown as ClusterRecord) : undefined;
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined || code === 'ENOENT') return undefined;
    throw new LocalFailure(`${path} cannot be read (${code}).`, 'Run the command as the user who started the cluster.');
  }
}

/** Removes the files that name a cluster that has ended: a stale address or key is worse than none. */
export function removeRecord(state: string): void {
  for (const file of [FILE, 'local.env', 'kubeconfig']) rmSync(join(state, file), { force: true });
}
