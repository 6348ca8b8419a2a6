import { pino } from 'pino';
import { WebSocket } from 'ws';
import type { Principal } from '../../src/access/principal.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { ByteTurns } from '../../src/lib/byte-turns.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { DEFAULT_CEILINGS } from '../../src/resources/tenants/ceilings.ts';
import type { AuditRecord } from '../../src/ssh/audit.ts';
import type { InstanceView } from '../../src/ssh/directory.ts';
import { TerminalServer, type TerminalServerDeps } from '../../src/ssh/terminal/server.ts';
import { type ChannelServer, channelServer, frame } from './channel-server.ts';
import { AccessWatch } from '../../src/access/access-watch.ts';
import type { Caller } from '../../src/access/authenticator.ts';
import { waitFor } from './wait-for.ts';

const READY = '\u0001';

/** A client of terminals, and what it got. */
export class TerminalClient {
  readonly socket: WebSocket;
  /** What the shell wrote. */
  output = '';
  bytes = 0;
  /** The text of the status, once it came. */
  status: { status: string; message?: string } | undefined;
  /** How often the server asked for another token. */
  questions = 0;
  /** The HTTP status of a refusal, and its text. */
  refused: { status: number; text: string } | undefined;
  closed = false;

  constructor(socket: WebSocket) {
    this.socket = socket;
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => (this.closed = true));
    this.socket.on('message', (data: Buffer) => this.#onFrame(data[0] ?? -1, data.subarray(1)));
    this.socket.on('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () => (this.refused = { status: response.statusCode ?? 0, text }));
    });
  }

  #onFrame(channel: number, bytes: Buffer): void {
    if (channel === 1) {
      this.bytes += bytes.length;
      if (this.output.length < 100_000) this.output += bytes.toString();
    } else if (channel === 3) this.status = JSON.parse(bytes.toString()) as { status: string; message?: string };
    else if (channel === 5) this.questions += 1;
  }

  send(channel: number, text: string): void {
    this.socket.send(frame(channel, text));
  }

  async shows(text: string): Promise<void> {
    await waitFor(`the terminal to show ${text}`, () => this.output.includes(text));
  }
}

/** A program that opens a terminal with a token. */
export function openTerminal(url: string, token: string, protocols = ['v5.channel.k8s.io']): TerminalClient {
  return new TerminalClient(new WebSocket(url, protocols, { headers: { authorization: `Bearer ${token}` } }));
}

/** A gateway for terminals without a cluster: one instance, `i-one` of `team`, whose shell repeats what is typed. */
export interface TerminalWorld extends AsyncDisposable {
  server: TerminalServer;
  kubelet: ChannelServer;
  /** Tokens, and whom they stand for; a test adds and removes them. */
  tokens: Map<string, Principal>;
  /** The one instance; a test changes it. */
  instance: { view: InstanceView | undefined };
  records: AuditRecord[];
  /** Tells the gateway that a key has changed. */
  changed(): void;
  url: string;
  open(token: string, query?: string, protocols?: string[]): TerminalClient;
}

export const VIEW: InstanceView = {
  namespace: 'team',
  name: 'i-one',
  uid: 'u',
  target: { namespace: 'team', pod: 'p', container: 'main', uid: 'pod-1', tools: false },
  condition: 'stopped',
};

export function caller(keyId: string, more: Partial<Principal> = {}): Principal {
  return { keyId, namespace: 'team', name: keyId, scopes: ['compute:read', 'compute:write'], ...more };
}

/** A shell: `exit` ends it, everything else comes back, with what the first line of the launch set. */
export function shell(stream: WebSocket): void {
  let isStarted = false;
  stream.send(frame(1, READY));
  stream.on('message', (data: Buffer) => {
    if (data[0] === 4) stream.send(frame(1, `size ${data.subarray(1).toString()}\r\n`));
    if (data[0] !== 0) return;
    const typed = data.subarray(1).toString();
    if (!isStarted) {
      isStarted = true;
      stream.send(frame(1, '$ '));
    } else if (typed.includes('exit')) stream.send(frame(3, JSON.stringify({ metadata: {}, status: 'Success' })));
    else stream.send(frame(1, typed));
  });
}

export async function terminalWorld(overrides: Partial<TerminalServerDeps> = {}): Promise<TerminalWorld> {
  const clock: Clock = overrides.clock ?? systemClock();
  const kubelet = await channelServer('v5.channel.k8s.io');
  kubelet.onStream = shell;
  const tokens = new Map([['token', caller('key-1')]]);
  const instance: TerminalWorld['instance'] = { view: VIEW };
  const records: AuditRecord[] = [];
  const listeners = new Set<() => void>();
  const refusal = (who: Caller): string | undefined => {
    const isKnown = [...tokens.values()].some(({ keyId }) => keyId === who.keyId);
    const isGood = who.vouchedUntil === undefined ? isKnown : who.vouchedUntil > clock.now();
    if (isGood && who.scopes?.includes('compute:write')) return undefined;
    return who.vouchedUntil === undefined ? 'The API key is over.' : 'The sign-in is over.';
  };
  const tell = (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  const tenants = { onChange: (listener: (namespace: string) => void) => tell(() => listener('team')) };
  const access = new AccessWatch({
    authenticator: { refusal },
    apiKeys: { onChange: () => () => undefined },
    tenants,
    clock,
  });
  const server = new TerminalServer({
    endpoint: kubelet.endpoint,
    turns: new ByteTurns(clock),
    directory: {
      find: ({ instance: name, namespace }) =>
        name === instance.view?.name && namespace === instance.view.namespace ? instance.view : undefined,
      tenantKeys: () => [],
      opens: () => false,
      closed: () => undefined,
      onChange: tenants.onChange,
    },
    callers: {
      find: (token) => Promise.resolve(tokens.get(token)),
      refusal,
      open: (who) => access.open(who, { scope: 'compute:write' }),
    },
    ceilingsOf: () => DEFAULT_CEILINGS,
    audit: (record) => void records.push(record),
    activity: { began: () => () => undefined },
    log: pino({ level: 'silent' }),
    listen: { host: '127.0.0.1', port: 0 },
    ...overrides,
    clock,
  });
  await server.listen();
  const url = `ws://127.0.0.1:${server.address.port}/terminals/i-one`;
  const clients: TerminalClient[] = [];
  return {
    server,
    kubelet,
    tokens,
    instance,
    records,
    changed: () => {
      for (const listener of listeners) listener();
    },
    url,
    open: (token, query = '', protocols) => {
      const client = openTerminal(`${url}${query}`, token, protocols);
      clients.push(client);
      return client;
    },
    async [Symbol.asyncDispose]() {
      for (const { socket } of clients) socket.terminate();
      await server.close(0);
      await kubelet.close();
    },
  };
}
