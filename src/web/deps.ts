import type { Logger } from 'pino';
import type { KubeClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import type { ReadStore } from '../kube/store.ts';
import type { ApiKey } from '../resources/api-key.ts';

export interface WebDeps {
  client: KubeClient;
  stores: { apiKeys: ReadStore<ApiKey> };
  clock: Clock;
  log: Logger;
  /** The key that seals sessions, the same on all replicas; read once, on first use. */
  sessionKey: () => Promise<Buffer>;
}
