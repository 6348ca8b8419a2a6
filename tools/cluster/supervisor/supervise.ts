import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { bringUp } from '../bring-up.ts';
import type { BringUpOptions, LocalCluster } from '../local-cluster.ts';
import { LocalFailure, systemCode } from '../../lib/failure.ts';
import { clearLeftovers } from './leftovers.ts';
import { tryLock, type FileLock } from '../../lib/lock.ts';
import { identify } from '../../lib/process-identity.ts';
import { readRecord, removeRecord, writeRecord, type ClusterRecord } from './record.ts';
import { requirePorts, startServer, type RunningServer, type ServerOptions } from './server.ts';
import { tourOf } from '../tour.ts';
import { waitFor } from '../../lib/wait.ts';

export interface SupervisorOptions extends BringUpOptions {
  /** Undefined for a cluster without the server. */
  server: ServerOptions | undefined;
  /** Called once everything is ready, with what to print. */
  onReady(tour: string): void;
}

/** Milliseconds within which a supervisor notices that the process that started it was killed. */
const NOTICE_TIMEOUT = 2500;

/** Milliseconds that a supervisor may take to end. */
const END_TIMEOUT = 45_000;

/**
 * Starts a cluster, and the server when wanted, and watches both until the signal aborts or one of them breaks. Then it
 * ends both. Resolves after an ordered end, and throws LocalFailure after any other; either way nothing is left running.
 */
export async function supervise(options: SupervisorOptions): Promise<void> {
  const { state } = options;
  const lock = await takeState(state);
  try {
    await superviseLocked(options);
  } finally {
    lock.release();
  }
}

async function superviseLocked(options: SupervisorOptions): Promise<void> {
  const { state, progress, signal } = options;
  const self = identify(process.pid);
  if (self === undefined) throw new Error('This process cannot read its own start time.');
  let record: ClusterRecord = { supervisor: self, phase: 'starting' };
  writeRecord(state, record);
  let cluster: LocalCluster | undefined;
  let server: RunningServer | undefined;
  try {
    if (options.server !== undefined) await requirePorts(options.server);
    cluster = await bringUp(options);
    const { way, kubeconfig, programs, initPid, link, cgroup, kind } = cluster;
    record = { ...record, way, kubeconfig, programs, initPid, link, cgroup, kind };
    writeRecord(state, record);
    if (options.server !== undefined) server = await startServer(cluster, options.server, options);
    progress.end();
    record = { ...record, phase: 'ready', ...(server === undefined ? {} : { url: server.url }) };
    writeRecord(state, record);
    options.onReady(tourOf({ ...cluster, state, ...(server === undefined ? {} : { server }) }));
    await untilEnd(cluster, server, signal);
  } finally {
    progress.end();
    writeRecord(state, { ...record, phase: 'stopping' });
    await server?.stop();
    // When this fails, `npm stop` finds what is left by the record.
    await cluster?.stop();
    removeRecord(state);
  }
}

/** Resolves when the signal aborts; rejects when the cluster or the server ends by itself. */
function untilEnd(cluster: LocalCluster, server: RunningServer | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((settle, reject) => {
    if (signal.aborted) settle();
    signal.addEventListener('abort', () => settle(), { once: true });
    void cluster.broken.then(reject);
    void server?.broken.then(reject);
  });
}

/** Takes the state folder for this process alone, and clears away what a crashed supervisor left in it. */
export async function takeState(state: string): Promise<FileLock> {
  try {
    mkdirSync(join(state, 'logs'), { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new LocalFailure(
      `The state folder ${state} cannot be made (${systemCode(error) ?? String(error)}).`,
      'Make the checkout writable for you, or free disk space.',
    );
  }
  const lock = await waitForLock(state);
  const crashed = readRecord(state);
  if (crashed !== undefined) await clearLeftovers(state, crashed);
  removeRecord(state);
  return lock;
}

/**
 * Clears away what a supervisor that was told to end has left, and returns what stays. Undefined when another supervisor
 * has taken the state folder since: it may have the same container, link and record by now.
 */
export async function clearState(state: string, record: ClusterRecord): Promise<string[] | undefined> {
  const { pid } = record.supervisor;
  const lock = await waitFor(
    () => {
      const found = tryLock(lockOf(state));
      return ('release' in found || found.pid !== pid) && found;
    },
    { timeout: NOTICE_TIMEOUT },
  );
  if (lock === undefined) return [`process ${pid}`];
  if (!('release' in lock)) return undefined;
  try {
    const left = await clearLeftovers(state, record);
    if (left.length === 0) removeRecord(state);
    return left;
  } finally {
    lock.release();
  }
}

function lockOf(state: string): string {
  return join(state, 'supervisor.lock');
}

/** Waits for a supervisor that is ending. Throws LocalFailure when one goes on running. */
async function waitForLock(state: string): Promise<FileLock> {
  const path = lockOf(state);
  const lock = await waitFor(() => tryFree(path), { timeout: NOTICE_TIMEOUT });
  if (lock !== undefined) return lock;
  if (readRecord(state)?.phase === 'stopping') {
    const freed = await waitFor(() => tryFree(path), { timeout: END_TIMEOUT, interval: 200 });
    if (freed !== undefined) return freed;
  }
  throw new LocalFailure(
    `A cluster of this checkout is running already (process ${readRecord(state)?.supervisor.pid ?? 'unknown'}).`,
    'Use it (`npm run status` says where it is), or end it with `npm stop`.',
  );
}

function tryFree(path: string): FileLock | undefined {
  const lock = tryLock(path);
  return 'release' in lock ? lock : undefined;
}
