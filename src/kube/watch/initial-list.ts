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

/** Reads everything that is selected, at one resource version, or throws: never a part of it. */
export type Lister<T> = (signal: AbortSignal) => Promise<Snapshot<T>>;

export interface ListerOptions<T> {
  client: KubeClient;
  clock: Clock;
  selection: Selection;
  /** Seconds after which the server ends the request. */
  timeoutSeconds: () => number;
  /** Called for each object as it comes, so that what will be pruned is not held until the end of the list. */
  prepare: (object: T) => T;
}

const PAGE_SIZE = 500;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';
// A server that does not know streaming lists sends the objects and then nothing.
const SILENCE_MS = 30_000;

/** The selectors of a watch as query parameters. */
export function selectorQuery({ labelSelector, fieldSelector }: Selection): Record<string, string> {
  return { ...(labelSelector && { labelSelector }), ...(fieldSelector && { fieldSelector }) };
}

/**
 * Streams the list (KEP-3157), which spares the API server most of the memory, and comes by pages when the last stream
 * failed, as client-go's reflector does. Both are consistent reads: never older than the request.
 */
export function createLister<T extends KubeObject>(type: ResourceType<T>, options: ListerOptions<T>): Lister<T> {
  let offered = true;
  let lastFailed = false;
  const pages = pagedLister(type, options);
  return async (signal) => {
    if (!offered || lastFailed) {
      const snapshot = await pages(signal);
      lastFailed = false;
      return snapshot;
    }
    try {
      return await streamList(type, options, signal);
    } catch (error) {
      // 400 or 422: this server has no streaming lists, so there is nothing to wait for.
      offered = !(error instanceof KubeError && (error.status === 400 || error.status === 422));
      if (!offered) return pages(signal);
      lastFailed = true;
      throw error;
    }
  };
}

async function streamList<T extends KubeObject>(
  type: ResourceType<T>,
  options: ListerOptions<T>,
  signal: AbortSignal,
): Promise<Snapshot<T>> {
  const { client, clock, selection } = options;
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

/** Adds one event to the list; the resource version of the list when it is complete. */
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

function pagedLister<T extends KubeObject>(type: ResourceType<T>, options: ListerOptions<T>): Lister<T> {
  let paging = true;

  async function readPages(signal: AbortSignal): Promise<Snapshot<T>> {
    const objects: T[] = [];
    for (let next: string | undefined; ;) {
      const page = await options.client.list(type, {
        ...selectorQuery(options.selection),
        namespace: options.selection.namespace,
        ...(paging && { limit: PAGE_SIZE }),
        ...(next !== undefined && { continue: next }),
        signal,
      });
      for (const object of page.items) objects.push(options.prepare(object));
      if (page.continue === undefined) return { objects, resourceVersion: page.resourceVersion };
      next = page.continue;
    }
  }

  return async (signal) => {
    try {
      return await readPages(signal);
    } catch (error) {
      // The snapshot expired before the last page: next time all at once (client-go's pager.go).
      if (error instanceof GoneError) paging = false;
      throw error;
    }
  };
}
