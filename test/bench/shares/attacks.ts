import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Client } from 'ssh2';
import type { Target } from './world.ts';
import { ssh2 } from '../../../src/ssh/ssh2/load.ts';

/** The attacker's address. The honest tenant comes from another one. */
const FROM = '127.0.0.2';
const MIB = 1024 * 1024;
/** How many of a thing are begun at once. */
const AT_ONCE = 64;

/** An attack gets into position and resolves; it goes on until its process ends. */
type Attack = (target: Target) => Promise<void>;

async function each(count: number, work: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await work(index).catch(() => undefined);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, lane));
}

async function socketTo(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress: FROM });
  // A stalled upload waits for the same socket many times.
  socket.setMaxListeners(0).on('error', () => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

function head(path: string, token: string, length: number): string {
  return `POST ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\nx-berth-dashboard: 1\r\ncontent-length: ${length}\r\n\r\n`;
}

/** A body of which the last byte never comes. */
async function stall(port: number, path: string, token: string, length: number): Promise<void> {
  const socket = await socketTo(port);
  socket.resume();
  socket.write(head(path, token, length));
  const part = Buffer.alloc(Math.min(MIB, length - 1), ' ');
  for (let sent = 0; sent < length - 1; sent += part.length) {
    const rest = part.subarray(0, Math.min(part.length, length - 1 - sent));
    if (socket.destroyed) return;
    if (!socket.write(rest)) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
  }
}

/** Sends the same request again and again on `width` connections. */
function hammer(port: number, width: number, request: (index: number) => string): void {
  for (let index = 0; index < width; index += 1) {
    const again = async (): Promise<void> => {
      const socket = await socketTo(port);
      socket.on('data', () => socket.write(request(index)));
      socket.on('close', () => setTimeout(() => void again().catch(() => undefined), 100));
      socket.write(request(index));
    };
    void again().catch(() => undefined);
  }
}

function post(path: string, token: string, body: unknown): string {
  const text = JSON.stringify(body);
  return `${head(path, token, Buffer.byteLength(text))}${text}`;
}

/** Fetches whole answers one after the other, `width` at a time. */
function fetchForEver(width: number, one: (index: number) => Promise<Response>): void {
  for (let index = 0; index < width; index += 1) {
    const again = (): void => {
      void one(index)
        .then((answer) => answer.arrayBuffer())
        .catch(() => undefined)
        .then(again);
    };
    again();
  }
}

const CHAT = '/api/v1/chat/completions';
const chat = (model: string, text = 'Hello') => ({ model, messages: [{ role: 'user', content: text }] });
const tokenOf = ({ side }: Target, index = 0): string => side.tokens[index % side.tokens.length] ?? '';

async function login({ ssh, side }: Target): Promise<Client> {
  const client = new ssh2.Client();
  client.on('error', () => undefined);
  const sock = await socketTo(ssh);
  client.connect({ sock, username: side.user, privateKey: side.privateKey });
  await Promise.race([once(client, 'ready'), once(client, 'close')]);
  return client;
}

export const ATTACKS = {
  signIns: (target) => each(200, () => stall(target.http, '/dashboard/api/session', 'none', MIB)),
  creations: (target) => each(200, () => stall(target.http, '/api/v1/instances', tokenOf(target), MIB)),
  sockets: (target) =>
    each(10_000, async () => {
      const socket = await socketTo(target.http);
      socket.write('GET /api/v1/instances HTTP/1.1\r\nhost: bench\r\n\r\n');
      await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    }),
  uploads: (target) => each(32, (index) => stall(target.http, CHAT, tokenOf(target, index), 32 * MIB)),
  silentEngine: (target) =>
    each(1200, async (index) => {
      const socket = await socketTo(target.http);
      socket.resume();
      socket.write(post(CHAT, tokenOf(target, index), chat('hang', 'x'.repeat(100_000))));
    }),
  brokenEngine: async (target) =>
    hammer(target.http, 8, (index) => post(CHAT, tokenOf(target, index), chat('reset', `${index}`))),
  responses: async (target) => {
    const body = { model: 'fine', input: 'Hello', store: true };
    await each(9_000, async (index) => {
      const headers = { authorization: `Bearer ${tokenOf(target, index)}`, 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(body) };
      await (await fetch(`http://127.0.0.1:${target.http}/api/v1/responses`, init)).text();
    });
  },
  longResponses: async (target) => {
    const headers = { authorization: `Bearer ${tokenOf(target)}`, 'content-type': 'application/json' };
    const input = Array.from({ length: 60_000 }, (_, index) => ({ role: 'user', content: `${index}` }));
    const init = { method: 'POST', headers, body: JSON.stringify({ model: 'fine', input, store: true }) };
    const answer = await fetch(`http://127.0.0.1:${target.http}/api/v1/responses`, init);
    const { id } = (await answer.json()) as { id: string };
    fetchForEver(6, () =>
      fetch(`http://127.0.0.1:${target.http}/api/v1/responses/${id}/input_items?limit=1`, { headers }),
    );
  },
  strangers: async (target) => {
    const paths = ['/openapi.json', '/docs/swagger-ui-bundle.js', '/docs/api.md', '/livez', '/api/v1/offers'];
    const headers = { 'accept-encoding': 'br' };
    fetchForEver(40, (index) => fetch(`http://127.0.0.1:${target.http}${paths[index % paths.length]}`, { headers }));
  },
  claims: async (target) =>
    hammer(target.http, 256, () => post('/api/v1/instances', tokenOf(target), { name: 'attack', disk_gb: 1 })),
  streams: (target) =>
    each(6_000, async (index) => {
      const socket = await socketTo(target.http);
      const token = tokenOf(target, index);
      socket.write(
        `GET /api/v1/offers HTTP/1.1\r\nhost: bench\r\naccept: text/event-stream\r\nauthorization: Bearer ${token}\r\n\r\n`,
      );
      await Promise.race([once(socket, 'data'), once(socket, 'close')]);
      socket.resume();
    }),
  pendingLogins: (target) =>
    each(2_000, async () => {
      const socket = await socketTo(target.ssh);
      socket.resume();
      socket.write('SSH-2.0-attacker\r\n');
    }),
  rekeys: async (target) => {
    for (let count = 0; count < 8; count += 1) void rekeyForEver(target);
  },
  connections: (target) => each(1_500, () => login(target)),
} as const satisfies Record<string, Attack>;

/** What ssh2's client keeps to itself (lib/client.js, 1.17). */
interface Insides {
  _protocol?: { rekey(): void; _kex?: unknown };
}

/** Never logs in, and asks for one key exchange after the other. */
async function rekeyForEver(target: Target): Promise<void> {
  for (;;) {
    const client = new ssh2.Client();
    client.on('error', () => undefined);
    const sock = await socketTo(target.ssh);
    // A user without a key: the gateway waits for another method, and the client asks for keys again instead.
    client.on('handshake', () => setImmediate(() => rekey(client)));
    client.connect({ sock, username: 'nobody', authHandler: () => undefined });
    await once(sock, 'close');
  }
}

function rekey(client: Client): void {
  try {
    (client as unknown as Insides)._protocol?.rekey();
  } catch {
    // An exchange is under way; the next handshake event asks again.
  }
}

export type AttackName = keyof typeof ATTACKS;
