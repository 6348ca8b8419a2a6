import { Redis } from 'iovalkey';
import type { Logger } from 'pino';

export interface ValkeyOptions {
  /** Milliseconds that a command may take, and that the server may be silent while one waits. */
  commandTimeout: number;
  log: Logger;
  /** For the log: what the replicas do without Valkey. */
  without: string;
}

const CONNECT_MS = 2000;
const MAX_PAUSE_MS = 5000;

/**
 * A connection to Valkey or Redis (`url`: redis:, rediss:, valkey: or valkeys:) that reconnects by itself. Meanwhile
 * commands fail at once. So they do after one that was not answered in time: a server that hangs costs that one its time,
 * and the others none. It logs each loss and each return once.
 */
export function connectValkey(url: string, { commandTimeout, log, without }: ValkeyOptions): Redis {
  const client = new Redis(url.replace(/^valkey/, 'redis'), {
    connectTimeout: CONNECT_MS,
    commandTimeout,
    socketTimeout: commandTimeout,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (attempt) => Math.min(MAX_PAUSE_MS, 100 * 2 ** Math.min(attempt, 10)),
  });
  let reachable = true;
  client.on('error', (error: Error) => {
    if (reachable) log.warn({ err: error, without }, 'Valkey cannot be reached');
    reachable = false;
  });
  client.on('ready', () => {
    if (!reachable) log.info('Valkey can be reached again');
    reachable = true;
  });
  return client;
}
