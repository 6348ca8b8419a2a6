import type { KubeClient } from '../client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { GoneError, KubeError, TransportError } from '../errors.ts';
import { keyOf, type KubeObject, type ResourceType } from '../types.ts';
import { watch, type WatchEvent } from './watch.ts';

export interface Selection {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
}

export interface Snapshot<T> {
  objects: T[];
  resourceVersion: string;
}

export interface ListerOptions<T extends KubeObject> {
  type: ResourceType<T>;
  client: KubeClient;
  clock: Clock;
  selection: Selection;
  /** Seconds after which the server ends the request. */
  timeoutSeconds: () => number;
  /** Called for each object as it comes: what it prunes must not fill the memory until the end of the list. */
  prepare: (object: T) => T;
}

const PAGE_SIZE = 500;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
// A server without streaming lists sends the objects and then nothing.
const SILENCE_MS = 30_000;

/** The selectors of a watch as query parameters. */
export function selectorQuery({ labelSelector, fieldSelector }: Selection): Record<string, string> {
  return { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) };
}

/**
 * Reads everything that is selected, at one resource version, or throws: never a part of it. It streams the list
 * (KEP-3157), which spares the API server most of the memory, and reads pages when the last stream failed, as client-
 * go's reflector does. Both are consistent reads: never older than the request.
 */
export class Lister<T extends KubeObject> {
  readonly #options: ListerOptions<T>;
  #canStream = true;
  #streamFailed = false;
  #canPage = true;

  constructor(options: ListerOptions<T>) {
    this.#options = options;
  }

  async list(signal: AbortSignal): Promise<Snapshot<T>> {
    if (!this.#canStream || this.#streamFailed) {
      const snapshot = await this.#listPages(signal);
      this.#streamFailed = false;
      return snapshot;
    }
    try {
      return await streamList(this.#options, signal);
    } catch (error) {
      // 400 or 422: this server has no streaming lists, so there is nothing to wait for.
      this.#canStream = !(error instanceof KubeError && (error.status === 400 || error.status === 422));
      if (!this.#canStream) return this.#listPages(signal);
      this.#streamFailed = true;
      throw error;
    }
  }

  async #listPages(signal: AbortSignal): Promise<Snapshot<T>> {
    try {
      return await readPages(this.#options, this.#canPage ? PAGE_SIZE : undefined, signal);
    } catch (error) {
      // The snapshot expired before the last page: next time all at once (client-go's pager.go).
      if (error instanceof GoneError) this.#canPage = false;
      throw error;
    }
  }
}

async function streamList<T extends KubeObject>(options: ListerOptions<T>, signal: AbortSignal): Promise<Snapshot<T>> {
  const { type, client, clock, selection } = options;
  const query = {
    ...selectorQuery(selection),
    allowWatchBookmarks: 'true',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    timeoutSeconds: String(options.timeoutSeconds()),
  };
  const objects = new Map<string, T>();
  const watchOptions = { client, clock, namespace: selection.namespace, query, idleMs: SILENCE_MS, signal };
  for await (const batch of watch(type, watchOptions)) {
    for (const event of batch) {
      const end = collect(objects, event, options.prepare);
      if (end !== undefined) return { objects: [...objects.values()], resourceVersion: end };
    }
  }
  const message = `list ${type.plural}: the stream ended before the whole list was sent`;
  throw new TransportError({ message, status: 0, reason: 'CutOff' });
}

/** Adds one event to the list. Returns the resource version of the list when it is complete. */
function collect<T extends KubeObject>(
  objects: Map<string, T>,
  { type, object }: WatchEvent<T>,
  prepare: (object: T) => T,
): string | undefined {
  if (type === 'BOOKMARK') {
    return object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true' ? object.metadata.resourceVersion : undefined;
  }
  if (type === 'DELETED') objects.delete(keyOf(object));
  else objects.set(keyOf(object), prepare(object));
  return undefined;
}

async function readPages<T extends KubeObject>(
  { type, client, selection, prepare }: ListerOptions<T>,
  limit: number | undefined,
  signal: AbortSignal,
): Promise<Snapshot<T>> {
  const objects: T[] = [];
  for (let next: string | undefined; ;) {
    const page = await client.list(type, {
      ...selectorQuery(selection),
      namespace: selection.namespace,
      ...(limit !== undefined && { limit }),
      ...(next !== undefined && { continue: next }),
      signal,
    });
    for (const object of page.items) objects.push(prepare(object));
    if (page.continue === undefined) return { objects, resourceVersion: page.resourceVersion };
    next = page.continue;
  }
}
