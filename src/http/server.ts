import { createServer, STATUS_CODES, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createApp } from './app.ts';
import { type ApiDeps, createContext } from './context.ts';
import { drain } from './drain.ts';
import type { ErrorCode } from './errors/catalogue.ts';
import { ERRORS } from './errors/catalogue.ts';
import { runReaper } from './instances/reaper.ts';
import { isWebSocket, serveUpgrades } from './upgrades.ts';

/** Limits for slow clients, in ms and bytes. Model calls send up to 32 MiB, so a request may take a minute. */
const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
  shouldUpgradeCallback: isWebSocket,
  maxHeaderSize: 16 * 1024,
} as const;
const MAX_HEADERS = 100;

export interface ApiServer {
  address: { host: string; port: number };
  /**
   * Stops taking requests, gives those under way time to finish, and ends the work in the background. Before that the
   * server answers for another `lastAnswersMs`, in which clients move to other replicas.
   */
  close(lastAnswersMs?: number): Promise<void>;
}

const PARSER_ERRORS: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
};

/** Answers bytes that are no valid request, with JSON too. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const code = PARSER_ERRORS[error.code ?? ''] ?? 'bad_request';
  const { status, help } = ERRORS[code];
  const body = JSON.stringify({ error: { message: help, code } });
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function listen(server: Server, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Serves the API. Rejects when the address cannot be used. */
export async function startApi(deps: ApiDeps & { address: { host: string; port: number } }): Promise<ApiServer> {
  const stopping = new AbortController();
  const context = createContext(deps);
  const app = createApp(context, () => stopping.signal.aborted);
  const server = createServer(SERVER_LIMITS, app);
  const cutUpgraded = serveUpgrades(server, app);
  server.maxHeadersCount = MAX_HEADERS;
  context.connections.guard(server);
  server.on('clientError', answerBrokenRequest);
  const { address: host, port } = await listen(server, deps.address);
  const work = [
    context.lastUsed.run(stopping.signal),
    runReaper(context, stopping.signal),
    context.streams.run(stopping.signal),
  ];
  return {
    address: { host, port },
    async close(lastAnswersMs = 0) {
      stopping.abort();
      context.ports.close();
      await drain(server, deps.clock, { lastAnswersMs, cutUpgraded });
      for (const part of [context.waiter, context.instanceEvents, context.offerEvents]) part.close();
      await Promise.all(work);
    },
  };
}
