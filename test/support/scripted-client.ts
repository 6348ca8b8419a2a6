import { PassThrough } from 'node:stream';
import type { KubeClient, ListPage } from '../../src/kube/client/client.ts';
import type { KubeObject } from '../../src/kube/types.ts';

/** One watch as the reflector opened it, driven by the test. */
export interface ScriptedWatch {
  path: string;
  query: Record<string, string>;
  /** Sends events as whole lines. */
  send(...events: { type: string; object: unknown }[]): void;
  /** Sends bytes as they are. */
  write(bytes: string): ScriptedWatch;
  /** Ends in good order. */
  end(): void;
  /** Breaks the connection. */
  reset(): void;
  readonly closed: boolean;
}

type Answer<T> = T | Error;

/**
 * A client that lists and watches only, and answers as the test says: each list or watch takes the next answer queued
 * for it, and fails as out of order when there is none.
 */
export function scriptedClient<T extends KubeObject>() {
  const lists: Answer<ListPage<T>>[] = [];
  const listQueries: object[] = [];
  const watches: ScriptedWatch[] = [];
  const refusals: Error[] = [];

  function openWatch(path: string, query: Record<string, string>, signal: AbortSignal | undefined): PassThrough {
    const stream = new PassThrough();
    signal?.addEventListener('abort', () => stream.destroy(new Error('aborted')));
    const scripted: ScriptedWatch = {
      path,
      query,
      send: (...events) => stream.write(events.map((event) => `${JSON.stringify(event)}\n`).join('')),
      write(bytes) {
        stream.write(bytes);
        return scripted;
      },
      end: () => stream.end(),
      reset: () => stream.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })),
      get closed() {
        return stream.destroyed;
      },
    };
    watches.push(scripted);
    return stream;
  }

  const client: Pick<KubeClient, 'list' | 'stream'> = {
    list(_type, options) {
      listQueries.push({ ...options, signal: undefined });
      const answer = lists.shift();
      if (answer instanceof Error) return Promise.reject(answer);
      if (!answer) return Promise.reject(new Error('the test has no list for this'));
      return Promise.resolve(structuredClone(answer) as unknown as ListPage<never>);
    },
    stream(path, query, { signal }) {
      const refusal = refusals.shift();
      return refusal ? Promise.reject(refusal) : Promise.resolve(openWatch(path, query, signal));
    },
  };
  return { client: client as KubeClient, lists, listQueries, watches, refusals };
}
