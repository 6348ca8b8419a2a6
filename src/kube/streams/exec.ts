import { Readable, Writable } from 'node:stream';
import { NO_TURN, PacedSource, type Turn } from '../../lib/byte-turns.ts';
import { channelWrites } from './channel-writes.ts';
import { type ChannelSocket, openChannelSocket, StreamRefusedError, type StreamEndpoint } from './websocket.ts';

// staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go
const V5 = 'v5.channel.k8s.io';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const RESIZE = 4;
const CLOSE = 255;
const MAX_STATUS = 64 * 1024;
// When this many bytes of one output channel wait in this process, the socket pauses.
const HIGH_WATER = 256 * 1024;

export interface ExecTarget {
  namespace: string;
  pod: string;
  container: string;
}

export interface ExecOptions {
  command: readonly string[];
  tty: boolean;
  /** Cuts the handshake or the stream. The remote process goes on. */
  signal?: AbortSignal | undefined;
  /** What output waits for. */
  turn?: Turn | undefined;
}

/** How a remote process ended. `lost`: the stream died before the status came, so the end is unknown. */
export type ExecExit =
  | { kind: 'exited'; code: number }
  | { kind: 'failed'; message: string }
  | { kind: 'lost'; message: string };

export interface ExecStream {
  /** Ending it closes the remote stdin and nothing else. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** Empty with a tty: the terminal carries both. */
  readonly stderr: Readable;
  /** Never rejects; resolves after the readers have the last byte of output. */
  readonly exit: Promise<ExecExit>;
  /** No effect without a tty. */
  resize(columns: number, rows: number): void;
  /** Drops the stream. Without a status so far, the exit is `lost`. */
  close(): void;
}

/** Reads the metav1.Status of channel 3. */
export function exitOfStatus(text: string): ExecExit {
  let status: {
    status?: string;
    reason?: string;
    message?: string;
    details?: { causes?: { reason?: string; message?: string }[] };
  };
  try {
    status = JSON.parse(text);
  } catch {
    return { kind: 'failed', message: 'The kubelet sent a status that is not JSON.' };
  }
  if (status.status === 'Success') return { kind: 'exited', code: 0 };
  if (status.reason === 'NonZeroExitCode') {
    const cause = status.details?.causes?.find(({ reason }) => reason === 'ExitCode');
    const code = Number(cause?.message);
    if (Number.isInteger(code) && code > 0) return { kind: 'exited', code };
  }
  return { kind: 'failed', message: status.message ?? 'The kubelet reported a failure without a message.' };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The path and query of one exec call. */
export function execPath(target: ExecTarget, options: Pick<ExecOptions, 'command' | 'tty'>): string {
  const query = new URLSearchParams({ container: target.container, stdin: 'true', stdout: 'true' });
  // The API server refuses stderr together with a tty.
  query.set('stderr', String(!options.tty));
  query.set('tty', String(options.tty));
  for (const argument of options.command) query.append('command', argument);
  const pod = `/api/v1/namespaces/${encodeURIComponent(target.namespace)}/pods/${encodeURIComponent(target.pod)}`;
  return `${pod}/exec?${query.toString()}`;
}

/** A Readable that says when the socket that feeds it must pause. */
class Output {
  readonly readable: Readable;
  readonly #onChange: () => void;
  #isFull = false;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    this.readable = new Readable({ highWaterMark: HIGH_WATER, read: () => this.#onRead() });
    this.readable.on('error', () => undefined);
    this.readable.on('close', onChange);
  }

  get isFull(): boolean {
    return this.#isFull && !this.readable.destroyed;
  }

  push(bytes: Buffer): void {
    if (bytes.length === 0 || this.readable.destroyed || this.readable.push(bytes)) return;
    this.#isFull = true;
    this.#onChange();
  }

  end(): void {
    if (!this.readable.destroyed) this.readable.push(null);
  }

  #onRead(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#onChange();
  }
}

function stdinOf(send: ChannelSocket['send']): Writable {
  return new Writable({
    highWaterMark: HIGH_WATER,
    ...channelWrites(STDIN, send),
    // v5's half-close: channel 255 names the channel that ends (KEP-4006).
    final: (done) => send(CLOSE, [Uint8Array.of(STDIN)], () => done()),
  });
}

/** The local ends of one exec: what the remote process reads and writes, and how it ended. */
class ExecSession {
  readonly stdout = new Output(() => this.#steer());
  readonly stderr = new Output(() => this.#steer());
  readonly stdin = stdinOf((channel, parts, done) => this.#socket?.send(channel, parts, done));
  readonly exit = Promise.withResolvers<ExecExit>();
  readonly #source: PacedSource;
  #socket: ChannelSocket | undefined;
  #status = '';

  constructor(turn: Turn) {
    this.#source = new PacedSource(turn, () => this.#steer());
    this.stdin.on('error', () => undefined);
  }

  async open(endpoint: StreamEndpoint, path: string, signal: AbortSignal | undefined): Promise<void> {
    this.#socket = await openChannelSocket(endpoint, path, [V5], {
      signal,
      events: {
        data: (channel, bytes) => this.#onFrame(channel, bytes),
        closed: (reason) => this.#finish({ kind: 'lost', message: reason }),
      },
    });
    if (this.#socket.protocol === V5) return;
    this.#socket.close();
    throw new StreamRefusedError('The API server does not speak v5.channel.k8s.io (Kubernetes 1.30 or newer).', 0);
  }

  resize(columns: number, rows: number): void {
    const size = Buffer.from(JSON.stringify({ Width: columns, Height: rows }));
    this.#socket?.send(RESIZE, [size], () => undefined);
  }

  close(): void {
    this.stdout.readable.destroy();
    this.stderr.readable.destroy();
    this.#finish({ kind: 'lost', message: 'The stream was cancelled.' });
  }

  #steer(): void {
    if (this.stdout.isFull || this.stderr.isFull || this.#source.isWaiting) this.#socket?.pause();
    else this.#socket?.resume();
  }

  #onFrame(channel: number, bytes: Buffer): void {
    if (channel === STDOUT) this.stdout.push(bytes);
    else if (channel === STDERR) this.stderr.push(bytes);
    else if (channel === STATUS) this.#onStatus(bytes.toString());
    this.#source.took(bytes.length);
  }

  #onStatus(text: string): void {
    this.#status += text;
    if (this.#status.length > MAX_STATUS)
      this.#finish({ kind: 'failed', message: 'The kubelet sent an oversized status.' });
    else if (isJson(this.#status)) this.#finish(exitOfStatus(this.#status));
  }

  #finish(result: ExecExit): void {
    this.stdout.end();
    this.stderr.end();
    this.stdin.destroy();
    this.exit.resolve(result);
    // The status is the last thing the server sends; waiting for its closing handshake would only delay the exit.
    this.#socket?.close();
  }
}

/** Runs a command. A full reader pauses the socket, so bytes never pile up. Rejects with StreamRefusedError. */
export async function execInPod(
  endpoint: StreamEndpoint,
  target: ExecTarget,
  options: ExecOptions,
): Promise<ExecStream> {
  const session = new ExecSession(options.turn ?? NO_TURN);
  await session.open(endpoint, execPath(target, options), options.signal);
  const close = (): void => session.close();
  options.signal?.addEventListener('abort', close, { once: true });
  void session.exit.promise.then(() => options.signal?.removeEventListener('abort', close));
  return {
    stdin: session.stdin,
    stdout: session.stdout.readable,
    stderr: session.stderr.readable,
    exit: session.exit.promise,
    resize: (columns, rows) => {
      if (options.tty) session.resize(columns, rows);
    },
    close,
  };
}
