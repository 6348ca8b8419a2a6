import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { Socket } from 'node:net';
import { promisify } from 'node:util';
import pino from 'pino';
import type { Client, ClientChannel } from 'ssh2';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { guardRekey, type LiveConnection } from '../../../src/ssh/connection.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { channelServer, frame, offer, type ChannelServer } from '../../support/channel-server.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';

const MIB = 1024 * 1024;
const TARGET = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: false };
const PORT = Buffer.from([80, 0]);

/** What ssh2's client keeps to itself (lib/client.js, 1.17). */
interface Insides {
  _sock: Socket;
  _protocol: {
    rekey(): void;
    directTcpip(channel: number, window: number, packet: number, to: Record<string, string | number>): void;
  };
}

let kubelet: ChannelServer;
let server: SshServer;
let client: Client;
let inside: Insides;

beforeEach(async () => {
  kubelet = await channelServer('v4.channel.k8s.io');
  const started = await loneGateway({ endpoint: kubelet.endpoint }, TARGET);
  server = started.server;
  const connected = await loginTo(server, started.key);
  if (connected === undefined) throw new Error('refused');
  client = connected;
  inside = client as unknown as Insides;
});
afterEach(async () => {
  client.destroy();
  await server.close(0);
  await kubelet.close();
});

function nextStream(): Promise<WebSocket> {
  return new Promise((resolve) => {
    kubelet.onStream = (socket) => {
      socket.send(frame(0, PORT));
      resolve(socket);
    };
  });
}

describe('a rekey', () => {
  it('that the client leaves unfinished holds back what its pod sends', async () => {
    const stream = nextStream();
    const to = { srcIP: '127.0.0.1', srcPort: 1, dstIP: '127.0.0.1', dstPort: 80 };
    inside._protocol.directTcpip(0, 0xff_ff_ff_ff, 32 * 1024, to);
    const socket = await stream;
    inside._sock.removeAllListeners('data');
    const answer = once(inside._sock, 'data');
    inside._protocol.rekey();
    await answer;
    expect(await offer(socket, 64 * MIB)).toBeLessThan(16 * MIB);
  });

  it('in the middle of a copy loses nothing of it', async () => {
    const content = randomBytes(16 * MIB);
    const stream = nextStream();
    const forward = promisify<string, number, string, number, ClientChannel>(client.forwardOut.bind(client));
    const channel = await forward('127.0.0.1', 1, '127.0.0.1', 80);
    const socket = await stream;
    for (let at = 0; at < content.length; at += 64 * 1024) socket.send(frame(0, content.subarray(at, at + 64 * 1024)));
    const hash = createHash('sha256');
    let read = 0;
    let rekeys = 0;
    client.on('handshake', () => (rekeys += 1));
    await new Promise<void>((resolve) => {
      channel.on('data', (bytes: Buffer) => {
        hash.update(bytes);
        if (Math.floor(read / (4 * MIB)) < Math.floor((read + bytes.length) / (4 * MIB))) inside._protocol.rekey();
        read += bytes.length;
        if (read === content.length) resolve();
      });
    });
    expect(hash.digest('hex')).toBe(createHash('sha256').update(content).digest('hex'));
    expect(rekeys).toBeGreaterThanOrEqual(3);
  });
});

describe('rekeys without traffic', () => {
  it('end the connection when they are many', async () => {
    let rekeys = 0;
    const closed = new Promise((resolve) => {
      client.once('close', () => resolve(undefined));
    });
    const many = new Promise((resolve) => {
      client.on('handshake', () => {
        rekeys += 1;
        if (rekeys === 50) resolve(undefined);
        else inside._protocol.rekey();
      });
    });
    inside._protocol.rekey();
    await Promise.race([closed, many]);
    expect(rekeys).toBe(8);
  });
});

describe('the time that a rekey may take', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    [true, false],
    [false, true],
  ])('ends it (finished in time: %s)', (inTime, ended) => {
    const socket = Object.assign(new EventEmitter(), { destroy: vi.fn() });
    const exchange = { _kexinit: Buffer.alloc(1) as Buffer | undefined };
    const peer = Object.assign(new EventEmitter(), { _protocol: exchange });
    const gone = new AbortController().signal;
    const gateway = { log: pino({ level: 'silent' }) };
    guardRekey({ client: peer, socket, gone, gateway, id: 'c' } as unknown as LiveConnection);
    socket.emit('data');
    vi.advanceTimersByTime(119_000);
    socket.emit('data');
    if (inTime) {
      exchange._kexinit = undefined;
      peer.emit('rekey');
    }
    vi.advanceTimersByTime(2_000);
    expect(socket.destroy.mock.calls.length > 0).toBe(ended);
  });
});
