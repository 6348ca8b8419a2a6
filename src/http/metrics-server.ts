import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Registry } from 'prom-client';

/** Serves GET /metrics on a port of its own, apart from what tenants can reach. Rejects when the address is taken. */
export async function startMetrics(options: {
  registry: Registry;
  address: { host: string; port: number };
}): Promise<{ address: { host: string; port: number }; close(): Promise<void> }> {
  const { registry, address } = options;
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 5000 }, (request, response) => {
    if (request.url !== '/metrics' || request.method !== 'GET') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('Only GET /metrics is here.\n');
      return;
    }
    registry.metrics().then(
      (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
      () => response.writeHead(500).end(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(address.port, address.host, resolve);
  });
  const { address: host, port } = server.address() as AddressInfo;
  return {
    address: { host, port },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
