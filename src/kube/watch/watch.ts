import type { Readable } from 'node:stream';
import type { KubeClient } from '../client/client.ts';
import { pathOf } from '../client/client.ts';
import type { Clock } from '../../lib/clock.ts';
import { KubeError, TransportError, watchEventError } from '../errors.ts';
import { jsonLines } from './json-lines.ts';
import type { KubeObject, ResourceType } from '../types.ts';

/** One line of a watch. An ERROR event is thrown instead. */
export interface WatchEvent<T> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: T;
}

export interface WatchOptions {
  client: KubeClient;
  clock: Clock;
  namespace?: string | undefined;
  query: Record<string, string>;
  /** After this many milliseconds without a byte the connection counts as dead. */
  idleMs: number;
  signal: AbortSignal;
}

const TYPES: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/** One watch, in batches. Leaving the loop ends it. Throws KubeError, also for ERROR events, bad lines and silence. */
export async function* watch<T extends KubeObject>(
  type: ResourceType<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>[], void, undefined> {
  const { client, clock, signal, idleMs } = options;
  const path = pathOf(type, { namespace: options.namespace });
  const stream = await client.stream(path, { ...options.query, watch: 'true' }, { signal });
  try {
    const chunks = untilSilent(stream, { clock, idleMs, path });
    for await (const lines of jsonLines(chunks)) yield lines.map((line) => toEvent<T>(line, path));
  } catch (error) {
    throw error instanceof KubeError ? error : cutOff(path, error);
  }
}

/** Breaks a silent stream: a TCP connection stays open when the other end is gone. */
async function* untilSilent(
  stream: Readable,
  { clock, idleMs, path }: { clock: Clock; idleMs: number; path: string },
): AsyncGenerator<Buffer, void, undefined> {
  const onIdle = (): void => {
    const message = `watch ${path}: no byte for ${idleMs} ms`;
    stream.destroy(new TransportError({ message, status: 0, reason: 'Idle' }));
  };
  let cancel = clock.setTimeout(onIdle, idleMs);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      cancel();
      cancel = clock.setTimeout(onIdle, idleMs);
      yield chunk;
    }
  } finally {
    cancel();
  }
}

function cutOff(path: string, error: unknown): TransportError {
  const { code, message } = error as { code?: string; message?: string };
  const text = `watch ${path}: ${message || code || 'the connection broke'}`;
  return new TransportError({ message: text, status: 0, reason: 'CutOff', cause: error });
}

function toEvent<T extends KubeObject>(line: unknown, path: string): WatchEvent<T> {
  const { type, object } = line as { type?: unknown; object?: unknown };
  if (type === 'ERROR') throw watchEventError(`watch ${path}`, object);
  const metadata = (object as Partial<KubeObject> | undefined)?.metadata;
  if (TYPES.has(type) && typeof metadata?.resourceVersion === 'string') return line as WatchEvent<T>;
  throw new TransportError({ message: `watch ${path}: an event is not understood`, status: 0, reason: 'BadStream' });
}
