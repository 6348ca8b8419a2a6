import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { Connection } from 'ssh2';
import { addressGate, DEFAULT_ADDRESS_LIMITS, type AddressLimits } from './login/address-limits.ts';
import { cutConnection, recheck, relieve, type Gateway, type LiveConnection } from './connection.ts';
import { awaitIdent, isOpenSsh } from './ident.ts';
import { pendingLogins } from './login/pending-logins.ts';
import { protocolServer } from './ssh2/protocol.ts';
import { serveClient } from './serve-client.ts';

export interface SshServerDeps extends Omit<Gateway, 'backlog'> {
  /** Private key in OpenSSH's format. */
  hostKey: string;
  listen: { host: string; port: number };
  /** Shown before the login; none by default, because scripts get it on stderr with every command. */
  banner?: string;
  maxConnections?: number;
  /** Connections that have not logged in. */
  maxPending?: number;
  /** Bytes that may wait for sessions and clients to read them, of all connections together. */
  maxHeld?: number;
  addressLimits?: AddressLimits;
}

export interface SshServer {
  address: AddressInfo;
  /** Logged-in connections now. */
  readonly connections: number;
  /**
   * Stops listening, waits up to `drainMs` for connections to end by themselves, then cuts them with a line for the
   * user. 0 cuts at once.
   */
  close(drainMs: number): Promise<void>;
}

const MAX_CONNECTIONS = 10_000;
const MAX_PENDING = 512;
const LOGIN_GRACE_MS = 60_000;
// A quarter of the memory that a replica is given: what each byte costs besides, and everything else, needs the rest.
const MAX_HELD = 256 * 1024 * 1024;
// Of that, for queues of their full length. The rest is for short ones, what waits before them, and what clients send.
const AMPLE_SHARE = 1 / 4;
const RELIEF_INTERVAL_MS = 250;
const FAREWELL_LIMIT_MS = 2_000;

/** Waits until the set is empty or the time is over. */
async function emptied(live: ReadonlySet<LiveConnection>, ms: number): Promise<void> {
  const limit = AbortSignal.timeout(ms);
  while (live.size > 0 && !limit.aborted) {
    const [first] = live;
    if (first === undefined || first.socket.closed) return;
    await once(first.socket, 'close', { signal: limit }).catch(() => undefined);
  }
}

/**
 * Listens and serves until `close`. Keys and instances are read from the directory at every decision, and every change
 * of theirs is checked against the live connections at once. Rejects when the address cannot be listened on.
 */
export async function startSshServer(deps: SshServerDeps): Promise<SshServer> {
  const maxHeld = deps.maxHeld ?? MAX_HELD;
  const gateway: Gateway = { ...deps, backlog: { bytes: 0, ample: maxHeld * AMPLE_SHARE } };
  const gate = addressGate(deps.addressLimits ?? DEFAULT_ADDRESS_LIMITS, () => deps.now());
  const live = new Set<LiveConnection>();
  const pending = pendingLogins(gate, { places: deps.maxPending ?? MAX_PENDING, graceMs: LOGIN_GRACE_MS });
  const all = new Set<Socket>();
  const options = { hostKey: deps.hostKey, banner: deps.banner };
  const fast = protocolServer(options, true);
  const wide = protocolServer(options, false);

  const onClient = (client: Connection): void => {
    // ssh2 does not hand out the socket that it was given.
    const { _sock: socket } = client as unknown as { _sock: Socket };
    serveClient(gateway, client, socket, {
      tried: () => pending.tried(socket),
      opened: (connection) => {
        pending.settle(socket, 'in');
        live.add(connection);
      },
      closed: (connection) => live.delete(connection),
    });
  };
  for (const server of [fast, wide]) {
    server.on('connection', onClient);
    server.on('error', (error: unknown) => deps.log.error({ err: error }, 'ssh protocol error'));
  }

  const greet = async (socket: Socket): Promise<void> => {
    const first = await awaitIdent(socket);
    if (!socket.destroyed) (isOpenSsh(first) ? fast : wide).injectSocket(socket);
  };
  const onSocket = (socket: Socket): void => {
    socket.on('error', () => undefined);
    const full = all.size >= (deps.maxConnections ?? MAX_CONNECTIONS);
    if (full || !pending.admit(socket)) {
      deps.log.info({ address: socket.remoteAddress, full }, 'connection refused');
      socket.destroy();
      return;
    }
    all.add(socket);
    socket.once('close', () => {
      all.delete(socket);
      pending.settle(socket, 'left');
    });
    socket.setNoDelay(true);
    void greet(socket);
  };

  const listener = createServer(onSocket);
  const unsubscribe = deps.directory.onChange((namespace) => {
    for (const connection of live) {
      if (connection.login.namespace === namespace) recheck(connection);
    }
  });
  const relief = setInterval(() => relieve(live, maxHeld), RELIEF_INTERVAL_MS).unref();
  listener.listen(deps.listen.port, deps.listen.host);
  await once(listener, 'listening');
  return {
    address: listener.address() as AddressInfo,
    get connections() {
      return live.size;
    },
    close: async (drainMs) => {
      const closed = new Promise((resolve) => {
        listener.close(resolve);
      });
      pending.drop();
      await emptied(live, drainMs);
      for (const connection of live) cutConnection(connection, 'The gateway restarts: connect again.');
      await emptied(live, FAREWELL_LIMIT_MS);
      for (const socket of all) socket.destroy();
      clearInterval(relief);
      unsubscribe();
      await closed;
    },
  };
}
