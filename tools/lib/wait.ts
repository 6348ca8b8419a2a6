import { setTimeout as delay } from 'node:timers/promises';

export interface WaitOptions {
  /** Milliseconds after which to give up. */
  timeout: number;
  /** Milliseconds between two calls of the probe. */
  interval?: number;
  signal?: AbortSignal;
}

/** Calls the probe until it returns something other than undefined or false; undefined when the time is over. */
export async function waitFor<T>(
  probe: () => Promise<T | undefined | false> | T | undefined | false,
  { timeout, interval = 50, signal }: WaitOptions,
): Promise<T | undefined> {
  const end = Date.now() + timeout;
  for (;;) {
    signal?.throwIfAborted();
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (Date.now() >= end) return undefined;
    await delay(interval, undefined, signal === undefined ? {} : { signal });
  }
}
