import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { runReaper } from '../features/instances/reaper.ts';
import { isWebSocket, serveUpgrades } from '../interface/upgrades.ts';
import { createApp } from './app.ts';
import { brokenRequests } from './broken-request.ts';
import { type ApiDeps, createContext } from './context.ts';
import { drain, listen } from './listen.ts';
import { http } from '../../lib/lean-http.ts';
import { createListener } from './model-calls.ts';
import { createSteps } from './steps.ts';

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

interface Address {
  host: string;
  port: number;
}

export interface ApiServer {
  address: Address;
  /** Where proxies in front connect, when that is an address of its own. */
  ingress: Address | undefined;
  /**
   * Stops taking requests, gives those under way time to finish, and ends the work in the background. Before that the
   * server answers for another `lastAnswersMs`, in which clients move to other replicas.
   */
  close(lastAnswersMs?: number): Promise<void>;
}

export interface ApiOptions extends ApiDeps {
  address: Address;
  /** Where proxies in front connect, who alone are believed about their clients; undefined: at `address`. */
  ingress?: Address | undefined;
}

interface Door {
  address: Address;
  server: Server;
  cutUpgraded: () => void;
}

/** Says 100 Continue when somebody begins to read the body, and not before: a client without a valid key hears its 401 alone. */
function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  const begin = (event: string | symbol): void => {
    if (event !== 'data' && event !== 'readable') return;
    request.off('newListener', begin);
    if (!response.headersSent) response.writeContinue();
  };
  request.on('newListener', begin);
}

/** Serves the API. Rejects when an address cannot be used. */
export async function startApi(options: ApiOptions): Promise<ApiServer> {
  const { address, ingress, ...deps } = options;
  const stopping = new AbortController();
  const context = createContext(deps);
  const steps = createSteps(context);
  const app = createApp(context, steps, () => stopping.signal.aborted);
  const listener = createListener(context, steps, app);
  const answerBroken = brokenRequests((token) => deps.authenticator.authenticate(token) !== undefined);
  const open = async (at: Address, isProxied: boolean): Promise<Door> => {
    const server = http.createServer(SERVER_LIMITS, listener);
    const cutUpgraded = serveUpgrades(server, app);
    server.maxHeadersCount = MAX_HEADERS;
    if (isProxied) server.on('connection', (socket: Socket) => context.proxies.add(socket));
    context.connections.guard(server, isProxied);
    server.on('clientError', answerBroken);
    // Node would close the connection, and answer 417 without a body to an Expect that it does not know.
    server.on('connect', (_request, socket: Socket) => answerBroken(new Error('CONNECT is for proxies.'), socket));
    server.on('checkContinue', (request, response) => {
      continueWhenRead(request, response);
      server.emit('request', request, response);
    });
    server.on('checkExpectation', (request, response) => server.emit('request', request, response));
    const { address: host, port } = await listen(server, at);
    return { address: { host, port }, server, cutUpgraded };
  };
  const front = await open(address, ingress === undefined && deps.trustProxy !== false);
  const behind = ingress && (await open(ingress, true));
  const doors = behind === undefined ? [front] : [front, behind];
  const work = [
    context.lastUsed.run(stopping.signal),
    runReaper(context, stopping.signal),
    context.streams.run(stopping.signal),
  ];
  return {
    address: front.address,
    ingress: behind?.address,
    async close(lastAnswersMs = 0) {
      stopping.abort();
      context.ports.close();
      await Promise.all(
        doors.map(({ server, cutUpgraded }) =>
          drain(server, deps.clock, { lastAnswersMs, endCalls: deps.models.endCalls, cutUpgraded }),
        ),
      );
      for (const part of [context.waiter, context.instanceEvents, context.offerEvents]) part.close();
      await Promise.all(work);
    },
  };
}
