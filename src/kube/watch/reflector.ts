import type { Logger } from 'pino';
import { createBackoff } from './backoff.ts';
import { type Cache, createCache } from './cache.ts';
import type { KubeClient } from '../client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { KubeError } from '../errors.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import { createLister, type Selection, selectorQuery } from './initial-list.ts';
import { compareVersions } from './resource-version.ts';
import type { IndexFunctions, ReadStore } from './store.ts';
import type { KubeObject, ResourceType } from '../types.ts';
import { watch, type WatchEvent } from './watch.ts';

export interface InformerOptions<T extends KubeObject> extends Selection {
  client: KubeClient;
  type: ResourceType<T>;
  indexers?: IndexFunctions<T>;
  /** Drops what nobody reads before an object is kept; managedFields always go. May change and return its argument. */
  prune?: (object: T) => T;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  log: Logger;
  metrics?: InformerMetrics;
}

export interface Informer<T extends KubeObject> {
  readonly store: ReadStore<T>;
  /** Keeps the store equal to the API server until the signal aborts; then resolves. Never rejects. Call it once. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Where the reflector stands: kube-rs watcher.rs without what happens inside a step. `empty` makes a complete list
 * (its InitPage or InitialWatch), `listed` a watch from the version reached (its InitListed and Watching).
 */
type State = 'empty' | 'listed';

// Two bookmarks are late: kube-apiserver sends one about every minute. A TCP connection whose other end is gone stays
// open and silent, so silence is the only sign.
const IDLE_MS = 150_000;
const SHORT_WATCH_MS = 1_000;
// The numbers of client-go's reflector.go.
const MIN_WATCH_SECONDS = 300;
const BACKOFF = { firstMs: 800, maxMs: 30_000, resetMs: 120_000 } as const;

/** The server showed a state older than one seen before, so a lagging replica: never to be acted on. */
class BackInTimeError extends Error {
  override name = 'BackInTimeError';
}

/** A watch that ended at once and brought nothing: a server that would be asked in a tight loop. */
class ShortWatchError extends Error {
  override name = 'ShortWatchError';
}

function assertNotOlder(resourceVersion: string, seen: string): void {
  const order = compareVersions(resourceVersion, seen);
  if (order === undefined || order >= 0) return;
  throw new BackInTimeError(`The API server is at version ${resourceVersion}; version ${seen} was seen before.`);
}

function apply<T extends KubeObject>(cache: Cache<T>, { type, object }: WatchEvent<T>): void {
  const version = object.metadata.resourceVersion ?? '';
  assertNotOlder(version, cache.store.resourceVersion);
  if (type === 'BOOKMARK') cache.advance(version);
  else if (type === 'DELETED') cache.remove(object);
  else cache.upsert(object);
}

/** What to do after a failed watch: go on from the version reached, or list again when that cannot work. */
function afterFailure(error: unknown): State {
  if (error instanceof BackInTimeError) return 'empty';
  if (!(error instanceof KubeError)) return 'listed';
  const refused = error.status >= 400 && error.status < 500;
  const mayHealByWaiting = error.status === 401 || error.status === 403 || error.status === 429;
  return refused && !mayHealByWaiting ? 'empty' : 'listed';
}

/** The server's Retry-After, within bounds. */
function askedToWait(error: unknown): number {
  return error instanceof KubeError ? Math.min(error.retryAfterMs ?? 0, BACKOFF.maxMs) : 0;
}

function causeOf(error: unknown): string {
  return error instanceof KubeError ? error.reason : error instanceof Error ? error.name : 'Unknown';
}

/**
 * A watch cache of one kind; see {@link ReadStore} for what readers may rely on. A list that fails or is older than what
 * was seen changes nothing. An API server restored from a backup is older for good: `berth_informer_stale_seconds`
 * rises until the process is restarted.
 */
export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  const { client, type, namespace, clock, random, metrics } = options;
  const log = options.log.child({ kind: type.kind });
  const cache = createCache<T>({
    indexers: options.indexers,
    prune: options.prune,
    onListenerError: (error) => log.error({ err: error }, 'A listener of a watch cache threw'),
  });
  const backoff = createBackoff({ clock, random, ...BACKOFF });
  const timeoutSeconds = (): number => Math.floor(MIN_WATCH_SECONDS * (1 + random()));
  const list = createLister(type, { client, clock, selection: options, timeoutSeconds, prepare: cache.prepare });
  let freshAt = clock.monotonic();

  async function listAll(signal: AbortSignal): Promise<void> {
    const { objects, resourceVersion } = await list(signal);
    assertNotOlder(resourceVersion, cache.store.resourceVersion);
    cache.replace(objects, resourceVersion);
    freshAt = clock.monotonic();
    metrics?.listed(type.kind, 'ok');
    log.debug({ objects: objects.length, resourceVersion }, 'Listed');
  }

  async function watchOn(signal: AbortSignal): Promise<void> {
    const start = clock.monotonic();
    let events = 0;
    const query = {
      ...selectorQuery(options),
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(timeoutSeconds()),
      resourceVersion: cache.store.resourceVersion,
    };
    for await (const batch of watch(type, { client, clock, namespace, query, idleMs: IDLE_MS, signal })) {
      for (const event of batch) apply(cache, event);
      events += batch.length;
      freshAt = clock.monotonic();
      metrics?.received(type.kind, batch.length);
    }
    if (events === 0 && clock.monotonic() - start < SHORT_WATCH_MS) {
      throw new ShortWatchError('The watch ended within a second and brought nothing.');
    }
    metrics?.watchEnded(type.kind, 'Closed');
  }

  async function step(state: State, signal: AbortSignal): Promise<State> {
    try {
      await (state === 'empty' ? listAll(signal) : watchOn(signal));
      return 'listed';
    } catch (error) {
      if (signal.aborted) return state;
      if (state === 'empty') metrics?.listed(type.kind, 'error');
      else metrics?.watchEnded(type.kind, causeOf(error));
      const next = state === 'empty' ? 'empty' : afterFailure(error);
      const waitMs = Math.round(Math.max(backoff.next(), askedToWait(error)));
      log.warn({ err: error, state, next, waitMs }, 'A watch cache lost its source and tries again');
      await clock.sleep(waitMs, signal);
      return next;
    }
  }

  return {
    store: cache.store,
    async run(signal) {
      const untrack = metrics?.track(type.kind, () => ({
        objects: cache.store.size,
        synced: cache.store.hasSynced,
        staleSeconds: (clock.monotonic() - freshAt) / 1000,
      }));
      let state: State = 'empty';
      while (!signal.aborted) state = await step(state, signal);
      untrack?.();
    },
  };
}
