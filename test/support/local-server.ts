import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connectTo, type KubeConnection } from '../../src/kube/config/connection.ts';

export type Handler = (request: IncomingMessage, response: ServerResponse, attempt: number) => void | Promise<void>;

export interface LocalServer extends AsyncDisposable {
  readonly connection: KubeConnection;
  /** `METHOD /path?query` of each request so far. */
  readonly requests: string[];
  readonly sockets: number;
}

export interface LocalServerOptions {
  headers?: KubeConnection['headers'];
  prefix?: string;
}

/** A small HTTP server on loopback that answers as the test says; `attempt` counts the requests from 1. */
export async function localServer(handler: Handler, options: LocalServerOptions = {}): Promise<LocalServer> {
  const requests: string[] = [];
  let sockets = 0;
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    void handler(request, response, requests.length);
  });
  server.on('connection', () => {
    sockets += 1;
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const connection = connectTo({
    server: `http://127.0.0.1:${port}${options.prefix ?? ''}`,
    namespace: 'default',
    tls: { rejectUnauthorized: true },
    headers: options.headers ?? (() => Promise.resolve({})),
  });
  return {
    connection,
    requests,
    get sockets() {
      return sockets;
    },
    async [Symbol.asyncDispose]() {
      await connection.close();
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

/** Answers with JSON. */
export function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

/** The body of a failed call, as the API server sends it. */
export function status(code: number, reason: string, message = reason, details: object = {}) {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details };
}

/** The whole body of a request. */
export async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
