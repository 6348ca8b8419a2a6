import { pipeline } from 'node:stream/promises';
import type { Readable, Writable } from 'node:stream';
import type { ServerChannel } from 'ssh2';
import { forwardPort } from '../../kube/streams/port-forward.ts';
import { TOOLS_BIN } from '../../resources/pod/tools-volume.ts';
import { instanceOf, type LiveConnection } from '../connection.ts';
import type { PodTarget } from '../directory.ts';
import { laneOf } from '../ssh2/lane.ts';
import { startInPod, type PodProcess } from './pod-process.ts';
import { readUntil } from './read-until.ts';

/** Where a forwarded connection goes, as seen from the instance. */
export type ForwardTo = { kind: 'tcp'; host: string; port: number } | { kind: 'unix'; path: string };

const LINE_FEED = 10;
const MAX_LINE = 4096;
const CONNECT_TIMEOUT_MS = 15_000;
const LINGER_MS = 3_000;
const LOOPBACK = new Set(['localhost', '127.0.0.1', '::1']);
const PORT_MAX = 65_535;
const NEVER = new Promise<never>(() => undefined);

/** An open connection inside the instance. */
interface Remote {
  output: Readable;
  input: Writable;
  /** Resolves with the number of bytes after which the output has ended, or never when only the end itself tells. */
  outputLength: Promise<number>;
  /** Resolves when nobody reads the input any more. */
  inputOver: Promise<unknown>;
  drop(): void;
}

function argumentsOf(to: ForwardTo): string[] {
  return to.kind === 'tcp' ? ['tcp', to.host, String(to.port)] : ['unix', to.path];
}

async function announcedLength(process: PodProcess): Promise<number> {
  const signal = new AbortController().signal;
  const line = await readUntil(process.stderr, LINE_FEED, { limit: MAX_LINE, signal });
  process.stderr.resume();
  const count = /^eof (\d+)$/.exec(line?.toString() ?? '')?.[1];
  return count === undefined ? Number.POSITIVE_INFINITY : Number(count);
}

/** Through the relay of the tools volume: any host that the instance reaches, with half-close. */
async function throughRelay(
  connection: LiveConnection,
  target: PodTarget,
  to: ForwardTo,
  signal: AbortSignal,
): Promise<Remote | undefined> {
  const launch = {
    action: { kind: 'program' as const, argv: [`${TOOLS_BIN}/relay`, ...argumentsOf(to)] },
    terminal: undefined,
    env: new Map<string, string>(),
  };
  const process = await startInPod(connection.gateway.endpoint, target, launch, signal);
  const line = await readUntil(process.stdout, LINE_FEED, { limit: MAX_LINE, signal }).catch(() => undefined);
  if (line?.toString() !== 'ok') {
    process.close();
    return undefined;
  }
  return {
    output: process.stdout,
    input: process.stdin,
    outputLength: announcedLength(process),
    inputOver: process.programEnded,
    drop: () => {
      // Usually the end of input is enough and costs no call; a peer that never ends is hung up.
      process.stdin.end();
      process.stdout.resume();
      const timer = setTimeout(() => void process.hangUp(), LINGER_MS);
      void process.exit.then(() => clearTimeout(timer));
    },
  };
}

/** Through the kubelet: the pod's loopback only, for instances without tools. */
async function throughKubelet(
  connection: LiveConnection,
  target: PodTarget,
  port: number,
  signal: AbortSignal,
): Promise<Remote> {
  const stream = await forwardPort(connection.gateway.endpoint, { ...target, port }, signal);
  return {
    output: stream,
    input: stream,
    outputLength: NEVER,
    inputOver: NEVER,
    drop: () => stream.destroy(),
  };
}

async function connect(connection: LiveConnection, to: ForwardTo, signal: AbortSignal): Promise<Remote | undefined> {
  const target = instanceOf(connection)?.target;
  if (target === undefined) return undefined;
  if (target.tools) return await throughRelay(connection, target, to, signal);
  if (to.kind === 'tcp' && LOOPBACK.has(to.host)) return await throughKubelet(connection, target, to.port, signal);
  connection.notices.add('Only ports of the instance itself can be forwarded: the instance carries no tools.');
  return undefined;
}

async function join(connection: LiveConnection, channel: ServerChannel, remote: Remote): Promise<void> {
  const lane = laneOf(channel, connection.outlet);
  const ended = new AbortController();
  const began = connection.gateway.now();
  const inlet = connection.windows.follow(channel);
  const end = (): void => ended.abort();
  connection.gone.addEventListener('abort', end, { signal: ended.signal });
  const activity = {
    cut: (): Promise<void> => {
      end();
      return Promise.resolve();
    },
    held: () => channel.readableLength + lane.waiting + remote.input.writableLength + remote.output.readableLength,
  };
  connection.activities.add(activity);
  channel.once('close', end);
  channel.once('error', end);
  channel.on('data', (chunk: Buffer) => inlet.took(chunk.length));
  channel.pipe(remote.input);
  void remote.inputOver.then(() => {
    channel.unpipe();
    channel.resume();
    return remote.input.end();
  });
  // Ends our half of the channel when the output has, and leaves the other half open.
  void remote.outputLength.then((length) => lane.sent(length)).then(() => channel.eof());
  await pipeline(remote.output, lane.stdout, { end: false, signal: ended.signal }).catch(() => undefined);
  if (!ended.signal.aborted) {
    // What waits for the window of a channel that closes is never sent.
    const left = Promise.withResolvers<unknown>();
    ended.signal.addEventListener('abort', left.resolve);
    lane.stdout.write(Buffer.alloc(0), left.resolve);
    await left.promise;
    channel.eof();
  }
  remote.drop();
  channel.unpipe();
  channel.resume();
  channel.end();
  connection.activities.delete(activity);
  inlet.end();
  connection.gateway.audit({
    event: 'session',
    login: connection.login,
    connection: connection.id,
    kind: 'forward',
    bytesIn: inlet.bytes,
    bytesOut: lane.bytes,
    durationMs: connection.gateway.now() - began,
    status: undefined,
  });
}

/** Serves a direct-tcpip or direct-streamlocal channel (-L, -D, -W). The channel opens only when the target has. */
export async function serveForward(
  connection: LiveConnection,
  to: ForwardTo,
  answer: { accept: () => ServerChannel; reject: () => void },
): Promise<void> {
  if (to.kind === 'tcp' && (to.port < 1 || to.port > PORT_MAX)) {
    answer.reject();
    return;
  }
  // For connecting only: once connected the signal must not fire any more.
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), CONNECT_TIMEOUT_MS);
  let remote: Remote | undefined;
  try {
    remote = await connect(connection, to, AbortSignal.any([connection.gone, limit.signal]));
  } catch (error) {
    connection.gateway.log.info({ connection: connection.id, err: error }, 'forward not opened');
  } finally {
    clearTimeout(timer);
  }
  const channel = remote === undefined ? undefined : answer.accept();
  if (remote === undefined || channel === undefined) {
    remote?.drop();
    answer.reject();
    return;
  }
  await join(connection, channel, remote);
}
