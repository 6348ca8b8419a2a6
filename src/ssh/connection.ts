import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Activity } from '../access/activity.ts';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import type { Clock } from '../lib/clock.ts';
import type { AuditSink, Login } from './audit.ts';
import type { BlockedPods } from '../direct/blocked-pods.ts';
import type { Dial } from '../direct/dial.ts';
import type { DirectWay } from './direct-way.ts';
import type { InstanceDirectory, InstanceView } from './directory.ts';
import type { AuthorizedKey } from './login/authorized-key.ts';
import type { CountLogin } from './ssh-metrics.ts';
import { isRekeying, unfinishedPacket } from './ssh2/private.ts';
import type { Connection } from './ssh2/protocol.ts';
import { type ByteTurns, PacedSource, type Turn } from '../lib/byte-turns.ts';
import type { FairBytes } from '../lib/shares.ts';
import type { SendQueue } from './ssh2/send-queue.ts';
import type { Windows } from './ssh2/windows.ts';
import type { TenantPlaces } from './tenant-places.ts';

export interface Gateway {
  endpoint: StreamEndpoint;
  /** Connects to the helpers of the direct way. */
  dial: Dial;
  blocked: BlockedPods;
  directory: InstanceDirectory;
  audit: AuditSink;
  activity: Pick<Activity, 'began'>;
  countLogin: CountLogin;
  log: Logger;
  /** For send queues of full length. */
  longQueues: FairBytes;
  /** For windows beyond the first one of each channel. */
  wideWindows: FairBytes;
  places: TenantPlaces;
  /** In which tenants pass bytes. */
  turns: ByteTurns;
  clock: Clock;
}

/** A session or forward on a connection, which must end with it. */
export interface OpenChannel {
  /**
   * Tells the user why, ends the remote side, and closes the channel. Must not throw. Resolves when that is
   * sent, which is never for a client that does not read.
   */
  cut(message: string): Promise<void>;
  /** Bytes that wait in this process for either side to read. */
  buffered(): number;
}

/** A client that has logged in. */
export interface LiveConnection {
  gateway: Gateway;
  id: string;
  client: Connection;
  socket: Socket;
  /** The terminal modes, value or command of the request that is being handled, as it came. */
  bytes: () => Buffer;
  login: Login;
  key: AuthorizedKey;
  /** Aborts when the connection is gone. */
  gone: AbortSignal;
  channels: Set<OpenChannel>;
  direct: DirectWay;
  windows: Windows;
  queue: SendQueue;
  /** What the bytes of its tenant wait for. */
  turn: Turn;
  /** The connection is being ended, with a line that says why. */
  isCut: boolean;
  notices: Notices;
  /** Bytes of the variables of its sessions. */
  variables: number;
}

/** Lines that the next session of a connection shows on stderr, each once, however often its cause comes. */
export class Notices {
  readonly #known = new Set<string>();
  #waiting: string[] = [];

