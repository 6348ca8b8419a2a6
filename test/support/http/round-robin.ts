import { Agent, createServer, type IncomingMessage, request, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

export interface RoundRobin extends AsyncDisposable {
  url: string;
}

/** A certificate and its private key, both PEM. */
interface Identity {
  certificate: string;
  key: string;
}

/** Header lines of names and values in turns, as Node reads them. */
function linesOf(raw: readonly string[]): string {
  return raw.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('');
}

/** Who asked and how: what a proxy that ends TLS tells the servers behind it. */
function forwarded({ socket, headers }: IncomingMessage): string[] {
  const told = ['X-Forwarded-For', socket.remoteAddress ?? '', 'X-Forwarded-Host', headers.host ?? ''];
  return [...told, 'X-Forwarded-Proto', 'https'];
}

/**
 * A proxy that passes each request to the next server that is alive, as a load balancer in front of replicas does. When
 * a server dies during a request, the client's connection breaks.
 *
 * @param alive host and port of each server for the path, asked for every request
 * @param tls ends TLS with it and adds X-Forwarded-*, as an Ingress controller does. Without it a request passes unchanged.
 */
export async function roundRobin(alive: (path: string) => readonly URL[], tls?: Identity): Promise<RoundRobin> {
  const agent = new Agent({ keepAlive: true });
  let turn = 0;
  const headersOf = (incoming: IncomingMessage): string[] =>
    tls === undefined ? incoming.rawHeaders : [...incoming.rawHeaders, ...forwarded(incoming)];
  const pass: RequestListener = (incoming, outgoing) => {
    const servers = alive(incoming.url ?? '');
    const next = servers[(turn += 1) % servers.length];
    if (next === undefined) {
      outgoing.destroy();
      return;
    }
    const { hostname, port } = next;
    const { method, url: path } = incoming;
    const call = request({ agent, hostname, port, method, path, headers: headersOf(incoming) }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
      outgoing.flushHeaders();
      answer.on('error', () => outgoing.destroy()).pipe(outgoing);
    });
    call.on('error', () => outgoing.destroy());
    outgoing.on('close', () => call.destroy());
    incoming.pipe(call);
  };
  // The replicas announce 65 s to their clients, and the proxy passes that on.
  const options = { keepAliveTimeout: 120_000 };
  const server =
    tls === undefined
      ? createServer(options, pass)
      : createTlsServer({ ...options, key: tls.key, cert: tls.certificate }, pass);
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const { method, url: path = '' } = incoming;
    const servers = alive(path);
    const { hostname, port } = servers[(turn += 1) % servers.length] ?? new URL('http://127.0.0.1:1');
    const call = request({ agent: false, hostname, port, method, path, headers: headersOf(incoming) });
    call.once('upgrade', (answer, stream, first) => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${linesOf(answer.rawHeaders)}\r\n`);
      socket.write(first);
      stream.write(head);
      for (const [from, to] of [
        [socket, stream],
        [stream, socket],
      ] as const) {
        from.on('error', () => to.destroy()).on('close', () => to.destroy());
        from.pipe(to);
      }
    });
    call.once('response', (answer) => {
      socket.write(`HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\r\n${linesOf(answer.rawHeaders)}\r\n`);
      answer.pipe(socket);
    });
    call.on('error', () => socket.destroy());
    call.end();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${(server.address() as AddressInfo).port}`,
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
