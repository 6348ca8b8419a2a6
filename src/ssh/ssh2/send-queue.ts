import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import type { Portion } from '../../lib/shares.ts';
import { isRekeying } from './private.ts';

// A fast copy needs a queue in front of the kernel, and a client may announce a window of 4 GiB and then not read.
const LONGEST_QUEUE = 1024 * 1024;

/** The queue to one client, for all its channels. It waits for a rekey, as sshd does: ssh2 would keep all of it. */
export class SendQueue {
  readonly #client: Connection;
  readonly #socket: Socket;
  readonly #portion: Portion;
  readonly #waiting: (() => void)[] = [];
  /** What the portion knows of. */
  #counted = 0;
  #isGathering = false;

  /** The queue is long while there is room in `portion`, and else as short as its socket allows. */
  constructor(client: Connection, socket: Socket, portion: Portion) {
    this.#client = client;
    this.#socket = socket;
    this.#portion = portion;
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
    this.#portion.change(bytes - this.#counted);
    this.#counted = bytes;
    return bytes;
  }

  #isFree(): boolean {
    const bytes = this.queued();
    // A queue below the high-water mark would not tell that it was drained.
    const longest = this.#portion.left() > 0 ? LONGEST_QUEUE : this.#socket.writableHighWaterMark;
    return bytes < longest && (this.#socket.destroyed || !isRekeying(this.#client));
  }

  #next(): void {
    if (this.#waiting.length > 0) this.#gather();
    while (this.#waiting.length > 0 && this.#isFree()) this.#waiting.shift()?.();
    this.queued();
  }

  /** Each packet is written in three pieces: what comes in one round of the event loop goes to the kernel in one call. */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#socket.cork();
    setImmediate(() => {
      this.#isGathering = false;
      this.#socket.uncork();
    });
  }
}
