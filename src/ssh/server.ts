import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { CeilingsOf } from '../access/ceilings.ts';
import { cutConnection, freeMemory, recheck, type Gateway, type LiveConnection } from './connection.ts';
import { BlockedPods } from '../direct/blocked-pods.ts';
import { dialTls, type Dial } from '../direct/dial.ts';
import { AddressLimiter, DEFAULT_ADDRESS_LIMITS, type AddressLimits } from './login/address-limits.ts';
import { PendingLogins } from './login/pending-logins.ts';
import { FEWER_LOGINS, serveClient } from './serve-client.ts';
import { ByteTurns } from '../lib/byte-turns.ts';
import { FairBytes } from '../lib/shares.ts';
import { checkPrivateFields, hangUpOn, socketOf, turnAway } from './ssh2/private.ts';
import { protocolServer, type Connection } from './ssh2/protocol.ts';
import { TenantPlaces } from './tenant-places.ts';

export interface SshServerDeps extends Omit<
  Gateway,
  'turns' | 'longQueues' | 'wideWindows' | 'places' | 'dial' | 'blocked'
> {
  ceilingsOf: CeilingsOf;
  /** Connects to the helpers of the direct way; by TLS unless given. */
  dial?: Dial;
  /** In which tenants pass bytes; also the terminals of this process. */
  turns?: ByteTurns;
  /** Private key in OpenSSH's format. */
  hostKey: string;
  listen: { host: string; port: number };
  /** Connections that have not logged in. */
  maxPending?: number;
  /** Bytes that may wait for sessions and clients to read them, of all connections together. */
  maxBuffered?: number;
  addressLimits?: AddressLimits;
}

const MAX_CONNECTIONS = 10_000;
const MAX_CHANNELS = 20_000;
const MAX_PENDING = 512;
const LOGIN_GRACE_MS = 60_000;
// A quarter of a replica's memory: what each byte costs besides, and everything else, needs the rest.
const MAX_BUFFERED = 256 * 1024 * 1024;
// Of that, for queues of full length. The rest is for short queues, for what waits before them, and for what clients send.
const LONG_QUEUES_SHARE = 1 / 4;
const MEMORY_CHECK_MS = 250;
const LAST_WORDS_LIMIT_MS = 2_000;
const REFUSAL_LOG_MS = 5_000;
const IDENT_PATIENCE_MS = 300;

type ProtocolServer = ReturnType<typeof protocolServer>;

/** Waits until the set is empty or the time is over. */
async function emptied(live: ReadonlySet<LiveConnection>, ms: number): Promise<void> {
  const limit = AbortSignal.timeout(ms);
  while (live.size > 0 && !limit.aborted) {
    const [first] = live;
    if (first === undefined || first.socket.closed) return;
    await once(first.socket, 'close', { signal: limit }).catch(() => undefined);
  }
}

/** Whether a client that began with these bytes is OpenSSH. */
function isOpenSsh(first: Buffer): boolean {
  return first.subarray(0, 16).toString('latin1') === 'SSH-2.0-OpenSSH_';
}

/** A client's first bytes, put back for the next reader; empty when it waits for the server (RFC 4253 section 4.2). */
function awaitIdent(socket: Socket): Promise<Buffer> {
  return new Promise((resolve) => {
    const finish = (first: Buffer): void => {
      clearTimeout(timer);
      socket.off('data', onData);
      socket.off('close', onClose);
      socket.pause();
      if (first.length > 0) socket.unshift(first);
      resolve(first);
    };
    const onData = (first: Buffer): void => finish(first);
    const onClose = (): void => finish(Buffer.alloc(0));
    const timer = setTimeout(onClose, IDENT_PATIENCE_MS);
    socket.on('data', onData);
    socket.once('close', onClose);
  });
}

/** Serves SSH. Each decision reads keys and instances anew; each change checks the live connections at once. */
export class SshServer {
  readonly #deps: SshServerDeps;
  readonly #gateway: Gateway;
  readonly #maxBuffered: number;
  readonly #pending: PendingLogins;
  readonly #live = new Set<LiveConnection>();
  readonly #sockets = new Set<Socket>();
  readonly #listener: Server = createServer((socket) => this.#onSocket(socket));
  readonly #forOpenSsh: ProtocolServer;
  readonly #forOthers: ProtocolServer;
  #address: AddressInfo = { address: '', family: '', port: 0 };
  #memoryCheck: NodeJS.Timeout | undefined;
  /** Since the last line about them in the log. */
  #refusals = 0;
  #unsubscribe = (): void => undefined;

