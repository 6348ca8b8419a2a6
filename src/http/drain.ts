import type { Server } from 'node:http';
import type { Clock } from '../lib/clock.ts';

/** Milliseconds that calls under way get to end; streams of models are the long ones. */
const DRAIN_MS = 25_000;

/**
 * Ends a server without a failed call at any client. For `lastAnswersMs` it goes on to answer, and each answer is the
 * last one of its connection: a client that keeps its connections and calls again and again moves to another replica
 * before they are closed. Calls that are under way then get 25 seconds. `cutUpgraded` ends the connections that switched
 * protocols: the server waits for them, but knows them no more.
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
