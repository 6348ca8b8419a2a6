import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Client, Connection } from 'ssh2';
import { afterEach, describe, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { FairBytes } from '../../../src/lib/shares.ts';
import { SendQueue } from '../../../src/ssh/ssh2/send-queue.ts';
import type { SshServer } from '../../../src/ssh/server.ts';
import { channelServer, frame, offer, type ChannelServer } from '../../support/channel-server.ts';
import { loginTo, loneGateway } from '../../support/ssh-gateway.ts';
import { waitFor } from '../../support/wait-for.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
// More than the kernel takes of a stream that nobody reads: a socket has 32 MiB to read and 4 to write, and there are two.
const OFFERED = 96 * MIB;
const TARGET = { namespace: 'team', pod: 'p', container: 'main', uid: 'u', tools: false };
const TO = { srcIP: '127.0.0.1', srcPort: 1, dstIP: '127.0.0.1', dstPort: 80 };

/** What ssh2's client keeps to itself (lib/client.js, 1.17). */
interface Insides {
  _sock: Socket;
  _protocol: {
    directTcpip(channel: number, window: number, packet: number, to: typeof TO): void;
    _handlers: Record<string, (protocol: unknown, channel: number, data: Buffer) => void>;
  };
}

describe('the queue of a client that reads nothing', () => {
  /** Hands over 32 KiB after 32 KiB, as long as it may. */
  function fill(room: number, ofOthers = 0) {
    const shared = new FairBytes(room);
    shared.of('others').change(ofOthers);
    const portion = shared.of('team');
    const socket = Object.assign(new EventEmitter(), {
      destroyed: false,
      writableLength: 0,
      writableHighWaterMark: 64 * KIB,
      cork: () => undefined,
      uncork: () => undefined,
    });
    const client = Object.assign(new EventEmitter(), { _protocol: {} });
    const queue = new SendQueue(client as unknown as Connection, socket as unknown as Socket, portion);
    const write = (): void => {
      if (socket.destroyed) return;
      socket.writableLength += 32 * KIB;
      queue.whenFree(write);
    };
    queue.whenFree(write);
    return { portion, socket };
  }

  it('is long while little waits for all clients, and as short as it can be afterwards', () => {
    expect(fill(8 * MIB).socket.writableLength).toBe(MIB);
    expect(fill(8 * MIB, 8 * MIB).socket.writableLength).toBe(64 * KIB);
    expect(fill(512 * KIB).socket.writableLength).toBe(256 * KIB);
  });

  it('goes on when it was read, and no longer counts when the client is gone', () => {
    const { portion, socket } = fill(8 * MIB, 3);
    socket.writableLength = 0;
    socket.emit('drain');
    expect(portion.left()).toBe(3 * MIB - 2);
    socket.destroyed = true;
    socket.emit('close');
    expect(portion.left()).toBe(4 * MIB - 2);
  });
});

describe('clients that are slower than their programs', () => {
  let kubelet: ChannelServer;
  let server: SshServer;
  const clients: Client[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy();
    await server.close(0);
    await kubelet.close();
  });

  it('are not cut, however fast those are, and read all of it', async () => {
    kubelet = await channelServer('v4.channel.k8s.io');
    const streams: WebSocket[] = [];
    kubelet.onStream = (socket) => {
      socket.send(frame(0, Buffer.from([80, 0])));
      streams.push(socket);
    };
    const started = await loneGateway({ endpoint: kubelet.endpoint, maxBuffered: 8 * MIB }, TARGET);
    server = started.server;
    let read = 0;
    for (let index = 0; index < 8; index += 1) {
      const client = await loginTo(server, started.key);
      if (client === undefined) throw new Error('refused');
      clients.push(client);
      const { _protocol: protocol } = client as unknown as Insides;
      protocol._handlers['CHANNEL_DATA'] = (_protocol, _channel, data) => (read += data.length);
      protocol.directTcpip(0, 0xff_ff_ff_ff, 32 * KIB, TO);
    }
    await waitFor('8 streams', () => streams.length === 8);
    const sockets = clients.map((client) => (client as unknown as Insides)._sock);
    for (const socket of sockets) socket.pause();
    const sent = await Promise.all(streams.map((socket) => offer(socket, OFFERED)));
    for (const bytes of sent) expect(bytes).toBeLessThan(OFFERED);
    for (const socket of sockets) socket.resume();
    const all = sent.reduce((sum, bytes) => sum + bytes, 0);
    await waitFor('the rest', () => read === all || server.connections < 8);
    expect(read).toBe(all);
  });
});
