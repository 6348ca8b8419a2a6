import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Connection, ServerChannel } from 'ssh2';
import type { StreamEndpoint } from '../kube/websocket.ts';
import type { Activity as InstanceActivity } from './activity.ts';
import type { AuditSink, Login } from './audit.ts';
import type { AuthorizedKey } from './authorized-key.ts';
import type { InstanceDirectory, InstanceView } from './directory.ts';

/** What every connection is served with. */
export interface Gateway {
  endpoint: StreamEndpoint;
  directory: InstanceDirectory;
  audit: AuditSink;
  activity: Pick<InstanceActivity, 'began'>;
  log: Logger;
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
  channels: Set<ServerChannel>;
  /** Being ended: nothing more is to be said. */
  isCut: boolean;
  /** Lines that the next session shows on stderr. */
  notices: string[];
}

// Beyond what an honest client can have sent into one channel's window (ssh2's lib/Channel.js: 2 MiB).
const MAX_UNREAD = 4 * 1024 * 1024;
// Twice that is under the second within which a deleted key must be of no use.
const FAREWELL_MS = 350;

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
    for (const channel of connection.channels) {
      if (channel.readableLength > MAX_UNREAD) {
        connection.gateway.log.warn({ connection: connection.id }, 'client ignores the channel window');
        connection.socket.destroy();
        return;
      }
    }
  });
}
