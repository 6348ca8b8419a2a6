import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import { isRekeying } from './wire.ts';

// A fast copy needs a queue in front of the kernel, and a client may announce a window of 4 GiB and then not read.
const LONGEST_QUEUE = 1024 * 1024;

/** What waits in the queues of all clients' sockets. */
export interface Backlog {
  /** Bytes, as of the last look at each queue. */
  bytes: number;
  /** From here on, queues are kept as short as the socket lets them be. */
  readonly ample: number;
}

/** The way to one client, which all its channels share. */
export interface Outlet {
  /** Calls back when something may be handed to ssh2: at once, if so. */
  whenFree(write: () => void): void;
  /** Bytes that wait in the queue of the socket. */
  queued(): number;
}

/** Nothing goes out during a rekey: ssh2 would keep it all until the client has finished, where sshd waits too. */
export function outletOf(client: Connection, socket: Socket, backlog: Backlog): Outlet {
  const waiting: (() => void)[] = [];
  let counted = 0;
  const queued = (): number => {
    const bytes = socket.destroyed ? 0 : socket.writableLength;
    backlog.bytes += bytes - counted;
    counted = bytes;
    return bytes;
  };
  const isFree = (): boolean => {
    const bytes = queued();
    // A queue below the high-water mark would not tell that it was drained.
    const longest = backlog.bytes < backlog.ample ? LONGEST_QUEUE : socket.writableHighWaterMark;
    return bytes < longest && (socket.destroyed || !isRekeying(client));
  };
  const next = (): void => {
    while (waiting.length > 0 && isFree()) waiting.shift()?.();
    queued();
  };
  socket.on('drain', next).once('close', next);
  client.on('rekey', next);
  return {
    whenFree: (write) => {
      waiting.push(write);
      next();
    },
    queued,
  };
}
