import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../lib/clock.ts';

/** Milliseconds that calls under way get to end. Streams of models take the longest. */
const DRAIN_MS = 25_000;

/**
 * Stops a server without a failed call at any client. For `lastAnswersMs` it still answers, and closes each connection
 * after its answer: clients move to another replica. Calls under way after that get 25 s. `cutUpgraded` ends the
 * connections that switched protocols: the server waits for them but does not list them.
 */
export async function drain(
  server: Server,
  clock: Clock,
  { lastAnswersMs, cutUpgraded }: { lastAnswersMs: number; cutUpgraded: () => void },
): Promise<void> {
  server.prependListener('request', (_, response) => {
    response.setHeader('connection', 'close');
  });
  await clock.sleep(lastAnswersMs);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  const cancel = clock.setTimeout(() => {
    server.closeAllConnections();
    cutUpgraded();
  }, DRAIN_MS);
  await closed;
  cancel();
}

/** Resolves with the address that the server listens on. Rejects when it cannot be used. */
export function listen(server: Server, { host, port }: { host: string; port: number }): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}
