import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { bringUp, type BringUpOptions, type LocalCluster } from '../bring-up.ts';
import { LocalFailure, systemCode } from '../../lib/failure.ts';
import { clearLeftovers } from './leftovers.ts';
import { tryLock, type FileLock } from '../../lib/lock.ts';
import { identify } from '../../lib/process-identity.ts';
import { readRecord, removeRecord, writeRecord, type ClusterRecord } from './record.ts';
import { requirePorts, startServer, type RunningServer, type ServerOptions } from './server.ts';
import { tourOf } from '../tour.ts';
import { waitFor } from '../../lib/wait.ts';

export interface KeeperOptions extends BringUpOptions {
  /** Undefined for a cluster without the server. */
  server: ServerOptions | undefined;
  /** Called once everything is ready, with what to print. */
  onReady(tour: string): void;
}

/** Milliseconds after which a keeper whose starter was killed has begun to end. */
const LOOK_TIMEOUT = 2500;

/** Milliseconds that a keeper may take to end. */
const END_TIMEOUT = 45_000;

/**
 * Keeps a cluster, and the server when wanted, until the signal aborts or one of them breaks; then takes everything
 * apart. Resolves after an ordered end; throws LocalFailure after any other. Nothing runs any more either way.
 */
export async function keep(options: KeeperOptions): Promise<void> {
  const { state, signal } = options;
  const lock = await takeState(state);
  try {
    await keepLocked(options, signal);
  } finally {
    removeRecord(state);
    lock.release();
  }
}

async function keepLocked(options: KeeperOptions, signal: AbortSignal): Promise<void> {
  const { state, progress } = options;
  const self = identify(process.pid);
  if (self === undefined) throw new Error('This process cannot read its own start time.');
  let record: ClusterRecord = { keeper: self, phase: 'starting' };
  writeRecord(state, record);
  let cluster: LocalCluster | undefined;
  let server: RunningServer | undefined;
  try {
    if (options.server !== undefined) await requirePorts(options.server);
    cluster = await bringUp(options);
    const { way, kubeconfig, programs, initPid, link, cgroup } = cluster;
    record = { ...record, way, kubeconfig, programs, initPid, link, cgroup };
    writeRecord(state, record);
    if (options.server !== undefined) server = await startServer(cluster, options.server, options);
    progress.end();
    record = { ...record, phase: 'ready', ...(server === undefined ? {} : { url: server.url }) };
    writeRecord(state, record);
    options.onReady(tourOf({ ...cluster, state, ...(server === undefined ? {} : { server }) }));
    await endOf(cluster, server, signal);
  } finally {
    progress.end();
    writeRecord(state, { ...record, phase: 'stopping' });
    await server?.stop();
    await cluster?.stop();
  }
}

/** Resolves when asked to end; rejects when the cluster or the server ends by itself. */
function endOf(cluster: LocalCluster, server: RunningServer | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((settle, reject) => {
    if (signal.aborted) settle();
    signal.addEventListener('abort', () => settle(), { once: true });
    void cluster.broken.then(reject);
    void server?.broken.then(reject);
  });
}

/** Makes the state folder ours: one keeper at a time, and what a crashed one left is cleared away. */
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
  if (crashed !== undefined) await clearLeftovers(crashed);
  removeRecord(state);
  return lock;
}

/** Waits for a keeper that is ending, and throws when one is there to stay. */
async function waitForLock(state: string): Promise<FileLock> {
  const path = join(state, 'keeper.lock');
  const lock = await waitFor(() => tryFree(path), { timeout: LOOK_TIMEOUT });
  if (lock !== undefined) return lock;
  if (readRecord(state)?.phase === 'stopping') {
    const freed = await waitFor(() => tryFree(path), { timeout: END_TIMEOUT, interval: 200 });
    if (freed !== undefined) return freed;
  }
  throw new LocalFailure(
    `A cluster of this checkout is running already (process ${readRecord(state)?.keeper.pid ?? 'unknown'}).`,
    'Use it (`npm run status` says where it is), or end it with `npm stop`.',
  );
}

function tryFree(path: string): FileLock | undefined {
  const lock = tryLock(path);
  return 'release' in lock ? lock : undefined;
}