  constructor(deps: SshServerDeps) {
    this.#deps = deps;
    this.#maxBuffered = deps.maxBuffered ?? MAX_BUFFERED;
    const most = { connections: MAX_CONNECTIONS, channels: MAX_CHANNELS };
    const places = new TenantPlaces(deps.ceilingsOf, most);
    const longQueues = new FairBytes(this.#maxBuffered * LONG_QUEUES_SHARE);
    const turns = deps.turns ?? new ByteTurns(deps.clock);
    const direct = { dial: deps.dial ?? dialTls, blocked: new BlockedPods(deps.clock) };
    this.#gateway = { ...deps, ...direct, turns, places, longQueues, wideWindows: new FairBytes(this.#maxBuffered) };
    const limiter = new AddressLimiter(deps.addressLimits ?? DEFAULT_ADDRESS_LIMITS, deps.clock);
    this.#pending = new PendingLogins(limiter, { places: deps.maxPending ?? MAX_PENDING, graceMs: LOGIN_GRACE_MS });
    this.#forOpenSsh = protocolServer(deps.hostKey, { gcmOnly: true });
    this.#forOthers = protocolServer(deps.hostKey, { gcmOnly: false });
  }

  /** Where it listens, or did. */
  get address(): AddressInfo {
    return this.#address;
  }

  /** Connections that are logged in now. */
  get connections(): number {
    return this.#live.size;
  }

  /** Rejects with `Ssh2VersionError`, and when the address cannot be listened on. */
  async listen(): Promise<void> {
    const { directory, listen, log } = this.#deps;
    await checkPrivateFields(this.#forOthers);
    for (const server of [this.#forOpenSsh, this.#forOthers]) {
      server.on('connection', (client: Connection) => this.#onClient(client));
      server.on('error', (error: unknown) => log.error({ err: error }, 'SSH protocol failed'));
    }
    this.#unsubscribe = directory.onChange((namespace) => {
      for (const connection of this.#live) if (connection.login.namespace === namespace) recheck(connection);
    });
    this.#memoryCheck = setInterval(() => freeMemory(this.#live, this.#maxBuffered), MEMORY_CHECK_MS).unref();
    this.#listener.listen(listen.port, listen.host);
    await once(this.#listener, 'listening');
    this.#address = this.#listener.address() as AddressInfo;
  }

  /** Stops listening, waits `drainMs` at most for connections to end, then cuts them with a line for the user. */
  async close(drainMs: number): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#listener.close(resolve);
    });
    this.#pending.closeAll();
    await emptied(this.#live, drainMs);
    for (const connection of this.#live) cutConnection(connection, 'The gateway restarts. Connect again.');
    await emptied(this.#live, LAST_WORDS_LIMIT_MS);
    for (const socket of this.#sockets) socket.destroy();
    clearInterval(this.#memoryCheck);
    this.#unsubscribe();
    await closed;
  }

  #onSocket(socket: Socket): void {
    socket.on('error', () => undefined);
    if (!this.#pending.admit(socket)) {
      this.#refused(socket);
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#pending.ended(socket, 'closed');
    });
    socket.setNoDelay(true);
    void this.#handOver(socket);
  }

  /** One line for all of some seconds: strangers must not fill the log. */
  #refused({ remoteAddress: address }: Socket): void {
    this.#deps.countLogin('refused');
    this.#refusals += 1;
    if (this.#refusals > 1) return;
    const tell = (): void => {
      this.#deps.log.info({ count: this.#refusals, first: address }, 'Connections refused');
      this.#refusals = 0;
    };
    setTimeout(tell, REFUSAL_LOG_MS).unref();
  }

  async #handOver(socket: Socket): Promise<void> {
    const first = await awaitIdent(socket);
    if (!socket.destroyed) (isOpenSsh(first) ? this.#forOpenSsh : this.#forOthers).injectSocket(socket);
  }

  #onClient(client: Connection): void {
    const socket = socketOf(client);
    const answer = this.#pending.exchange(socket);
    if (answer === 'hurried') {
      this.#deps.countLogin('hurried');
      turnAway(client, `berth: too many logins from your network. ${FEWER_LOGINS}`);
      setTimeout(() => socket.destroy(), LAST_WORDS_LIMIT_MS).unref();
      return;
    }
    if (answer === 'crowded') {
      this.#refused(socket);
      hangUpOn(client);
      return;
    }
    serveClient(this.#gateway, client, socket, {
      tried: () => this.#pending.tried(socket),
      signed: () => this.#pending.signed(socket),
      mayLogIn: (tenant) => this.#pending.mayLogIn(socket, tenant),
      opened: (connection) => {
        this.#pending.ended(socket, 'logged in');
        this.#live.add(connection);
      },
      closed: (connection) => this.#live.delete(connection),
    });
  }
}
