import express from 'express';
import { ApiError } from '../http/interface/errors/api-error.ts';
import { errorHandler } from '../http/interface/errors/handler.ts';
import { brokenRequests } from '../http/server/broken-request.ts';
import { Connections } from '../http/server/connections.ts';
import { drain, listen } from '../http/server/listen.ts';
import { requestId, requestLog } from '../http/server/request-log.ts';
import { requireHost, security } from '../http/server/security.ts';
import { http } from '../lib/lean-http.ts';
import { dashboardRouter } from './router.ts';
import type { WebDeps } from './session-routes.ts';

/** Limits for slow clients, in ms and bytes. The page sends a token at most, and few people use it at once. */
const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 15_000,
  connectionsCheckingInterval: 2_000,
  maxHeaderSize: 16 * 1024,
  // The app does, with a body.
  requireHostHeader: false,
} as const;
const MAX_HEADERS = 100;
const MAX_CONNECTIONS = 1_000;
const MAX_PER_ADDRESS = 100;

export interface DashboardServer {
  address: { host: string; port: number };
  /** Stops as the API's server does: see `drain`. */
  close(lastAnswersMs: number): Promise<void>;
}

export interface DashboardOptions extends WebDeps {
  address: { host: string; port: number };
  /** Value of Express's `trust proxy`. */
  trustProxy: boolean | number | string;
}

/** Serves /dashboard and nothing else. Rejects when the address cannot be used. */
export async function startDashboard(options: DashboardOptions): Promise<DashboardServer> {
  const { address, clock, log, trustProxy } = options;
  const app = express();
  app.disable('x-powered-by');
  app.enable('case sensitive routing');
  app.set('trust proxy', trustProxy);
  app.set('query parser', false);
  app.use(requestId, requestLog(options), security, requireHost);
  app.use('/dashboard', dashboardRouter(options));
  app.use(() => {
    throw new ApiError('not_found', 'This server has the dashboard and nothing else. Open /dashboard.');
  });
  app.use(errorHandler(log));
  const server = http.createServer(SERVER_LIMITS, app);
  server.maxHeadersCount = MAX_HEADERS;
  new Connections({ most: MAX_CONNECTIONS, perAddress: MAX_PER_ADDRESS }).guard(server, trustProxy !== false);
  // It has no endpoint that takes a key.
  server.on(
    'clientError',
    brokenRequests(() => true),
  );
  const { address: host, port } = await listen(server, address);
  return {
    address: { host, port },
    close: (lastAnswersMs) =>
      drain(server, clock, { lastAnswersMs, endCalls: () => undefined, cutUpgraded: () => undefined }),
  };
}
