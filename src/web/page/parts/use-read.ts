import { useEffect, useState } from 'preact/hooks';
import { callApi, CallError } from '../calls/call.ts';
import { attempt, tenant } from '../state.ts';

interface Read<T> {
  /** Undefined until the first answer to this path. */
  value: T | undefined;
  /** Why there is no newer value, in words. */
  trouble: string;
  /** The code of the API for it; empty where there is none. */
  code: string;
  /** Changes what is shown until the next answer. */
  change: (next: (before: T) => T) => void;
}

/**
 * What the API answers to a GET, and again after each `everyMs`, unless the page is in the background. Without it, once.
 * It is read again at once when `cause` changes. An empty path reads nothing.
 */
export function useRead<T>(path: string, everyMs?: number, cause = ''): Read<T> {
  const [known, setKnown] = useState<{ path: string; value: T }>();
  const [trouble, setTrouble] = useState('');
  const [code, setCode] = useState('');
  useEffect(() => {
    if (path === '') return undefined;
    let isLeft = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    async function read(): Promise<void> {
      await attempt(
        async () => {
          const answer = await callApi<T>(tenant.value, 'GET', path).catch((error: unknown) => {
            if (!isLeft) setCode(error instanceof CallError ? error.code : '');
            throw error;
          });
          if (isLeft) return;
          setCode('');
          setKnown({ path, value: answer });
        },
        (text) => !isLeft && setTrouble(text),
      );
      if (everyMs !== undefined && !isLeft) timer = setTimeout(again, everyMs);
    }
    function again(): void {
      if (!document.hidden) void read();
      else timer = setTimeout(again, everyMs);
    }
    void read();
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [path, everyMs, cause]);
  const change = (next: (before: T) => T): void =>
    setKnown((before) => (before?.path === path ? { path, value: next(before.value) } : before));
  return { value: known?.path === path ? known.value : undefined, trouble, code, change };
}
