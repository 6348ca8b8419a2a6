import type { ServerResponse } from 'node:http';
import { json, status } from '../local-server.ts';

interface StoredList {
  apiVersion: string;
  kind: string;
  metadata: { resourceVersion: string };
  items: { metadata: object }[];
}

/**
 * What an API server that lags behind knows: lists as they were when they were taken. Asked for more it says, like the
 * real one, that it does not have that version yet.
 */
export function createStaleView(fetchList: (path: string) => Promise<unknown>) {
  const lists = new Map<string, StoredList>();

  function answerWatch(list: StoredList, query: URLSearchParams, response: ServerResponse): void {
    const asked = query.get('resourceVersion') ?? '';
    if (asked !== '' && BigInt(asked) > BigInt(list.metadata.resourceVersion)) {
      const details = { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }] };
      json(response, 504, status(504, 'Timeout', `Too large resource version: ${asked}`, details));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    if (query.get('sendInitialEvents') !== 'true') return;
    for (const object of list.items) response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`);
    const metadata = { ...list.metadata, annotations: { 'k8s.io/initial-events-end': 'true' } };
    response.write(`${JSON.stringify({ type: 'BOOKMARK', object: { metadata } })}\n`);
  }

  return {
    /** Takes the list at this path as it is now. */
    async remember(path: string): Promise<void> {
      lists.set(path, (await fetchList(path)) as StoredList);
    },
    forget(): void {
      lists.clear();
    },
    /** Answers a GET from what is remembered; false when it is about something else. */
    answer(url: string, response: ServerResponse): boolean {
      const { pathname, searchParams } = new URL(url, 'http://proxy');
      const list = lists.get(pathname);
      if (!list) return false;
      if (searchParams.get('watch') === 'true') answerWatch(list, searchParams, response);
      else json(response, 200, list);
      return true;
    },
  };
}
