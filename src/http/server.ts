import type { Socket } from 'node:net';
import { createApp } from './app.ts';
import { brokenRequests } from './broken-request.ts';
import { type ApiDeps, createContext } from './context.ts';
import { drain } from './drain.ts';
import { runReaper } from './instances/reaper.ts';
import { listen } from './listener.ts';
import { http } from '../lib/lean-http.ts';
import { createListener } from './model-calls.ts';
import { createSteps } from './steps.ts';
import { isWebSocket, serveUpgrades } from './upgrades.ts';

/** Limits for slow clients, in ms and bytes. Model calls send up to 32 MiB, so a request may take a minute. */
const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 2_000,
  shouldUpgradeCallback: isWebSocket,
  maxHeaderSize: 16 * 1024,
  // The app does, after authentication.
  requireHostHeader: false,
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

/** Serves the API. Rejects when the address cannot be used. */
export async function startApi(deps: ApiDeps & { address: { host: string; port: number } }): Promise<ApiServer> {
  const stopping = new AbortController();
  const context = createContext(deps);
  const steps = createSteps(context);
  const app = createApp(context, steps, () => stopping.signal.aborted);
  const server = http.createServer(SERVER_LIMITS, createListener(context, steps, app));
  const cutUpgraded = serveUpgrades(server, app);
  server.maxHeadersCount = MAX_HEADERS;
  context.connections.guard(server);
  const answerBroken = brokenRequests((token) => deps.authenticator.authenticate(token) !== undefined);
  server.on('clientError', answerBroken);
  // Node would close the connection, and answer 417 without a body to an Expect that it does not know.
  server.on('connect', (_request, socket: Socket) => answerBroken(new Error('CONNECT is for proxies.'), socket));
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
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
