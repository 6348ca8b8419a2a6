import { once } from 'node:events';
import { type RawData, WebSocket } from 'ws';

/** Milliseconds in which a client answers the end of the stream. */
const CLOSE_GRACE_MS = 2_000;

export interface ClientEvents {
  /** One frame. Its bytes may be changed by later frames. */
  frame(channel: number, bytes: Buffer): void;
  /** The client is gone. Called once. */
  closed(): void;
}

/** The client's WebSocket, whose frames begin with the number of a channel. */
export class ClientSocket {
  readonly #socket: WebSocket;
  #isAlive = true;

  constructor(socket: WebSocket, events: ClientEvents) {
    this.#socket = socket;
    socket.on('error', () => undefined);
    socket.on('pong', () => (this.#isAlive = true));
    socket.on('message', (data: RawData) => {
      this.#isAlive = true;
      const frame = data as Buffer;
      if (frame[0] !== undefined) events.frame(frame[0], frame.subarray(1));
    });
    socket.once('close', () => events.closed());
  }

  /** Sends one frame. Calls back when the kernel took it, with an error when the client is gone. */
  send(channel: number, parts: readonly Uint8Array[], done: (error?: Error) => void): void {
    if (this.#socket.readyState !== WebSocket.OPEN) {
      done(new Error('The client is gone.'));
      return;
    }
    let isHeldBack = false;
    this.#socket.send(Buffer.concat([Uint8Array.of(channel), ...parts]), { binary: true }, (error) => {
      // The kernel had no room until the client took bytes: on a slow line, its pong is behind many of these.
      if (isHeldBack && !error) this.#isAlive = true;
      done(error ?? undefined);
    });
    isHeldBack = this.#socket.bufferedAmount > 0;
  }

  /** Reads no more until `resume`. */
  pause(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.pause();
  }

  resume(): void {
    this.#isAlive = true;
    this.#socket.resume();
  }

  /** Ends the stream after what was sent, and the connection when the client does not answer that. Resolves when it is gone. */
  async close(): Promise<void> {
    if (this.#socket.readyState === WebSocket.CLOSED) return;
    const closed = once(this.#socket, 'close');
    this.#socket.resume();
    this.#socket.close(1000);
    const timer = setTimeout(() => this.#socket.terminate(), CLOSE_GRACE_MS).unref();
    await closed;
    clearTimeout(timer);
  }

  /** Asks the client for a sign of life, and hangs up when the last question was not answered. Paused, it is not judged. */
  ping(): void {
    if (this.#socket.isPaused || this.#socket.readyState !== WebSocket.OPEN) return;
    if (!this.#isAlive) this.#socket.terminate();
    this.#isAlive = false;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }
}
