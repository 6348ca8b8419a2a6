import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { CeilingsOf } from '../../access/ceilings.ts';
import type { Principal } from '../../access/principal.ts';
import { BlockedPods } from '../../direct/blocked-pods.ts';
import { dialTls } from '../../direct/dial.ts';
import { FairShares } from '../../lib/shares.ts';
import { whoCanChange } from '../../resources/tenants/who-can-change.ts';
import { http } from '../../lib/lean-http.ts';
import type { InstanceView } from '../directory.ts';
import { TERMINAL_PROTOCOL } from '../../wire/terminal-frames.ts';
import { terminalOf } from './protocol.ts';
import { type Opening, Terminal, type TerminalDeps } from './terminal.ts';

export interface TerminalServerDeps extends Omit<TerminalDeps, 'dial' | 'blocked'> {
  ceilingsOf: CeilingsOf;
  listen: { host: string; port: number };
}

/** Terminals of this replica: with half a MiB of unread bytes each, an eighth of its memory. */
const MOST_TERMINALS = 256;
/** A tenant may have as many as are left for others: half of all when it is alone. */
const FACTOR = 1;
/** Bytes of one frame. A browser sends what was pasted in smaller ones. */
const MAX_FRAME = 64 * 1024;
/** Milliseconds between two looks at all terminals: whose tokens end soon, and whose pods went. */
const CHECK_MS = 2_000;
const PING_MS = 20_000;
const LAST_WORDS_MS = 2_000;
/** The api role alone gets in. */
const SERVER_LIMITS = { headersTimeout: 5_000, requestTimeout: 10_000, maxHeaderSize: 16 * 1024 } as const;
const MAX_CONNECTIONS = 2 * MOST_TERMINALS;

const PATH = /^\/terminals\/([a-z0-9][-a-z0-9.]{0,252})$/;
const BEARER = /^bearer +(\S+)$/i;

/** Why a terminal is not opened, in the words of the HTTP interface. */
class TerminalRefusal extends Error {
  override name = 'TerminalRefusal';
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }

  get body(): string {
    return JSON.stringify({ error: { message: this.message, code: this.code } });
  }
}

