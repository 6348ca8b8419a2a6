import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../../lib/clock.ts';

/** Milliseconds that calls under way get to end. Streams of models take the longest, and are told why they end. */
const DRAIN_MS = 24_000;
/** Milliseconds in which clients read that. */
const LAST_WORDS_MS = 1_000;

/**
 * Stops a server without a failed call at any client. For `lastAnswersMs` it still answers, and closes each connection
 * after its answer: clients move to another replica. Calls under way after that get 24 s, then `endCalls` tells those of
 * models why they end, and a second later all connections end. `cutUpgraded` ends those that switched protocols: the
 * server waits for them but does not list them.
 */
export async function drain(
  server: Server,
  clock: Clock,
  { lastAnswersMs, endCalls, cutUpgraded }: { lastAnswersMs: number; endCalls: () => void; cutUpgraded: () => void },
): Promise<void> {
  server.prependListener('request', (_, response) => {
    response.setHeader('connection', 'close');
  });
  await clock.sleep(lastAnswersMs);
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  let cancel = clock.setTimeout(() => {
    endCalls();
    cancel = clock.setTimeout(() => {
      server.closeAllConnections();
      cutUpgraded();
    }, LAST_WORDS_MS);
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
