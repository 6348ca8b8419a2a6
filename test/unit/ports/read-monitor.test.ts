import { afterEach, beforeEach, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { monitorReader } from '../../../src/ports/read-monitor.ts';
import { channelServer, frame, type ChannelServer } from '../../support/channel-server.ts';

const POD = { namespace: 'tenant', pod: 'one-1' };
const PORT = Uint8Array.of(0x9d, 0xac);
const HEAD = 'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n';
let server: ChannelServer;

beforeEach(async () => {
  server = await channelServer('v4.channel.k8s.io');
});
afterEach(() => server.close());

/** Reads from a pod whose exporter answers so to a request. */
function read(answer: (socket: WebSocket) => void, signal = AbortSignal.timeout(10_000)): Promise<string> {
  server.onStream = (socket) => {
    socket.send(frame(0, PORT));
    socket.send(frame(1, PORT));
    socket.once('message', () => answer(socket));
  };
  return monitorReader(server.endpoint)(POD, signal);
}

it('reads to the end of the connection', async () => {
  const text = await read((socket) => {
    socket.send(frame(0, `${HEAD}\r\n{"step"`));
    socket.send(frame(0, ':15}'));
    socket.close();
  });
  expect(text).toBe('{"step":15}');
  expect(server.paths).toEqual(['/api/v1/namespaces/tenant/pods/one-1/portforward?ports=44189']);
});

// The kubelet ends a connection a second after the pod did.
it('does not wait for the end of an answer whose length it knows', async () => {
  const text = await read((socket) => {
    socket.send(frame(0, `${HEAD}Content-Length: 13\r\n\r\n{"step"`));
    socket.send(frame(0, ':"é"}'));
  });
  expect(text).toBe('{"step":"é"}');
});

it.each<[string, (socket: WebSocket) => void, RegExp]>([
  ['nothing listens', (socket) => socket.send(frame(1, 'connection refused')), /connection refused/],
  [
    'another program answers',
    (socket) => {
      socket.send(frame(0, 'SSH-2.0-OpenSSH\r\n'));
      socket.close();
    },
    /does not answer as one/,
  ],
  [
    'it answers without an end',
    (socket) => {
      const megabyte = Buffer.alloc(2 ** 20, 0x20);
      for (let count = 0; count < 3; count += 1) socket.send(frame(0, megabyte));
    },
    /too long/,
  ],
])('fails when %s', async (_what, answer, words) => {
  await expect(read(answer)).rejects.toThrow(words);
});

it('is cut by its signal', async () => {
  const over = new AbortController();
  await expect(read(() => over.abort(), over.signal)).rejects.toThrow(/did not answer in time/);
});
