import { useEffect, useState } from 'preact/hooks';
import { problem, session, tenant } from '../state.ts';
import { CallError, errorOf, fetchApi, messageOf } from './call.ts';
import { eventsOf } from '../../../wire/event-stream.ts';

/** An event as the API sends it; `data` is parsed. */
export interface ServerEvent {
  type: string;
  data: unknown;
}

interface Follow {
  namespace: string;
  /** Below /api/v1. */
  path: string;
  onEvent: (event: ServerEvent) => void;
  /** With the error, when there is one, and without when the stream is open again. */
  onState?: (error: unknown) => void;
  signal: AbortSignal;
}

const RETRY_MS = 2000;
/** Statuses after which the same request fails again. */
const isFinal = (status: number): boolean => status >= 400 && status < 500 && status !== 401 && status !== 429;

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((settle) => {
    const timer = setTimeout(settle, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      settle();
    });
  });
}

/**
 * Follows an event stream until the signal aborts, the server says `end` or `deleted`, or refuses for good. The stream
 * ends with its token, every 20 s at most, and goes on with a new one after the last event.
 */
async function follow({ namespace, path, onEvent, onState, signal }: Follow): Promise<void> {
  let lastId: string | undefined;
  while (!signal.aborted) {
    try {
      const headers = { accept: 'text/event-stream', ...(lastId !== undefined && { 'last-event-id': lastId }) };
      const response = await fetchApi(namespace, path, { headers, signal });
      if (!response.ok || response.body === null) {
        const error = await errorOf(response);
        onState?.(error);
        if (isFinal(response.status)) return;
      } else {
        onState?.(undefined);
        for await (const { type, id, data } of eventsOf(response.body)) {
          lastId = id || lastId;
          if (type === 'message') continue;
          onEvent({ type, data: JSON.parse(data) as unknown });
          if (type === 'end') return;
        }
        continue;
      }
    } catch (error) {
      if (signal.aborted) return;
      onState?.(error);
      // No session, or no right.
      if (error instanceof CallError && (error.status === 401 || isFinal(error.status))) return;
    }
    await sleep(RETRY_MS, signal);
  }
}

/**
 * Follows a stream of the tenant while the view is there; another path is another stream. An empty path follows nothing.
 * @returns why there is no stream now, in words
 */
export function useFollow(path: string, onEvent: (event: ServerEvent) => void): string {
  const [trouble, setTrouble] = useState('');
  useEffect(() => {
    if (path === '') return undefined;
    const ended = new AbortController();
    function onState(error: unknown): void {
      if (error instanceof CallError && error.code === 'not_signed_in') {
        session.value = null;
        problem.value = error.message;
      } else setTrouble(error === undefined ? '' : messageOf(error));
    }
    void follow({ namespace: tenant.value, path, onEvent, onState, signal: ended.signal });
    return () => ended.abort();
  }, [path]);
  return trouble;
}
