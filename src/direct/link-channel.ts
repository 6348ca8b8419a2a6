import { Writable, type Readable } from 'node:stream';
import { channelWrites } from '../kube/streams/channel-writes.ts';
import type { ExecExit } from '../kube/streams/exec.ts';
import type { Portion } from '../lib/shares.ts';
import { CreditedOutput } from './credited-output.ts';
import { FROM_POD, FrameError, TO_POD } from './frames.ts';

/** What a channel is joined to: a program with its script on descriptor 3, a connection, or one to a port of the loopback. */
export type OpenRequest =
  | { argv: readonly string[]; script: string; terminal?: { columns: number; rows: number } | undefined }
  | { network: 'tcp' | 'unix'; address: string }
  | { port: number };

/** Bytes that wait in the pod for a program at most. The pod has the same number. */
const INPUT_WINDOW = 1024 * 1024;
const HIGH_WATER = 256 * 1024;

/** The helper could not start or reach what was asked for. The message is in its words. */
export class NotOpenedError extends Error {
  override name = 'NotOpenedError';
}

export type SendFrame = (type: number, parts: readonly Uint8Array[], done?: (error?: Error) => void) => void;

/** Frames without bytes of a program that a helper may send until it knows that a channel is over. */
const FRAMES_ON_THEIR_WAY = 64;

/** What a frame of a channel that is over costs: its bytes, and the work on it. */
export function strayCost(bytes: number): number {
  return bytes + 64;
}

function numbers(...values: [bytes: 1 | 2 | 4, value: number][]): Buffer {
  const parts = values.map(([bytes, value]) => {
    const part = Buffer.alloc(bytes);
    part.writeUIntBE(value, 0, bytes);
    return part;
  });
  return Buffer.concat(parts);
}

/** One program or connection in the pod. */
export class LinkChannel {
  readonly stdin: Writable;
  readonly #send: SendFrame;
  readonly #stdout: CreditedOutput;
  readonly #stderr: CreditedOutput;
  readonly #opened = Promise.withResolvers<number>();
  readonly #exit = Promise.withResolvers<ExecExit>();
  readonly #inputOver = Promise.withResolvers<void>();
  readonly #outputEnd = Promise.withResolvers<number>();
  #inputCredit = INPUT_WINDOW;
  /** Frames without bytes of a program that the pod may still send: one of each kind, and one for each input frame. */
  #mayTell = 5;
  /** Goes on with a write that waits for credit. */
  #resume: (() => void) | undefined;
  #isOver = false;

  /** `send` sends a frame of this channel. Wide windows come out of `portion`. */
  constructor(send: SendFrame, portion: Portion) {
    this.#send = send;
    this.#stdout = new CreditedOutput((bytes) => send(TO_POD.credit, [numbers([1, 1], [4, bytes])]), portion);
    this.#stderr = new CreditedOutput((bytes) => send(TO_POD.credit, [numbers([1, 2], [4, bytes])]), portion);
    this.stdin = new Writable({
      highWaterMark: HIGH_WATER,
      ...channelWrites(0, (_channel, parts, done) => this.#sendInput(parts, done)),
      final: (done) => send(TO_POD.end, [], () => done()),
    });
    this.stdin.on('error', () => undefined);
    this.#opened.promise.catch(() => undefined);
  }

  get stdout(): Readable {
    return this.#stdout.readable;
  }

  get stderr(): Readable {
    return this.#stderr.readable;
  }

  /** What may still come of a channel that is over, as {@link strayCost} counts it. */
  get strays(): number {
    return this.#stdout.allowed + this.#stderr.allowed + FRAMES_ON_THEIR_WAY * strayCost(0);
  }

  /** The pid of the program, as the pod counts; 0 for a connection. Rejects with {@link NotOpenedError}. */
  get opened(): Promise<number> {
    return this.#opened.promise;
  }

  /** Never rejects; resolves after the readers have the last byte of output. */
  get exit(): Promise<ExecExit> {
    return this.#exit.promise;
  }

  /** Resolves when nobody reads the input any more. */
  get inputOver(): Promise<void> {
    return this.#inputOver.promise;
  }

  /** Resolves with the length of a connection's output, once its other side has ended it. */
  get outputEnd(): Promise<number> {
    return this.#outputEnd.promise;
  }

  resize(columns: number, rows: number): void {
    if (!this.#isOver) this.#send(TO_POD.resize, [numbers([2, columns & 0xffff], [2, rows & 0xffff])]);
  }

  /** Sends a signal to the process group. */
  signal(number: number): void {
    if (!this.#isOver) this.#send(TO_POD.signal, [numbers([1, number])]);
  }

  /** Ends the program and its session (HUP, TERM, KILL), or the connection. The exit is `lost` unless it came before. */
  close(): void {
    if (this.#isOver) return;
    this.#send(TO_POD.close, []);
    this.end({ kind: 'lost', message: 'The stream was cancelled.' });
  }

  /** The channel is over: nothing more is sent or taken. */
  end(exit: ExecExit): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stdout.end();
    this.#stderr.end();
    this.stdin.destroy();
    this.#opened.reject(new NotOpenedError(exit.kind === 'exited' ? 'It has ended.' : exit.message));
    this.#inputOver.resolve();
    this.#exit.resolve(exit);
  }

  /** Takes a piece of output. Throws {@link FrameError} when it is more than was allowed. */
  output(type: number, bytes: Buffer): void {
    if (this.#isOver) return;
    const output = type === FROM_POD.stdout ? this.#stdout : this.#stderr;
    if (!output.push(bytes)) throw new FrameError('the pod sends more than it may');
  }

  /** Takes any other frame. Throws {@link FrameError}. */
  control(type: number, payload: Buffer): void {
    if (this.#isOver) return;
    this.#mayTell -= 1;
    if (this.#mayTell < 0) throw new FrameError('the pod sends frames without an end');
    if (type === FROM_POD.failed) {
      this.end({ kind: 'failed', message: payload.toString() });
    } else if (type === FROM_POD.outputEnd) {
      this.#outputEnd.resolve(this.#stdout.bytes);
    } else if (type === FROM_POD.deaf) {
      this.#inputOver.resolve();
    } else if (payload.length !== 4) {
      throw new FrameError('a frame of the pod has the wrong length');
    } else if (type === FROM_POD.opened) {
      this.#opened.resolve(payload.readUInt32BE(0));
    } else if (type === FROM_POD.inputCredit) {
      this.#allowInput(payload.readUInt32BE(0));
    } else if (type === FROM_POD.exit) {
      this.end({ kind: 'exited', code: payload.readUInt32BE(0) & 0xff });
    } else {
      throw new FrameError('the pod sends a frame of no known type');
    }
  }

  #allowInput(bytes: number): void {
    this.#inputCredit += bytes;
    if (this.#inputCredit > INPUT_WINDOW) throw new FrameError('the pod takes more than it was sent');
    const resume = this.#resume;
    this.#resume = undefined;
    resume?.();
  }

  #sendInput(parts: readonly Uint8Array[], done: (error?: Error) => void): void {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (this.#isOver) {
      done(new Error('The channel is over.'));
    } else if (length > this.#inputCredit) {
      this.#resume = () => this.#sendInput(parts, done);
    } else {
      this.#inputCredit -= length;
      this.#mayTell += 1;
      this.#send(TO_POD.input, parts, done);
    }
  }
}
