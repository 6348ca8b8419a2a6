import type { Logger } from 'pino';
import { Cache } from './cache.ts';
import type { KubeClient } from '../client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { ForbiddenError, KubeError, NotFoundError } from '../errors.ts';
import type { InformerMetrics } from './informer-metrics.ts';
import { Lister, type Selection, selectorQuery } from './initial-list.ts';
import { Pauses } from './pauses.ts';
import { compareVersions } from './resource-version.ts';
import type { IndexFunctions, ReadStore } from './store.ts';
import type { KubeObject, ResourceType } from '../types.ts';
import { watch, type WatchEvent } from './watch.ts';

export interface InformerOptions<T extends KubeObject> extends Selection {
  client: KubeClient;
  type: ResourceType<T>;
  indexers?: IndexFunctions<T>;
  /** Returns what the store keeps of an object; managedFields always go. May change and return its argument. */
  prune?: (object: T) => T;
  /** Not every cluster serves the kind, and not every installation may read it: then the store is empty, and complete. */
  isOptional?: boolean | undefined;
  /** The version that is read where the API server does not serve that of the type. */
  earlierVersion?: string | undefined;
  /** Returns what readers see of an object; see CacheOptions. */
  complete?: (object: T) => T;
  clock: Clock;
  /** Uniform in [0, 1). */
  random: () => number;
  log: Logger;
  metrics?: InformerMetrics;
}

/** The next step (kube-rs watcher.rs): `empty` makes a complete list, `listed` watches from the version reached. */
type State = 'empty' | 'listed';

// Two bookmarks are late by then: kube-apiserver sends one about every minute. A TCP connection stays open when the other
// end is gone, so silence is the only sign.
const IDLE_MS = 150_000;
const SHORT_WATCH_MS = 1_000;
// How soon a kind is noticed that the API server serves after an upgrade, or that Berth may read now.
const ABSENT_MS = 60_000;
// As in client-go's reflector.go.
const MIN_WATCH_SECONDS = 300;

/** The server, a lagging replica, showed a state older than one seen before. Nothing may act on it. */
class BackInTimeError extends Error {
  override name = 'BackInTimeError';
}

/** A watch ended at once and brought nothing. Without a wait the reflector would ask in a tight loop. */
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
  assertNotOlder(version, cache.resourceVersion);
  if (type === 'BOOKMARK') cache.advance(version);
  else if (type === 'DELETED') cache.remove(object);
  else cache.upsert(object);
}

/** The step after a failed watch: go on from the version reached, or list again where that cannot work. */
function afterFailure(error: unknown): State {
  if (error instanceof BackInTimeError) return 'empty';
  if (!(error instanceof KubeError)) return 'listed';
  const refused = error.status >= 400 && error.status < 500;
  const mayHealByWaiting = error.status === 401 || error.status === 403 || error.status === 429;
  return refused && !mayHealByWaiting ? 'empty' : 'listed';
}

function causeOf(error: unknown): string {
  return error instanceof KubeError ? error.reason : error instanceof Error ? error.name : 'Unknown';
}

/**
 * A watch cache of one kind. A list that fails, or is older than what was seen, changes nothing. An API server restored
 * from a backup stays older for good: `berth_informer_stale_seconds` rises until the process is restarted.
 */
export class Informer<T extends KubeObject> {
  readonly #options: InformerOptions<T>;
  readonly #log: Logger;
  readonly #cache: Cache<T>;
  readonly #pauses: Pauses;
  /** With the version that is read. */
  #type: ResourceType<T>;
  #lister: Lister<T>;
  /** Whether the other version was found absent just before. */
  #isOtherAbsent = false;
  #freshAt: number;

