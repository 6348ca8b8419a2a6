import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { guardRekey, guardWindow, type Gateway, type LiveConnection, Notices, takeTurns } from './connection.ts';
import { PIECE_BYTES, type Turn } from '../lib/byte-turns.ts';
import { DirectWay } from './direct-way.ts';
import { authenticate, type Authenticated } from './login/authentication.ts';
import { permits } from './login/certificate.ts';
import { guardPackets } from './login/packet-guard.ts';
import { serveForward, type ForwardTarget } from './session/forward.ts';
import { ProgramSession } from './session/session.ts';
import {
  announceSignatures,
  closeUnstarted,
  keepRightGuesses,
  PROHIBITED,
  refuseChannel,
  refuseTinyPackets,
  sendLastWords,
  RESOURCE_SHORTAGE,
  takeOverData,
  takeOverRequests,
} from './ssh2/private.ts';
import { MAX_PACKET } from './ssh2/load.ts';
import { type Connection, type ServerChannel, type Session, SIGNATURES } from './ssh2/protocol.ts';
import { SendQueue } from './ssh2/send-queue.ts';
import { Windows } from './ssh2/windows.ts';

const MAX_CHANNELS = 128;
// A client that is refused reads why, and hangs up.
const LAST_WORDS_MS = 2_000;
/** What ssh2 says of a packet that is too long. */
const BAD_LENGTH = 'Bad packet length';
const TOO_LONG = `berth: a message of your client is broken, or has more than ${MAX_PACKET} bytes. Put a long command into a file, and run that, or send it to a shell: ssh HOST sh <FILE.`;

/** What a tenant does that has used up its logins. */
export const FEWER_LOGINS =
  'Try again in ten seconds. For many commands, keep one connection: ControlMaster and ControlPersist in ssh_config.';

