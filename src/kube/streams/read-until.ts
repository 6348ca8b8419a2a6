import { once } from 'node:events';
import type { Readable } from 'node:stream';

/**
 * Reads to the first `byte`, which is dropped; what follows stays unread. Undefined when the stream ended or `limit`
 * bytes came without it. Rejects when the signal aborts.
 */
export async function readUntil(
  stream: Readable,
  byte: number,
  options: { limit: number; signal: AbortSignal },
): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let length = 0;
  while (!stream.readableEnded && !stream.destroyed && length <= options.limit) {
    const chunk = stream.read() as Buffer | null;
    if (chunk === null) {
      await nextEvent(stream, options.signal);
      continue;
    }
    const at = chunk.indexOf(byte);
    if (at < 0) {
      parts.push(chunk);
      length += chunk.length;
      continue;
    }
    if (at + 1 < chunk.length) stream.unshift(chunk.subarray(at + 1));
    return Buffer.concat([...parts, chunk.subarray(0, at)]);
  }
  return undefined;
}

/** Resolves when there is something to read or never will be. Leaves no listener behind. */
async function nextEvent(stream: Readable, signal: AbortSignal): Promise<void> {
  const scope = new AbortController();
  const either = AbortSignal.any([signal, scope.signal]);
  const events = ['readable', 'end', 'close'].map((event) => once(stream, event, { signal: either }));
  await Promise.race(events).finally(() => {
    scope.abort();
    void Promise.allSettled(events);
  });
}
