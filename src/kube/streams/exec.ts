import { Readable, Writable } from 'node:stream';
import { channelWrites } from './channel-writes.ts';
import { openChannelSocket, StreamRefusedError, type ChannelSocket, type StreamEndpoint } from './websocket.ts';

// staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go
const V5 = 'v5.channel.k8s.io';
const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;
const RESIZE = 4;
const CLOSE = 255;
const MAX_STATUS = 64 * 1024;
// Bytes that wait in this process per output channel before the socket is paused.
const HIGH_WATER = 256 * 1024;

export interface ExecTarget {
  namespace: string;
  pod: string;
  container: string;
}

export interface ExecOptions {
  command: readonly string[];
  tty: boolean;
  /** Refuses the handshake or cuts the stream; the remote process is not ended by it. */
  signal?: AbortSignal | undefined;
}

/** How a remote process ended. `lost` = the stream died before a status came, so nothing is known. */
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
  /** Never rejects; settles after the last byte of output was handed to the readers. */
  readonly exit: Promise<ExecExit>;
  /** No effect without a tty. */
  resize(columns: number, rows: number): void;
  /** Drops the stream; the exit becomes `lost` when no status had come. */
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

interface Output {
  readable: Readable;
  push(bytes: Buffer): void;
  end(): void;
  readonly full: boolean;
}

/** A Readable fed from a socket that it can ask to pause. */
function output(onChange: () => void): Output {
  let full = false;
  const readable = new Readable({
    highWaterMark: HIGH_WATER,
    read: () => {
      if (!full) return;
      full = false;
      onChange();
    },
  });
  readable.on('error', () => undefined);
  readable.on('close', onChange);
  return {
    readable,
    push: (bytes) => {
      if (bytes.length === 0 || readable.destroyed || readable.push(bytes)) return;
      full = true;
      onChange();
    },
    end: () => {
      if (!readable.destroyed) readable.push(null);
    },
    get full() {
      return full && !readable.destroyed;
    },
  };
}

function stdinOf(send: ChannelSocket['send']): Writable {
  return new Writable({
    highWaterMark: HIGH_WATER,
    ...channelWrites(STDIN, send),
    // v5's half-close: channel 255 names the channel that ends (KEP-4006).
    final: (done) => send(CLOSE, [Uint8Array.of(STDIN)], () => done()),
  });
}

/**
 * Runs a command in a container over the v5 WebSocket protocol. Bytes never pile up here: a full reader pauses the
 * socket, and a stdin write completes when the kernel took it. Rejects with {@link StreamRefusedError}.
 */
export async function execInPod(
  endpoint: StreamEndpoint,
  target: ExecTarget,
  options: ExecOptions,
): Promise<ExecStream> {
  const exit = Promise.withResolvers<ExecExit>();
  let status = '';
  let socket: ChannelSocket | undefined;
  const steer = (): void => {
    if (stdout.full || stderr.full) socket?.pause();
    else socket?.resume();
  };
  const stdout = output(steer);
  const stderr = output(steer);
  const stdin = stdinOf((channel, parts, done) => socket?.send(channel, parts, done));
  stdin.on('error', () => undefined);
  const finish = (result: ExecExit): void => {
    stdout.end();
    stderr.end();
    stdin.destroy();
    exit.resolve(result);
    // The status is the last thing the server sends; waiting for its closing handshake would only delay the exit.
    socket?.close();
  };
  const onStatus = (text: string): void => {
    status += text;
    if (status.length > MAX_STATUS) finish({ kind: 'failed', message: 'The kubelet sent an oversized status.' });
    else if (isJson(status)) finish(exitOfStatus(status));
  };
  socket = await openChannelSocket(endpoint, execPath(target, options), [V5], {
    signal: options.signal,
    events: {
      data: (channel, bytes) => {
        if (channel === STDOUT) stdout.push(bytes);
        else if (channel === STDERR) stderr.push(bytes);
        else if (channel === STATUS) onStatus(bytes.toString());
      },
      closed: (reason) => finish({ kind: 'lost', message: reason }),
    },
  });
  const connected = socket;
  if (connected.protocol !== V5) {
    connected.close();
    throw new StreamRefusedError('The API server does not speak v5.channel.k8s.io (Kubernetes 1.30 or newer).', 0);
  }
  const close = (): void => {
    stdout.readable.destroy();
    stderr.readable.destroy();
    finish({ kind: 'lost', message: 'The stream was cancelled.' });
  };
  options.signal?.addEventListener('abort', close, { once: true });
  void exit.promise.then(() => options.signal?.removeEventListener('abort', close));
  return {
    stdin,
    stdout: stdout.readable,
    stderr: stderr.readable,
    exit: exit.promise,
    resize: (columns, rows) => {
      const size = Buffer.from(JSON.stringify({ Width: columns, Height: rows }));
      if (options.tty) connected.send(RESIZE, [size], () => undefined);
    },
    close,
  };
}
