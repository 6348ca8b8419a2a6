import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { ReadStore } from '../kube/watch/store.ts';
import type { ApiKey } from '../resources/api-key.ts';

export interface WebDeps {
  client: KubeClient;
  stores: { apiKeys: ReadStore<ApiKey> };
  clock: Clock;
  log: Logger;
  /** The key that seals sessions, the same on all replicas; read once, on first use. */
  sessionKey: () => Promise<Buffer>;
}
