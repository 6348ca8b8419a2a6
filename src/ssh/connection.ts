import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Connection } from 'ssh2';
import type { StreamEndpoint } from '../kube/streams/websocket.ts';
import type { Activity as InstanceActivity } from '../access/activity.ts';
import type { AuditSink, Login } from './audit.ts';
import type { AuthorizedKey } from './login/authorized-key.ts';
import type { InstanceDirectory, InstanceView } from './directory.ts';
import type { Backlog, Outlet } from './ssh2/outlet.ts';
import { isRekeying } from './ssh2/wire.ts';
import type { Windows } from './ssh2/windows.ts';

/** What every connection is served with. */
export interface Gateway {
  endpoint: StreamEndpoint;
  directory: InstanceDirectory;
  audit: AuditSink;
  activity: Pick<InstanceActivity, 'began'>;
  log: Logger;
  backlog: Backlog;
  /** Wall time, milliseconds. */
  now(): number;
}

/** Something on a connection that must end with it. */
export interface Activity {
  /**
   * Tells the user why, ends the remote side, and gives the channel up. Must not throw. Resolves when the user was told,
   * which a client that does not read prevents.
   */
  cut(message: string): Promise<void>;
  /** Bytes that wait in this process for either side to read. */
  held(): number;
}

/** A client that has logged in. */
export interface LiveConnection {
  gateway: Gateway;
  id: string;
  client: Connection;
  socket: Socket;
  login: Login;
  key: AuthorizedKey;
  /** Aborts when the connection is gone. */
  gone: AbortSignal;
  activities: Set<Activity>;
  windows: Windows;
  outlet: Outlet;
  /** Being ended: nothing more is to be said. */
  isCut: boolean;
  /** Lines that the next session shows on stderr, each once however often its cause comes. */
  notices: Set<string>;
}

// Twice that is under the second within which a deleted key must be of no use.
const FAREWELL_MS = 350;
// sshd's LoginGraceTime. Our part of a rekey may wait behind much that a slow client has not read yet.
const REKEY_GRACE_MS = 120_000;

/** The instance as it is now; undefined when it is gone or another of the same name. */
export function instanceOf(connection: LiveConnection): InstanceView | undefined {
  const { login, gateway } = connection;
  const view = gateway.directory.find({ instance: login.instance, namespace: login.namespace });
  return view?.uid === login.instanceUid ? view : undefined;
}

/** Ends every activity with a line for the user, then the connection, whether the client reads or not. */
export function cutConnection(connection: LiveConnection, message: string): void {
  if (connection.isCut) return;
  connection.isCut = true;
  const told = [...connection.activities].map((activity) => activity.cut(message));
  const limit = new Promise((resolve) => setTimeout(resolve, FAREWELL_MS).unref());
  void Promise.race([Promise.all(told), limit]).then(() => connection.client.end());
  setTimeout(() => connection.socket.destroy(), 2 * FAREWELL_MS).unref();
}

/** Ends the connection when its key or instance no longer allows it. */
export function recheck(connection: LiveConnection): void {
  const instance = instanceOf(connection);
  if (instance === undefined) {
    cutConnection(connection, `Instance ${connection.login.instance} was deleted.`);
  } else if (!connection.gateway.directory.opens(connection.key, instance)) {
    cutConnection(connection, `The key ${connection.key.fingerprint} no longer opens instance ${instance.name}.`);
  }
}

/** Ends a client that sends beyond the window it was given: ssh2 itself would keep all of it. */
export function guardWindow(connection: LiveConnection): void {
  connection.socket.on('data', () => {
    if (!connection.windows.overrun()) return;
    connection.gateway.log.warn({ connection: connection.id }, 'client ignores the channel window');
    connection.socket.destroy();
  });
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
      gateway.log.warn({ connection: id }, 'client does not finish a rekey');
      socket.destroy();
    }, REKEY_GRACE_MS).unref();
  });
  client.on('rekey', finished);
  gone.addEventListener('abort', finished);
}

function heldBy(connection: LiveConnection): number {
  let bytes = connection.outlet.queued();
  for (const activity of connection.activities) bytes += activity.held();
  return bytes;
}

/** Cuts the connections for which most bytes wait, until at most `limit` bytes wait for the others together. */
export function relieve(connections: Iterable<LiveConnection>, limit: number): void {
  const holders = [...connections]
    .filter(({ isCut }) => !isCut)
    .map((connection) => ({ connection, bytes: heldBy(connection) }));
  let total = holders.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= limit) return;
  for (const { connection, bytes } of holders.toSorted((a, b) => b.bytes - a.bytes)) {
    if (total <= limit) return;
    connection.gateway.log.warn({ connection: connection.id, bytes }, 'connection cut for memory');
    cutConnection(connection, 'The gateway is short of memory, and most of it waits for this connection to be read.');
    total -= bytes;
  }
}
