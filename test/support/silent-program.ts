import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { StreamEndpoint } from '../../src/kube/streams/websocket.ts';

/** An API server that takes connections and never answers: no program that a session starts ever reads. */
export async function silentProgram(): Promise<{ endpoint: StreamEndpoint; end: () => Promise<void> }> {
  const taken = new Set<Socket>();
  const silence = createServer((socket) => taken.add(socket.on('error', () => undefined)));
  silence.listen(0, '127.0.0.1');
  await once(silence, 'listening');
  const { port } = silence.address() as AddressInfo;
  return {
    endpoint: { server: `http://127.0.0.1:${port}`, tls: {}, headers: async () => ({}) },
    end: async () => {
      for (const socket of taken) socket.destroy();
      silence.close();
      await once(silence, 'close');
    },
  };
}
