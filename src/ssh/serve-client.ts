import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import type { Connection } from 'ssh2';
import { authenticate, type Authenticated } from './login/authentication.ts';
import { guardRekey, guardWindow, type Gateway, type LiveConnection } from './connection.ts';
import { serveForward } from './session/forward.ts';
import { outletOf } from './ssh2/outlet.ts';
import { serveSession } from './session/session.ts';
import { closeUnstarted, refuseTinyPackets } from './ssh2/wire.ts';
import { shareWindows } from './ssh2/windows.ts';

const MAX_CHANNELS = 128;

export interface ClientEvents {
  /** A key was offered. */
  tried(): void;
  opened(connection: LiveConnection): void;
  closed(connection: LiveConnection): void;
}

function serveChannels(live: LiveConnection): void {
  const { client, gateway } = live;
  refuseTinyPackets(client);
  let open = 0;
  const admit = (): boolean => open < MAX_CHANNELS;
  client.on('session', (accept, reject) => {
    if (!admit()) {
      reject();
      return;
    }
    const session = accept();
    open += 1;
    session.once('close', () => {
      open -= 1;
      closeUnstarted(client, session);
    });
    serveSession(live, session);
  });
  const forward = (to: Parameters<typeof serveForward>[1], answer: Parameters<typeof serveForward>[2]): void => {
    if (!admit()) {
      answer.reject();
      return;
    }
    open += 1;
    serveForward(live, to, answer)
      .catch((error: unknown) => gateway.log.error({ connection: live.id, err: error }, 'forward failed'))
      .finally(() => {
        open -= 1;
      });
  };
  client.on('tcpip', (accept, reject, { destIP, destPort }) =>
    forward({ kind: 'tcp', host: destIP, port: destPort }, { accept, reject }),
  );
  client.on('openssh.streamlocal', (accept, reject, { socketPath }) =>
    forward({ kind: 'unix', path: socketPath }, { accept, reject }),
  );
  client.on('request', (_accept, reject, name: string) => {
    if (name === 'tcpip-forward' || name === 'streamlocal-forward@openssh.com') {
      live.notices.add('remote forwarding (-R) is not offered: nothing listens on the gateway for an instance.');
    }
    reject?.();
  });
}

function login(gateway: Gateway, client: Connection, socket: Socket, who: Authenticated): LiveConnection {
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  return {
    gateway,
    id: randomUUID(),
    client,
    socket,
    key: who.key,
    login: {
      namespace: who.instance.namespace,
      instance: who.instance.name,
      instanceUid: who.instance.uid,
      fingerprint: who.key.fingerprint,
      keyResource: who.key.resource,
      address: socket.remoteAddress ?? '',
    },
    gone: gone.signal,
    activities: new Set(),
    windows: shareWindows(client),
    outlet: outletOf(client, socket, gateway.backlog),
    isCut: false,
    notices: new Set(),
  };
}

/** Serves one client from its first byte to its last. Errors of the protocol end this client and nothing else. */
export function serveClient(gateway: Gateway, client: Connection, socket: Socket, events: ClientEvents): void {
  let who: Authenticated | undefined;
  let live: LiveConnection | undefined;
  let left = (): void => undefined;
  let reason = 'closed';
  const began = gateway.now();
  client.on('error', (error) => {
    reason = error.message;
    gateway.log.debug({ err: error }, 'client error');
  });
  authenticate(client, gateway.directory, {
    tried: () => events.tried(),
    done: (authenticated) => {
      who = authenticated;
    },
  });
  client.once('ready', () => {
    if (who === undefined) {
      client.end();
      return;
    }
    live = login(gateway, client, socket, who);
    guardWindow(live);
    guardRekey(live);
    serveChannels(live);
    events.opened(live);
    const { namespace, instance: name } = live.login;
    left = gateway.activity.began({ namespace, name });
    gateway.audit({ event: 'login', login: live.login, connection: live.id });
  });
  socket.once('close', () => {
    if (live === undefined) return;
    events.closed(live);
    left();
    const durationMs = gateway.now() - began;
    gateway.audit({ event: 'logout', login: live.login, connection: live.id, reason, durationMs });
  });
}
