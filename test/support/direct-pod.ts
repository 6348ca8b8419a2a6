import { Duplex, PassThrough } from 'node:stream';
import type { Wire } from '../../src/direct/dial.ts';
import { headerOf } from '../../src/direct/frames.ts';

/** One frame that the gateway sent. */
export interface Received {
  type: number;
  channel: number;
  payload: Buffer;
}

/** The pod's end of a link, in memory: keeps what the gateway sends, and sends what a test wants. */
export class DirectPod {
  /** What the gateway gets for a connection. */
  readonly wire: Wire;
  readonly socket: Duplex;
  readonly frames: Received[] = [];
  readonly #toGateway = new PassThrough({ highWaterMark: 64 * 1024 * 1024 });
  #bytes = Buffer.alloc(0);
  /** Bytes that come before the first frame. */
  #before: number;

  /** @param tokenBytes how many bytes the gateway sends before its first frame */
  constructor(tokenBytes = 0) {
    this.#before = tokenBytes;
    const fromGateway = new PassThrough();
    fromGateway.on('data', (chunk: Buffer) => this.#read(chunk));
    const ends: unknown = { readable: this.#toGateway, writable: fromGateway };
    const socket = Duplex.from(ends as AsyncIterable<Buffer>);
    this.socket = socket;
    this.wire = { socket, onBytes: (listener) => void socket.on('data', listener) };
  }

  send(type: number, channel: number, payload: Uint8Array = Buffer.alloc(0)): void {
    this.#toGateway.write(Buffer.concat([headerOf(type, channel, payload.length), payload]));
  }

  /** Sends a frame whose payload is one number of four bytes. */
  sendNumber(type: number, channel: number, value: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(value);
    this.send(type, channel, payload);
  }

  raw(bytes: Uint8Array): void {
    this.#toGateway.write(bytes);
  }

  hangUp(): void {
    this.#toGateway.end();
  }

  /** Frames of one type. */
  of(type: number): Received[] {
    return this.frames.filter((frame) => frame.type === type);
  }

  #read(chunk: Buffer): void {
    const skipped = Math.min(this.#before, chunk.length);
    this.#before -= skipped;
    this.#bytes = Buffer.concat([this.#bytes, chunk.subarray(skipped)]);
    while (this.#bytes.length >= 8) {
      const length = this.#bytes.readUIntBE(1, 3);
      if (this.#bytes.length < 8 + length) return;
      const payload = this.#bytes.subarray(8, 8 + length);
      this.frames.push({ type: this.#bytes[0] ?? 0, channel: this.#bytes.readUInt32BE(4), payload });
      this.#bytes = this.#bytes.subarray(8 + length);
    }
  }
}
