import { Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';
import { clearWaitingWrite } from './private.ts';
import type { SendQueue } from './send-queue.ts';

interface Write {
  stream: Writable;
  chunk: Buffer;
  done: (error?: Error | null) => void;
}

/**
 * What a channel sends to its client. ssh2 keeps the last write that waited for the window, and sends it again when the
 * other of stdout and stderr waits later. So writes go one at a time, and what ssh2 kept is cleared after each.
 */
export class ChannelOutput {
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly #channel: ServerChannel;
  readonly #queue: SendQueue;
  readonly #writes: Write[] = [];
  #isWriting = false;
  #bytes = 0;
  #awaited: { bytes: number; resolve: () => void } | undefined;

  constructor(channel: ServerChannel, queue: SendQueue) {
    this.#channel = channel;
    this.#queue = queue;
    this.stdout = this.#writableTo(channel);
    this.stderr = this.#writableTo(channel.stderr);
  }

  /** Bytes handed to the channel so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that wait for the client. */
  get buffered(): number {
    return this.stdout.writableLength + this.stderr.writableLength;
  }

  /** Writes to stderr, also when both streams are closed. Resolves when the channel took it. */
  say(text: string): Promise<void> {
    return new Promise((resolve) => {
      this.#write({ stream: this.#channel.stderr, chunk: Buffer.from(text), done: () => resolve() });
    });
  }

  /** Resolves when that many bytes were handed to the channel; never, when they never are. */
  sent(bytes: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#bytes >= bytes) resolve();
      else this.#awaited = { bytes, resolve };
    });
  }

  #writableTo(stream: Writable): Writable {
    const writable = new Writable({
      highWaterMark: 64 * 1024,
      write: (chunk: Buffer, _encoding, done) => this.#write({ stream, chunk, done }),
    });
    return writable.on('error', () => undefined);
  }

  #write(write: Write): void {
    this.#writes.push(write);
    if (!this.#isWriting) this.#next();
  }

  #next(): void {
    const write = this.#writes.shift();
    if (write === undefined) return;
    this.#isWriting = true;
    // An empty write marks a place in the queue; ssh2 would never call back for it after our EOF.
    if (write.chunk.length === 0) {
      this.#finish(write);
      return;
    }
    this.#queue.whenFree(() => {
      try {
        write.stream.write(write.chunk, (error) => this.#finish(write, error));
      } catch (error) {
        this.#finish(write, error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  #finish({ chunk, done }: Write, error?: Error | null): void {
    clearWaitingWrite(this.#channel);
    this.#isWriting = false;
    this.#bytes += chunk.length;
    if (this.#awaited !== undefined && this.#bytes >= this.#awaited.bytes) this.#awaited.resolve();
    done(error);
    this.#next();
  }
}
