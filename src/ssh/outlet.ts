import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import { isRekeying } from './ssh2-wire.ts';

// Above this many bytes waiting in the kernel's queue of the client's socket, nothing more is handed over. A client may
// announce a window of 4 GiB and then not read.
const MAX_SOCKET_BACKLOG = 1024 * 1024;

/** The way to one client, which all its channels share. */
export interface Outlet {
  /** Calls back when something may be handed to ssh2: at once, if so. */
  whenFree(write: () => void): void;
}

/** Nothing goes out during a rekey: ssh2 would keep it all until the client has finished, where sshd waits too. */
export function outletOf(client: Connection, socket: Socket): Outlet {
  const waiting: (() => void)[] = [];
  const isFree = (): boolean => socket.destroyed || (socket.writableLength < MAX_SOCKET_BACKLOG && !isRekeying(client));
  const next = (): void => {
    while (waiting.length > 0 && isFree()) waiting.shift()?.();
  };
  socket.on('drain', next).once('close', next);
  client.on('rekey', next);
  return {
    whenFree: (write) => {
      waiting.push(write);
      next();
    },
  };
}
