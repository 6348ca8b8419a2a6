import { Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';
import type { Outlet } from './outlet.ts';

/** What ssh2's Channel keeps of a write that waits for the window (lib/Channel.js, 1.17). */
interface BlockedWrites {
  _chunk?: unknown;
  _chunkcb?: unknown;
  _chunkErr?: unknown;
  _chunkcbErr?: unknown;
}

/**
 * The way out of one channel. ssh2 keeps the last write that waited for the window and sends it again when the other
 * of stdout and stderr waits later, so writes go one at a time and the remains are cleared after each.
 */
export interface Lane {
  stdout: Writable;
  stderr: Writable;
  /** Writes a line to stderr, also when the two ways are closed; resolves when the channel took it. */
  say(text: string): Promise<void>;
  /** Bytes handed to the channel so far. */
  readonly bytes: number;
  /** Bytes that wait for the client. */
  readonly waiting: number;
  /** Resolves when that many bytes were handed over; never, when they never are. */
  sent(count: number): Promise<void>;
}

type Job = { stream: Writable; chunk: Buffer; done: (error?: Error | null) => void };

export function laneOf(channel: ServerChannel, outlet: Outlet): Lane {
  const waiting: Job[] = [];
  let busy = false;
  let bytes = 0;
  let milestone: { count: number; reached: () => void } | undefined;
  const next = (): void => {
    const job = waiting.shift();
    if (job === undefined) return;
    busy = true;
    const finish = (error?: Error | null): void => {
      const remains: BlockedWrites = {
        _chunk: undefined,
        _chunkcb: undefined,
        _chunkErr: undefined,
        _chunkcbErr: undefined,
      };
      Object.assign(channel, remains);
      busy = false;
      bytes += job.chunk.length;
      if (milestone !== undefined && bytes >= milestone.count) milestone.reached();
      job.done(error);
      next();
    };
    // An empty write marks a place in the queue; ssh2 would never call back for it after our EOF.
    if (job.chunk.length === 0) {
      finish();
      return;
    }
    outlet.whenFree(() => {
      try {
        job.stream.write(job.chunk, finish);
      } catch (error) {
        finish(error instanceof Error ? error : new Error(String(error)));
      }
    });
  };
  const way = (stream: Writable): Writable => {
    const writable = new Writable({
      highWaterMark: 64 * 1024,
      write: (chunk: Buffer, _encoding, done) => {
        waiting.push({ stream, chunk, done });
        if (!busy) next();
      },
    });
    writable.on('error', () => undefined);
    return writable;
  };
  const stdout = way(channel);
  const stderr = way(channel.stderr);
  return {
    stdout,
    stderr,
    say: (text) =>
      new Promise((resolve) => {
        waiting.push({ stream: channel.stderr, chunk: Buffer.from(text), done: () => resolve() });
        if (!busy) next();
      }),
    get bytes() {
      return bytes;
    },
    get waiting() {
      return stdout.writableLength + stderr.writableLength;
    },
    sent: (count) =>
      new Promise((resolve) => {
        if (bytes >= count) resolve();
        else milestone = { count, reached: resolve };
      }),
  };
}
