import { pipeline } from 'node:stream/promises';
import type { Readable, Writable } from 'node:stream';
import type { PodTarget } from '../../access/pod-target.ts';
import type { Way } from '../audit.ts';
import { forwardPort } from '../../kube/streams/port-forward.ts';
import { TOOLS_BIN } from '../../resources/pod/tools-volume.ts';
import { instanceOf, type LiveConnection } from '../connection.ts';
import type { DirectLink } from '../../direct/direct-link.ts';
import type { ChannelOutput } from '../ssh2/channel-output.ts';
import { CONNECT_FAILED, refuseChannel } from '../ssh2/private.ts';
import type { ServerChannel } from '../ssh2/protocol.ts';
import type { Window } from '../ssh2/windows.ts';
import { startInPod, type PodProcess } from './pod-process.ts';
import { readUntil } from '../../kube/streams/read-until.ts';
import { serveChannel } from './serve-channel.ts';

/** Where a forwarded connection goes, as seen from the instance. */
export type ForwardTarget = { kind: 'tcp'; host: string; port: number } | { kind: 'unix'; path: string };

const LINE_FEED = 10;
const MAX_LINE = 4096;
const CONNECT_TIMEOUT_MS = 15_000;
const LINGER_MS = 3_000;
const LOOPBACK = new Set(['localhost', '127.0.0.1', '::1']);
const PORT_MAX = 65_535;
const MAX_REASON = 300;

/** A forward is not opened. The message tells the user why. */
class RefusedForwardError extends Error {
  override name = 'RefusedForwardError';
}

/** For messages and the log: a client may send 32 KiB. */
function placeOf(to: ForwardTarget): string {
  return (to.kind === 'tcp' ? `${to.host}:${to.port}` : to.path).slice(0, MAX_REASON);
}

/** As Go's net.Dial takes it. */
function joinAddress(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** An open connection inside the instance. */
interface Remote {
  way: Way;
  output: Readable;
  input: Writable;
  /** Resolves with the length of the output in bytes; never, when only the end of its stream tells. */
  outputLength: Promise<number>;
  /** Resolves when nobody reads the input any more. */
  inputOver: Promise<unknown>;
  drop(): void;
}

async function announcedLength(process: PodProcess): Promise<number> {
  const signal = new AbortController().signal;
  const line = await readUntil(process.stderr, LINE_FEED, { limit: MAX_LINE, signal });
  process.stderr.resume();
  const count = /^eof (\d+)$/.exec(line?.toString() ?? '')?.[1];
  return count === undefined ? Number.POSITIVE_INFINITY : Number(count);
}

function cannotBeReached(to: ForwardTarget, reason: string): RefusedForwardError {
  return new RefusedForwardError(`${placeOf(to)} cannot be reached from the instance: ${reason}`);
}

/** Connects by the direct way: to any host that the instance reaches, with half-close. */
async function throughLink(link: DirectLink, to: ForwardTarget, signal: AbortSignal): Promise<Remote> {
  const address = to.kind === 'tcp' ? joinAddress(to.host, to.port) : to.path;
  const channel = link.open({ network: to.kind, address });
  const close = (): void => channel.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    await channel.opened;
  } catch (error) {
    throw cannotBeReached(to, error instanceof Error ? error.message : 'unknown');
  } finally {
    signal.removeEventListener('abort', close);
  }
  return {
    way: 'direct',
    output: channel.stdout,
    input: channel.stdin,
    outputLength: channel.outputEnd,
    inputOver: channel.inputOver,
    drop: () => {
      channel.stdin.end();
      channel.stdout.resume();
      const timer = setTimeout(close, LINGER_MS);
      void channel.exit.then(() => clearTimeout(timer));
    },
  };
}

/** Connects through the relay of the tools volume: to any host that the instance reaches, with half-close. */
async function throughRelay(
  connection: LiveConnection,
  target: PodTarget,
  to: ForwardTarget,
  signal: AbortSignal,
): Promise<Remote> {
  const address = to.kind === 'tcp' ? ['tcp', to.host, String(to.port)] : ['unix', to.path];
  const action = { kind: 'program', argv: [`${TOOLS_BIN}/relay`, ...address] } as const;
  const process = await startInPod(connection.gateway.endpoint, target, { action }, { signal, turn: connection.turn });
  const line = await readUntil(process.stdout, LINE_FEED, { limit: MAX_LINE, signal }).catch(() => undefined);
  if (line?.toString() !== 'ok') {
    process.close();
    const said = /^error: (.*)$/.exec(line?.toString() ?? '')?.[1];
    throw cannotBeReached(to, said ?? 'no answer');
  }
  return {
    way: 'exec',
    output: process.stdout,
    input: process.stdin,
    outputLength: announcedLength(process),
    inputOver: process.programEnded,
    drop: () => {
      // The end of input is usually enough, and costs no call. A peer that does not end then is hung up on.
      process.stdin.end();
      process.stdout.resume();
      const timer = setTimeout(() => void process.hangUp(), LINGER_MS);
      void process.exit.then(() => clearTimeout(timer));
    },
  };
}