function refuse(socket: Socket, { status, body }: TerminalRefusal): void {
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}`,
    'connection: close',
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  socket.destroySoon();
}

function asRefusal(error: unknown): TerminalRefusal {
  if (error instanceof TerminalRefusal) return error;
  return new TerminalRefusal(503, 'terminal_unavailable', 'The SSH gateway cannot check the caller now. Try again.');
}

/**
 * Serves terminals to the api role, which passes clients on: `GET /terminals/{instance}` as a WebSocket. It checks the
 * caller's own token again: an api role in the wrong hands opens no terminal by itself.
 */
export class TerminalServer {
  readonly #deps: TerminalServerDeps;
  readonly #blocked: BlockedPods;
  readonly #http: Server = http.createServer(
    SERVER_LIMITS,
    (request, response) => void this.#onRequest(request, response),
  );
  readonly #handshakes = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_FRAME,
    perMessageDeflate: false,
    skipUTF8Validation: true,
    handleProtocols: () => TERMINAL_PROTOCOL,
  });
  readonly #places = new FairShares(MOST_TERMINALS, FACTOR);
  readonly #live = new Map<Terminal, Promise<void>>();
  readonly #sockets = new Set<Socket>();
  #address: AddressInfo = { address: '', family: '', port: 0 };
  #stop: () => void = () => undefined;

  constructor(deps: TerminalServerDeps) {
    this.#deps = deps;
    this.#blocked = new BlockedPods(deps.clock);
  }

  /** Where it listens, or did. */
  get address(): AddressInfo {
    return this.#address;
  }

  /** Rejects when the address cannot be listened on. */
  async listen(): Promise<void> {
    const { directory, listen } = this.#deps;
    this.#http.maxConnections = MAX_CONNECTIONS;
    this.#http.on('connection', (socket) => this.#onSocket(socket));
    this.#http.on('upgrade', (request, socket, head) => void this.#onUpgrade(request, socket, head));
    const checks = setInterval(() => this.#recheck(), CHECK_MS).unref();
    const pings = setInterval(() => this.#ping(), PING_MS).unref();
    const ends = [
      directory.onChange((namespace) => this.#recheck(namespace)),
      () => clearInterval(checks),
      () => clearInterval(pings),
    ];
    this.#stop = () => {
      for (const end of ends) end();
    };
    this.#http.listen(listen.port, listen.host);
    await once(this.#http, 'listening');
    this.#address = this.#http.address() as AddressInfo;
  }

  /** Takes no new ones, waits `drainMs` at most for those that are open, then cuts them with a line for the person. */
  async close(drainMs: number): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#http.close(resolve);
    });
    this.#http.closeIdleConnections();
    await this.#ended(drainMs);
    for (const terminal of this.#live.keys()) terminal.cut('The gateway restarts. Open the terminal again.');
    await this.#ended(LAST_WORDS_MS);
    this.#stop();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  /** Waits until no terminal is open, `ms` at most. */
  async #ended(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, ms)));
    await Promise.race([Promise.all(this.#live.values()), late]);
    clearTimeout(timer);
  }

  #recheck(namespace?: string): void {
    for (const terminal of this.#live.keys()) {
      if (namespace === undefined || terminal.namespace === namespace) terminal.recheck();
    }
  }

  #ping(): void {
    for (const terminal of this.#live.keys()) terminal.ping();
  }

  #onSocket(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** Without a handshake: says why a terminal would not open, so that a page can show it. */
  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, body } = await this.#admit(request).then(
      () => new TerminalRefusal(426, 'upgrade_required', 'This is a terminal: open it as a WebSocket.'),
      asRefusal,
    );
    const headers = { 'content-type': 'application/json; charset=utf-8', ...(status === 426 && UPGRADE) };
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body);
  }

  async #onUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    try {
      const opening = await this.#admit(request);
      if (socket.destroyed) return;
      this.#requireProtocol(request);
      this.#accept(opening, (take) => this.#handshakes.handleUpgrade(request, socket, head, take));
    } catch (error) {
      // Of this server, a connection is always a socket; the type allows other transports.
      refuse(socket as Socket, asRefusal(error));
    }
  }

  #requireProtocol({ headers }: IncomingMessage): void {
    const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((one) => one.trim());
    if (offered.includes(TERMINAL_PROTOCOL)) return;
    throw new TerminalRefusal(400, 'bad_request', `Offer the sub-protocol ${TERMINAL_PROTOCOL}.`);
  }

  /** Serves the client within a place of its tenant. `shake` hands it over at once, or never when its handshake is wrong. */
  #accept(opening: Opening, shake: (take: (client: WebSocket) => void) => void): void {
    const give = this.#takePlace(opening.caller);
    let isOpen = false;
    shake((client) => {
      isOpen = true;
      const terminal = new Terminal({ ...this.#deps, dial: dialTls, blocked: this.#blocked }, opening, client);
      const ended = (): void => {
        this.#live.delete(terminal);
        give();
      };
      this.#live.set(terminal, terminal.serve().finally(ended));
    });
    if (!isOpen) give();
  }

  /** What the request opens. Rejects with `TerminalRefusal`. */
  async #admit(request: IncomingMessage): Promise<Opening> {
    const url = new URL(request.url ?? '', 'http://localhost');
    const [, name = ''] = PATH.exec(url.pathname) ?? [];
    const caller = await this.#callerOf(request);
    const instance = this.#deps.directory.find({ instance: name, namespace: caller.namespace });
    if (instance === undefined) throw new TerminalRefusal(404, 'instance_not_found', 'No instance has this id.');
    return {
      caller,
      instance: name,
      instanceUid: instance.uid,
      target: targetOf(instance),
      screen: terminalOf(url.searchParams),
      command: commandOf(url.searchParams),
      address: String(request.headers['x-forwarded-for'] ?? ''),
    };
  }

  async #callerOf({ headers }: IncomingMessage): Promise<Principal> {
    const [, token] = BEARER.exec(headers.authorization ?? '') ?? [];
    const caller = token === undefined ? undefined : await this.#deps.callers.find(token);
    if (caller === undefined) throw new TerminalRefusal(401, 'invalid_api_key', 'Invalid API key.');
    if (!caller.scopes.includes('compute:write'))
      throw new TerminalRefusal(
        403,
        'insufficient_scope',
        'A terminal needs the scope compute:write. Use another key.',
      );
    const why = this.#deps.callers.refusal(caller);
    if (why !== undefined) throw new TerminalRefusal(403, 'not_a_tenant', why);
    return caller;
  }

  /** Takes a place for a terminal of the tenant. The returned function gives it back. */
  #takePlace({ namespace }: Principal): () => void {
    const { ssh, policies } = this.#deps.ceilingsOf(namespace);
    const most = ssh.connections;
    const outcome = this.#places.take(namespace, 1, most);
    if (outcome === 'taken') return () => this.#places.give(namespace, 1);
    const why =
      outcome === 'owner-full'
        ? `Namespace ${namespace} has ${most} terminals open, which is its limit. Close one. ${whoCanChange('ssh.connections', policies)}`
        : `Namespace ${namespace} has as many terminals open as this replica of the SSH gateway leaves it. Close one, or use SSH.`;
    throw new TerminalRefusal(429, 'too_many_streams', why);
  }
}

/** The command of a request's query. Rejects one that no shell could be given. */
function commandOf(query: URLSearchParams): string | undefined {
  const command = query.get('command') ?? undefined;
  if (command === '' || command?.includes('\0'))
    throw new TerminalRefusal(400, 'bad_request', 'The command is empty, or has a NUL byte. Send another command.');
  return command;
}

const UPGRADE = { upgrade: 'websocket', connection: 'upgrade' };

function targetOf({ name, target, condition }: InstanceView): Opening['target'] {
  if (target !== undefined) return target;
  throw new TerminalRefusal(409, 'instance_not_running', `Instance ${name} is ${condition}`);
}
