import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { once } from 'node:events';
import type { WebSocket } from 'ws';
import { forwardPort } from '../../../src/kube/streams/port-forward.ts';
import { channelServer, frame, type ChannelServer } from '../../support/channel-server.ts';

const TARGET = { namespace: 'tenant', pod: 'i-one', port: 8080 };
const PORT = Uint8Array.of(0x90, 0x1f);
let server: ChannelServer;

beforeEach(async () => {
  server = await channelServer('v4.channel.k8s.io');
});
afterEach(async () => {
  await server.close();
});

describe('forwardPort', () => {
  it('carries bytes both ways and drops the port numbers', async () => {
    server.onStream = (socket) => {
      socket.send(frame(0, PORT));
      socket.send(frame(1, PORT));
      socket.on('message', (data) => socket.send(frame(0, (data as Buffer).subarray(1))));
    };
    const stream = await forwardPort(server.endpoint, TARGET);
    stream.write('ping');
    const [answer] = await once(stream, 'data');
    expect(String(answer)).toBe('ping');
    expect(server.paths).toEqual(['/api/v1/namespaces/tenant/pods/i-one/portforward?ports=8080']);
    stream.destroy();
  });

  it('fails with the words of the kubelet, and closes the connection', async () => {
    const closed = vi.fn();
    server.onStream = (socket) => {
      socket.on('close', closed);
      socket.send(frame(1, PORT));
      socket.send(frame(1, 'connection refused'));
    };
    const stream = await forwardPort(server.endpoint, TARGET);
    await vi.waitFor(() => expect(stream.closed).toBe(true));
    expect(stream.errored).toMatchObject({ name: 'ForwardError', message: 'connection refused' });
    await vi.waitFor(() => expect(closed).toHaveBeenCalled());
  });

  it('ends when the pod ends and not when only our side does', async () => {
    const closed = vi.fn();
    const sockets: WebSocket[] = [];
    server.onStream = (socket) => {
      socket.on('close', closed);
      sockets.push(socket);
      socket.send(frame(0, PORT));
      socket.send(frame(0, 'late'));
    };
    const stream = await forwardPort(server.endpoint, TARGET);
    stream.end();
    const [late] = await once(stream, 'data');
    expect(String(late)).toBe('late');
    expect(closed).not.toHaveBeenCalled();
    const ended = once(stream, 'end');
    sockets[0]?.close();
    await ended;
  });
});