/** Connects through the kubelet, for instances without tools: to the pod's loopback only. */
async function throughKubelet(
  connection: LiveConnection,
  target: PodTarget,
  port: number,
  signal: AbortSignal,
): Promise<Remote> {
  const stream = await forwardPort(connection.gateway.endpoint, { ...target, port }, signal, connection.turn);
  const never = new Promise<never>(() => undefined);
  const ends = { outputLength: never, inputOver: never, drop: (): void => void stream.destroy() };
  return { way: 'exec', output: stream, input: stream, ...ends };
}

/** Rejects with an error whose message is for the user. */
async function connect(connection: LiveConnection, to: ForwardTarget, signal: AbortSignal): Promise<Remote> {
  if (to.kind === 'tcp' && (to.port < 1 || to.port > PORT_MAX)) {
    throw new RefusedForwardError(`${to.port} is not the number of a port`);
  }
  const instance = instanceOf(connection);
  if (instance === undefined) throw new RefusedForwardError(`instance ${connection.login.instance} is gone`);
  const { target } = instance;
  if (target === undefined) throw new RefusedForwardError(`instance ${instance.name} is ${instance.condition}`);
  const link = await connection.direct.to(target);
  if (link !== undefined) return await throughLink(link, to, signal);
  if (target.tools) return await throughRelay(connection, target, to, signal);
  if (to.kind === 'tcp' && LOOPBACK.has(to.host)) return await throughKubelet(connection, target, to.port, signal);
  const reason = 'only ports of the instance itself can be forwarded: the instance carries no tools.';
  connection.notices.add(reason);
  throw new RefusedForwardError(reason);
}

function reasonOf(error: unknown, to: ForwardTarget, isLate: boolean): string {
  if (isLate) return `${placeOf(to)} did not answer within ${CONNECT_TIMEOUT_MS / 1000} seconds`;
  const reason = error instanceof Error ? error.message : 'unknown';
  return error instanceof RefusedForwardError ? reason : `the instance cannot be reached: ${reason}`;
}

/** Passes on what the client sends, until it ends or nobody in the instance reads it any more. */
function passInput(channel: ServerChannel, remote: Remote, window: Window): void {
  channel.on('data', (chunk: Buffer) => window.took(chunk.length));
  channel.pipe(remote.input);
  void remote.inputOver.then(() => {
    channel.unpipe();
    channel.resume();
    return remote.input.end();
  });
}

/** Passes on what the instance sends, until it ends or `ended` aborts. Then ends our half of the channel. */
async function passOutput(
  channel: ServerChannel,
  remote: Remote,
  output: ChannelOutput,
  ended: AbortSignal,
): Promise<void> {
  // The output may have ended although its stream has not. The other half of the channel stays open.
  void remote.outputLength.then((length) => output.sent(length)).then(() => channel.eof());
  await pipeline(remote.output, output.stdout, { end: false, signal: ended }).catch(() => undefined);
  if (ended.aborted) return;
  // A channel that closes never sends what waits for its window.
  const left = Promise.withResolvers<unknown>();
  ended.addEventListener('abort', left.resolve);
  output.stdout.write(Buffer.alloc(0), left.resolve);
  await left.promise;
  channel.eof();
}

function join(connection: LiveConnection, channel: ServerChannel, remote: Remote): Promise<void> {
  const ended = new AbortController();
  const end = (): void => ended.abort();
  connection.gone.addEventListener('abort', end, { signal: ended.signal });
  channel.once('close', end);
  channel.once('error', end);
  return serveChannel(connection, channel, {
    kind: 'forward',
    open: (output) => ({
      cut: () => Promise.resolve(end()),
      buffered: () =>
        channel.readableLength + output.buffered + remote.input.writableLength + remote.output.readableLength,
    }),
    serve: async (output, window) => {
      passInput(channel, remote, window);
      await passOutput(channel, remote, output, ended.signal);
      remote.drop();
      return { status: undefined, way: remote.way };
    },
  });
}

/** Serves a direct-tcpip or direct-streamlocal channel (-L, -D, -W), which opens once the target is connected. */
export async function serveForward(
  connection: LiveConnection,
  to: ForwardTarget,
  answer: { accept: () => ServerChannel; reject: () => void },
): Promise<void> {
  // Not AbortSignal.timeout: it would also end the connection that was made in time.
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(), CONNECT_TIMEOUT_MS);
  const refuse = (reason: string): void => {
    // A program in the instance may have written a part of it.
    const text = `berth: ${reason.slice(0, MAX_REASON)}`.replaceAll(/[^ -~]/g, '?');
    refuseChannel(connection.client, answer.reject, CONNECT_FAILED, text);
  };
  let remote: Remote;
  try {
    remote = await connect(connection, to, AbortSignal.any([connection.gone, limit.signal]));
  } catch (error) {
    connection.gateway.log.info({ connection: connection.id, err: error }, 'Forward was not opened');
    if (!connection.gone.aborted) refuse(reasonOf(error, to, limit.signal.aborted));
    return;
  } finally {
    clearTimeout(timer);
  }
  const channel = answer.accept();
  // A client that is gone.
  if (channel === undefined) remote.drop();
  else await join(connection, channel, remote);
}
