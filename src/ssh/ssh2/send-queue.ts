import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import { isRekeying } from './private.ts';

// A fast copy needs a queue in front of the kernel, and a client may announce a window of 4 GiB and then not read.
const LONGEST_QUEUE = 1024 * 1024;

/** What waits in the send queues of all clients. */
export interface Backlog {
  /** Bytes, as of the last look at each queue. */
  bytes: number;
  /** From this many bytes on, each queue is kept as short as its socket allows. */
  readonly ample: number;
}

/** The queue to one client, for all its channels. It waits for a rekey, as sshd does: ssh2 would keep all of it. */
export class SendQueue {
  readonly #client: Connection;
  readonly #socket: Socket;
  readonly #backlog: Backlog;
  readonly #waiting: (() => void)[] = [];
  /** Our part of the backlog. */
  #counted = 0;

  constructor(client: Connection, socket: Socket, backlog: Backlog) {
    this.#client = client;
    this.#socket = socket;
    this.#backlog = backlog;
    const next = (): void => this.#next();
    socket.on('drain', next).once('close', next);
    client.on('rekey', next);
  }

  /** Calls back when something may be handed to ssh2: at once, if so. */
  whenFree(write: () => void): void {
    this.#waiting.push(write);
    this.#next();
  }

  /** Bytes that wait in the queue of the socket. */
  queued(): number {
    const bytes = this.#socket.destroyed ? 0 : this.#socket.writableLength;
    this.#backlog.bytes += bytes - this.#counted;
    this.#counted = bytes;
    return bytes;
  }

  #isFree(): boolean {
    const bytes = this.queued();
    // A queue below the high-water mark would not tell that it was drained.
    const longest = this.#backlog.bytes < this.#backlog.ample ? LONGEST_QUEUE : this.#socket.writableHighWaterMark;
    return bytes < longest && (this.#socket.destroyed || !isRekeying(this.#client));
  }

  #next(): void {
    while (this.#waiting.length > 0 && this.#isFree()) this.#waiting.shift()?.();
    this.queued();
  }
}
