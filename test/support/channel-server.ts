import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import type { StreamEndpoint } from '../../src/kube/streams/websocket.ts';

/** A WebSocket server that speaks the channel protocols as a kubelet does, one handler per accepted stream. */
export interface ChannelServer {
  endpoint: StreamEndpoint;
  /** Paths with their queries, in the order of the calls. */
  paths: string[];
  /** What a stream is served with; set before the call. */
  onStream: (socket: WebSocket) => void;
  close(): Promise<void>;
}

export async function channelServer(protocol: string): Promise<ChannelServer> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => protocol });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const state: ChannelServer = {
    endpoint: { server: `http://127.0.0.1:${port}`, tls: { rejectUnauthorized: true }, headers: async () => ({}) },
    paths: [],
    onStream: () => undefined,
    close: async () => {
      for (const client of server.clients) client.terminate();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  // What a stream is served with at once comes in the same read as the handshake, which is the hardest for a client.
  server.on('headers', (_headers, { socket }) => {
    socket.cork();
    process.nextTick(() => socket.uncork());
  });
  server.on('connection', (socket, request) => {
    state.paths.push(request.url ?? '');
    state.onStream(socket);
  });
  return state;
}

export function frame(channel: number, data: string | Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([channel]), Buffer.from(data)]);
}

export const SUCCESS = JSON.stringify({ metadata: {}, status: 'Success' });

/** Sends up to that many zeros, until none were taken for half a second. Resolves to how many were sent. */
export function offer(socket: WebSocket, bytes: number): Promise<number> {
  const chunk = frame(0, Buffer.alloc(64 * 1024));
  let sent = 0;
  return new Promise((resolve) => {
    let isOver = false;
    const end = (): void => {
      isOver = true;
      clearTimeout(quiet);
      resolve(sent);
    };
    const quiet = setTimeout(end, 500);
    const next = (): void => {
      if (isOver) return;
      if (sent >= bytes) return end();
      sent += chunk.length - 1;
      socket.send(chunk, () => {
        quiet.refresh();
        setImmediate(next);
      });
    };
    next();
  });
}
