import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RoundRobin extends AsyncDisposable {
  url: string;
}

/**
 * A proxy that passes each request unchanged to the next server that is alive, as a load balancer in front of replicas
 * does. When a server dies during a request, the client's connection breaks.
 *
 * @param alive host and port of each server, asked for every request
 */
export async function roundRobin(alive: () => readonly URL[]): Promise<RoundRobin> {
  const agent = new Agent({ keepAlive: true });
  let turn = 0;
  // The replicas announce 65 s to their clients, and the proxy passes that on.
  const server = createServer({ keepAliveTimeout: 120_000 }, (incoming, outgoing) => {
    const servers = alive();
    const next = servers[(turn += 1) % servers.length];
    if (next === undefined) {
      outgoing.destroy();
      return;
    }
    const { hostname, port } = next;
    const { method, url: path, rawHeaders: headers } = incoming;
    const call = request({ agent, hostname, port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      outgoing.flushHeaders();
      answer.on('error', () => outgoing.destroy()).pipe(outgoing);
    });
    call.on('error', () => outgoing.destroy());
    outgoing.on('close', () => call.destroy());
    incoming.pipe(call);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      agent.destroy();
      const closed = new Promise((resolve) => {
        server.close(resolve);
      });
      server.closeAllConnections();
      await closed;
    },
  };
}
