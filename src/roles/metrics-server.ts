import type { RequestListener, Server } from 'node:http';
import type { Registry } from 'prom-client';
import type { Address } from '../config/config.ts';
import { Connections } from '../http/server/connections.ts';
import { http, https } from '../lib/lean-http.ts';
import { type CertificateFiles, firstPair, keepRenewed } from './served-certificate.ts';

/** Far more than one Prometheus and one kubelet need. Beyond them the oldest give way, so that a probe always gets in. */
const BOUNDS = { most: 256, perAddress: 64 };
/** Limits for slow clients, in ms. */
const SERVER_LIMITS = { headersTimeout: 5_000, requestTimeout: 10_000, connectionsCheckingInterval: 2_000 };

/** Milliseconds for a handshake. */
const HANDSHAKE = { handshakeTimeout: 5_000 };

/**
 * Serves /metrics, /livez and /readyz without a key, for Prometheus and the kubelet. Keep the port inside the cluster.
 * @param files of the certificate; undefined: plain HTTP. Throws ConfigError when they cannot be used
 */
export async function startMetricsServer(
  address: Address,
  registry: Registry,
  health: { ready: () => boolean },
  files?: CertificateFiles,
): Promise<{ port: number; close(): Promise<void> }> {
  const answer: RequestListener = (request, response) => {
    const path = request.url?.split('?')[0];
    if (path === '/metrics') {
      void registry.metrics().then(
        (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
        () => response.writeHead(500).end(),
      );
      return;
    }
    const ok = path === '/livez' || (path === '/readyz' && health.ready());
    const known = path === '/livez' || path === '/readyz';
    response.writeHead(ok ? 200 : known ? 503 : 404, { 'content-type': 'text/plain' }).end(ok ? 'ok\n' : 'not ready\n');
  };
  const { server, stop } = await createServer(answer, files);
  new Connections(BOUNDS).guard(server, false);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => resolve());
  });
  const bound = server.address();
  return {
    port: typeof bound === 'object' && bound !== null ? bound.port : address.port,
    close: () =>
      new Promise((resolve) => {
        stop();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function createServer(
  answer: RequestListener,
  files: CertificateFiles | undefined,
): Promise<{ server: Server; stop: () => void }> {
  if (files === undefined) return { server: http.createServer(SERVER_LIMITS, answer), stop: () => undefined };
  const pair = await firstPair(files.folder);
  const server = https.createServer({ ...SERVER_LIMITS, ...HANDSHAKE, ...pair }, answer);
  return { server, stop: keepRenewed(server, pair, files) };
}
