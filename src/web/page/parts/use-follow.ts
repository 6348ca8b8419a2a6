import { useEffect, useState } from 'preact/hooks';
import { CallError, messageOf } from '../calls/call.ts';
import { follow, type ServerEvent } from '../calls/follow.ts';
import { problem, session, tenant } from '../state.ts';

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
