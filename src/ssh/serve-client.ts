import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { guardRekey, guardWindow, type Gateway, type LiveConnection } from './connection.ts';
import { authenticate, type Authenticated } from './login/authentication.ts';
import { serveForward, type ForwardTarget } from './session/forward.ts';
import { ProgramSession } from './session/session.ts';
import { closeUnstarted, refuseTinyPackets } from './ssh2/private.ts';
import type { Connection, ServerChannel, Session } from './ssh2/protocol.ts';
import { SendQueue } from './ssh2/send-queue.ts';
import { Windows } from './ssh2/windows.ts';

const MAX_CHANNELS = 128;

export interface ClientEvents {
  keyOffered(): void;
  opened(connection: LiveConnection): void;
  closed(connection: LiveConnection): void;
}

interface Answer<Opened> {
  accept: () => Opened;
  reject: () => void;
}

/** Serves the sessions and forwards that a client opens, at most {@link MAX_CHANNELS} at once. */
class ChannelRequests {
  readonly #live: LiveConnection;
  #open = 0;

  constructor(live: LiveConnection) {
    this.#live = live;
  }

  listen(): void {
    const { client, notices } = this.#live;
    refuseTinyPackets(client);
    client.on('session', (accept, reject) => this.#session({ accept, reject }));
    client.on('tcpip', (accept, reject, { destIP, destPort }) =>
      this.#forward({ kind: 'tcp', host: destIP, port: destPort }, { accept, reject }),
    );
    client.on('openssh.streamlocal', (accept, reject, { socketPath }) =>
      this.#forward({ kind: 'unix', path: socketPath }, { accept, reject }),
    );
    client.on('request', (_accept, reject, name: string) => {
      if (name === 'tcpip-forward' || name === 'streamlocal-forward@openssh.com') {
        notices.add('remote forwarding (-R) is not offered: nothing listens on the gateway for an instance.');
      }
      reject?.();
    });
  }

  #session({ accept, reject }: Answer<Session>): void {
    if (this.#open >= MAX_CHANNELS) {
      reject();
      return;
    }
    const session = accept();
    this.#open += 1;
    session.once('close', () => {
      this.#open -= 1;
      closeUnstarted(this.#live.client, session);
    });
    new ProgramSession(this.#live).listen(session);
  }

  #forward(to: ForwardTarget, answer: Answer<ServerChannel>): void {
    if (this.#open >= MAX_CHANNELS) {
      answer.reject();
      return;
    }
    this.#open += 1;
    const { gateway, id } = this.#live;
    serveForward(this.#live, to, answer)
      .catch((error: unknown) => gateway.log.error({ connection: id, err: error }, 'Forward failed'))
      .finally(() => {
        this.#open -= 1;
      });
  }
}

function liveConnection(gateway: Gateway, client: Connection, socket: Socket, who: Authenticated): LiveConnection {
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
    channels: new Set(),
    windows: new Windows(client),
    queue: new SendQueue(client, socket, gateway.backlog),
    isCut: false,
    notices: new Set(),
  };
}

/** Serves one client from its first byte to its last. An error of the protocol ends this client and nothing else. */
export function serveClient(gateway: Gateway, client: Connection, socket: Socket, events: ClientEvents): void {
  const { activity, audit, clock, log } = gateway;
  const began = clock.monotonic();
  let who: Authenticated | undefined;
  let reason = 'closed';
  client.on('error', (error) => {
    reason = error.message;
    log.debug({ err: error }, 'Client failed');
  });
  authenticate(client, gateway.directory, {
    keyOffered: () => events.keyOffered(),
    done: (authenticated) => {
      who = authenticated;
    },
  });
  client.once('ready', () => {
    if (who === undefined) {
      client.end();
      return;
    }
    const live = liveConnection(gateway, client, socket, who);
    const { id: connection, login } = live;
    guardWindow(live);
    guardRekey(live);
    new ChannelRequests(live).listen();
    events.opened(live);
    const left = activity.began({ namespace: login.namespace, name: login.instance });
    audit({ event: 'login', login, connection });
    socket.once('close', () => {
      events.closed(live);
      left();
      const durationMs = Math.round(clock.monotonic() - began);
      audit({ event: 'logout', login, connection, reason, durationMs });
    });
  });
}