export interface ClientEvents {
  /** The client offered a key or broke a rule: without a login, its end is a failure. */
  tried(): void;
  /** The client signed with a key that opens its instance: whatever follows is no failure. */
  signed(): void;
  /** Whether the tenant of the client may log in once more now. */
  mayLogIn(tenant: string): boolean;
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
    if (!this.#take(reject)) return;
    const session = accept();
    const ended = new AbortController();
    // ssh2 closes no session of a connection that is gone.
    this.#live.gone.addEventListener('abort', () => ended.abort(), { signal: ended.signal });
    ended.signal.addEventListener('abort', () => this.#give());
    session.once('close', () => {
      ended.abort();
      closeUnstarted(this.#live.client, session);
    });
    new ProgramSession(this.#live).listen(session);
  }

  #forward(to: ForwardTarget, answer: Answer<ServerChannel>): void {
    const { client, gateway, id, key } = this.#live;
    if (!permits(key, 'permit-port-forwarding')) {
      refuseChannel(client, answer.reject, PROHIBITED, 'berth: the certificate does not permit forwards.');
      return;
    }
    if (!this.#take(answer.reject)) return;
    serveForward(this.#live, to, answer)
      .catch((error: unknown) => gateway.log.error({ connection: id, err: error }, 'Forward failed'))
      .finally(() => this.#give());
  }

  /** Takes a place for one channel, or refuses the channel. */
  #take(reject: () => void): boolean {
    const { client, gateway, isCut, login } = this.#live;
    if (isCut) {
      reject();
      return false;
    }
    const refusal =
      this.#open >= MAX_CHANNELS
        ? `this connection has ${MAX_CHANNELS} open channels, which is the limit of one connection.`
        : gateway.places.take('channels', login.namespace);
    if (refusal === undefined) {
      this.#open += 1;
      return true;
    }
    refuseChannel(client, reject, RESOURCE_SHORTAGE, `berth: ${refusal}`);
    return false;
  }

  #give(): void {
    this.#open -= 1;
    this.#live.gateway.places.give('channels', this.#live.login.namespace);
  }
}

function liveConnection(
  gateway: Gateway,
  { client, socket, bytes }: Pick<LiveConnection, 'client' | 'socket' | 'bytes'>,
  who: Authenticated,
): LiveConnection {
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  const { namespace } = who.instance;
  const turn = gateway.turns.of(namespace);
  return {
    gateway,
    id: randomUUID(),
    client,
    socket,
    bytes,
    key: who.key,
    login: {
      namespace,
      instance: who.instance.name,
      instanceUid: who.instance.uid,
      fingerprint: who.key.fingerprint,
      certificate: who.key.certificate && `${who.key.certificate.id} (serial ${who.key.certificate.serial})`,
      keyResource: who.key.resource,
      address: socket.remoteAddress ?? '',
    },
    gone: gone.signal,
    channels: new Set(),
    direct: new DirectWay({ ...gateway, portion: gateway.wideWindows.of(namespace), turn }, gone.signal),
    windows: new Windows(client, gateway.wideWindows.of(namespace)),
    queue: new SendQueue(client, socket, gateway.longQueues.of(namespace)),
    turn,
    isCut: false,
    notices: new Notices(),
    variables: 0,
  };
}

/** Takes the place of a connection for its tenant until the socket closes. Answers why when there is none. */
function takePlace({ places }: Gateway, socket: Socket, tenant: string): string | undefined {
  const refusal = places.take('connections', tenant);
  if (refusal !== undefined) return refuse(socket, refusal);
  socket.once('close', () => places.give('connections', tenant));
  return undefined;
}

/** Ends the connection when the client has had time to read why. */
function refuse(socket: Socket, refusal: string): string {
  setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
  return refusal;
}

/** Serves one client from its first byte to its last. An error of the protocol ends this client and nothing else. */
export function serveClient(gateway: Gateway, client: Connection, socket: Socket, events: ClientEvents): void {
  const { activity, audit, clock, countLogin, log } = gateway;
  const began = clock.monotonic();
  let who: Authenticated | undefined;
  let turn: Turn | undefined;
  let hasOffered = false;
  let reason = 'closed';
  client.on('error', (error) => {
    reason = error.message;
    log.debug({ err: error }, 'Client failed');
    if (error.message !== BAD_LENGTH) return;
    sendLastWords(client, TOO_LONG);
    refuse(socket, TOO_LONG);
  });
  announceSignatures(client, SIGNATURES);
  keepRightGuesses(client);
  const bytes = takeOverRequests(client);
  takeOverData(client);
  guardPackets(client, socket, {
    clock,
    refused: (why) => {
      reason = why;
      log.debug({ address: socket.remoteAddress, why }, 'Client asks for too much');
      events.tried();
    },
    packet: () => turn?.count(PIECE_BYTES),
  });
  authenticate(client, gateway.directory, {
    address: socket.remoteAddress ?? '',
    now: () => clock.now(),
    keyOffered: () => {
      hasOffered = true;
      events.tried();
    },
    admit: (authenticated) => {
      who = authenticated;
      events.signed();
      const { namespace } = authenticated.instance;
      const closed = gateway.directory.closed(namespace);
      if (closed !== undefined) {
        countLogin('denied');
        return refuse(socket, `the gateway lets nobody in: ${closed}`);
      }
      if (!events.mayLogIn(namespace)) {
        countLogin('hurried');
        return refuse(socket, `namespace ${namespace} logs in too often. ${FEWER_LOGINS}`);
      }
      const refusal = takePlace(gateway, socket, namespace);
      countLogin(refusal === undefined ? 'accepted' : 'limited');
      return refusal;
    },
  });
  socket.once('close', () => {
    if (hasOffered && who === undefined) countLogin('denied');
  });
  client.once('ready', () => {
    if (who === undefined) {
      client.end();
      return;
    }
    const live = liveConnection(gateway, { client, socket, bytes }, who);
    const { id: connection, login } = live;
    ({ turn } = live);
    takeTurns(live);
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
