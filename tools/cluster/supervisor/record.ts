import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LocalFailure, systemCode } from '../../lib/failure.ts';
import type { ProcessIdentity } from '../../lib/process-identity.ts';
import type { Way } from '../ways.ts';

/** What the keeper of a cluster tells other commands of the same checkout. */
export interface ClusterRecord {
  keeper: ProcessIdentity;
  phase: 'starting' | 'ready' | 'stopping';
  way?: Way;
  kubeconfig?: string;
  /** The folder of kubectl and the other programs, when we built them. */
  programs?: string | undefined;
  /** First process of the real node's namespaces; absent when nodes are simulated. */
  initPid?: number | undefined;
  link?: string | undefined;
  cgroup?: string | undefined;
  /** Base URL of the HTTP interface, when the server runs. */
  url?: string;
}

const FILE = 'keeper.json';

export function writeRecord(state: string, record: ClusterRecord): void {
  const path = join(state, FILE);
  writeFileSync(`${path}.partial`, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.partial`, path);
}

/**
 * The record of the running, or crashed, cluster of a state folder; undefined when there is none, or none of ours.
 * Throws LocalFailure when there is one that this user may not read.
 */
export function readRecord(state: string): ClusterRecord | undefined {
  const path = join(state, FILE);
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isRecord(value) ? value : undefined;
  } catch (error) {
    const code = systemCode(error);
    if (code === undefined || code === 'ENOENT') return undefined;
    throw new LocalFailure(`${path} cannot be read (${code}).`, 'Run the command as the user who started the cluster.');
  }
}

/** Removes what names a cluster that is no more: a stale address or key is worse than none. */
export function removeRecord(state: string): void {
  for (const file of [FILE, 'local.env', 'kubeconfig']) rmSync(join(state, file), { force: true });
}

function isRecord(value: unknown): value is ClusterRecord {
  if (typeof value !== 'object' || value === null || !('keeper' in value)) return false;
  const { keeper } = value;
  return (
    typeof keeper === 'object' &&
    keeper !== null &&
    'pid' in keeper &&
    Number.isInteger(keeper.pid) &&
    'startedAt' in keeper
  );
}