  add(line: string): void {
    if (this.#known.has(line)) return;
    this.#known.add(line);
    this.#waiting.push(line);
  }

  take(): string[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }
}

// Twice that is under the second within which a deleted key must be of no use.
const LAST_WORDS_MS = 350;
// sshd's LoginGraceTime. Our part of a rekey may wait behind much that a slow client has not read yet.
const REKEY_GRACE_MS = 120_000;

/** The instance as it is now; undefined when it is gone, or when its name has gone to another instance. */
export function instanceOf(connection: LiveConnection): InstanceView | undefined {
  const { login, gateway } = connection;
  const view = gateway.directory.find({ instance: login.instance, namespace: login.namespace });
  return view?.uid === login.instanceUid ? view : undefined;
}

/** Ends every channel with a line for the user, then the connection, whether the client reads or not. */
export function cutConnection(connection: LiveConnection, message: string): void {
  if (connection.isCut) return;
  connection.isCut = true;
  // What is not read when the socket closes resets the connection, and the client may lose the line.
  connection.socket.resume();
  const cuts = [...connection.channels].map((channel) => channel.cut(message));
  const limit = new Promise((resolve) => setTimeout(resolve, LAST_WORDS_MS).unref());
  // OpenSSH's client prints what it has read and then leaves by itself. When the gateway disconnects first, it prints no
  // more.
  const left = new Promise((resolve) => connection.gone.addEventListener('abort', resolve));
  void Promise.race([Promise.all(cuts).then(() => left), limit]).then(() => connection.client.end());
  setTimeout(() => connection.socket.destroy(), 2 * LAST_WORDS_MS).unref();
}

/** Ends the connection when its key, instance or tenant no longer allows it. */
export function recheck(connection: LiveConnection): void {
  const instance = instanceOf(connection);
  const closed = connection.gateway.directory.closed(connection.login.namespace);
  if (instance === undefined) {
    cutConnection(connection, `Instance ${connection.login.instance} was deleted.`);
  } else if (closed !== undefined) {
    cutConnection(connection, `The gateway lets nobody in: ${closed}`);
  } else if (!connection.gateway.directory.opens(connection.key, instance)) {
    cutConnection(connection, `The key ${connection.key.fingerprint} no longer opens instance ${instance.name}.`);
  }
}

/** Ends a client that sends beyond the window it was given: ssh2 itself would keep all of it. */
export function guardWindow(connection: LiveConnection): void {
  connection.socket.on('data', () => {
    if (!connection.windows.overrun()) return;
    connection.gateway.log.warn({ connection: connection.id }, 'Client ignores the channel window');
    connection.socket.destroy();
  });
}

/** Reads from the client at the turn of its tenant. */
export function takeTurns(connection: LiveConnection): void {
  const { socket, turn } = connection;
  const source = new PacedSource(turn, (isWaiting) => {
    if (isWaiting && !connection.isCut) socket.pause();
    else socket.resume();
  });
  socket.on('data', (chunk: Buffer) => source.took(chunk.length));
}

/** Ends a client that begins a rekey and does not finish it. */
export function guardRekey({ client, socket, gone, gateway, id }: LiveConnection): void {
  let limit: NodeJS.Timeout | undefined;
  const finished = (): void => {
    clearTimeout(limit);
    limit = undefined;
  };
  socket.on('data', () => {
    if (limit !== undefined || !isRekeying(client)) return;
    limit = setTimeout(() => {
      gateway.log.warn({ connection: id }, 'Client does not finish a rekey');
      socket.destroy();
    }, REKEY_GRACE_MS).unref();
  });
  client.on('rekey', finished);
  gone.addEventListener('abort', finished);
}

function bufferedBy(connection: LiveConnection): number {
  let bytes = connection.queue.queued() + connection.variables + unfinishedPacket(connection.client);
  for (const channel of connection.channels) bytes += channel.buffered();
  return bytes;
}

/**
 * Cuts connections until at most `limit` bytes wait for all others together: each time the one for which most bytes wait
 * of the tenant for which most wait.
 */
export function freeMemory(connections: Iterable<LiveConnection>, limit: number): void {
  const holders = [...connections]
    .filter(({ isCut }) => !isCut)
    .map((connection) => ({ connection, bytes: bufferedBy(connection) }));
  let total = holders.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= limit) return;
  const sorted = holders.toSorted((a, b) => b.bytes - a.bytes);
  const tenants = [...Map.groupBy(sorted, ({ connection }) => connection.login.namespace).values()].map((held) => ({
    held,
    bytes: held.reduce((sum, { bytes }) => sum + bytes, 0),
  }));
  while (total > limit) {
    const largest = tenants.reduce((most, tenant) => (tenant.bytes > most.bytes ? tenant : most));
    const next = largest.held.shift();
    if (next === undefined) return;
    const { connection, bytes } = next;
    connection.gateway.log.warn({ connection: connection.id, bytes }, 'Connection cut to free memory');
    cutConnection(
      connection,
      `The gateway is short of memory, and namespace ${connection.login.namespace} holds most of it. Connect again.`,
    );
    largest.bytes -= bytes;
    total -= bytes;
  }
}