  constructor(options: InformerOptions<T>) {
    const { type, clock, random } = options;
    this.#options = options;
    this.#type = type;
    this.#log = options.log.child({ kind: type.kind });
    this.#cache = new Cache<T>({
      indexers: options.indexers,
      prune: options.prune,
      complete: options.complete,
      onListenerError: (error) => this.#log.error({ err: error }, 'A listener of a watch cache threw'),
    });
    this.#pauses = new Pauses({ clock, random });
    this.#lister = this.#listerOf(type);
    this.#freshAt = clock.monotonic();
  }

  #listerOf(type: ResourceType<T>): Lister<T> {
    const { client, clock } = this.#options;
    return new Lister({
      type,
      client,
      clock,
      selection: this.#options,
      timeoutSeconds: () => this.#timeoutSeconds(),
      prepare: (object) => this.#cache.prepare(object),
    });
  }

  get store(): ReadStore<T> {
    return this.#cache.store;
  }

  /** What completes the object of this key has changed. */
  refresh(key: string): void {
    this.#cache.refresh(key);
  }

  /** Keeps the store equal to the API server until the signal aborts; then resolves. Never rejects. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, metrics, type } = this.#options;
    const untrack = metrics?.track(type.kind, () => ({
      objects: this.#cache.size,
      synced: this.#cache.hasSynced,
      staleSeconds: Math.max(0, clock.monotonic() - this.#freshAt) / 1000,
    }));
    let state: State = 'empty';
    while (!signal.aborted) state = await this.#step(state, signal);
    untrack?.();
  }

  async #step(state: State, signal: AbortSignal): Promise<State> {
    const { clock, metrics, type } = this.#options;
    try {
      await (state === 'empty' ? this.#list(signal) : this.#watch(signal));
      return 'listed';
    } catch (error) {
      if (signal.aborted) return state;
      if (state === 'empty' && this.#isAbsent(error))
        return this.#takeOtherVersion() ? 'empty' : this.#waitAsEmpty(error, signal);
      if (state === 'empty') metrics?.listed(type.kind, 'error');
      else metrics?.watchEnded(type.kind, causeOf(error));
      const next = state === 'empty' ? 'empty' : afterFailure(error);
      const waitMs = Math.round(this.#pauses.after(error, state === 'empty' ? 'list' : 'watch'));
      this.#log.warn({ err: error, state, next, waitMs }, 'A list or a watch failed; trying again');
      await clock.sleep(waitMs, signal);
      return next;
    }
  }

  #isAbsent(error: unknown): boolean {
    const { isOptional = false } = this.#options;
    return isOptional && (error instanceof NotFoundError || error instanceof ForbiddenError);
  }

  /** Returns whether it may be there: not when both are absent, nor when there is one version. */
  #takeOtherVersion(): boolean {
    const { type, earlierVersion } = this.#options;
    if (earlierVersion === undefined) return false;
    this.#type = this.#type === type ? { ...type, version: earlierVersion } : type;
    this.#lister = this.#listerOf(this.#type);
    this.#isOtherAbsent = !this.#isOtherAbsent;
    return this.#isOtherAbsent;
  }

  async #waitAsEmpty(err: unknown, signal: AbortSignal): Promise<State> {
    const { clock } = this.#options;
    if (!this.#cache.hasSynced || this.#cache.size > 0) {
      this.#log.info({ err }, 'This kind cannot be read, and counts as having no objects');
      this.#cache.replace([], '');
    }
    // Nothing newer can be known before the next look.
    this.#freshAt = clock.monotonic() + ABSENT_MS;
    await clock.sleep(ABSENT_MS, signal);
    return 'empty';
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { clock, metrics, type } = this.#options;
    const { objects, resourceVersion } = await this.#lister.list(signal);
    assertNotOlder(resourceVersion, this.#cache.resourceVersion);
    this.#cache.replace(objects, resourceVersion);
    this.#isOtherAbsent = false;
    this.#freshAt = clock.monotonic();
    metrics?.listed(type.kind, 'ok');
    this.#log.debug({ objects: objects.length, resourceVersion }, 'Listed');
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, clock, metrics, namespace, type } = this.#options;
    const start = clock.monotonic();
    let events = 0;
    const query = {
      ...selectorQuery(this.#options),
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(this.#timeoutSeconds()),
      resourceVersion: this.#cache.resourceVersion,
    };
    for await (const batch of watch(this.#type, { client, clock, namespace, query, idleMs: IDLE_MS, signal })) {
      for (const event of batch) apply(this.#cache, event);
      events += batch.length;
      this.#freshAt = clock.monotonic();
      metrics?.received(type.kind, batch.length);
    }
    if (events === 0 && clock.monotonic() - start < SHORT_WATCH_MS) {
      throw new ShortWatchError('The watch ended within a second and brought nothing.');
    }
    metrics?.watchEnded(type.kind, 'Closed');
  }

  #timeoutSeconds(): number {
    return Math.floor(MIN_WATCH_SECONDS * (1 + this.#options.random()));
  }
}
