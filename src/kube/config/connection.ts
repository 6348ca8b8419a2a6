import { Pool } from 'undici';
import type { HeaderSource } from './token-file.ts';

/** TLS material in the shape that `tls.connect`, undici and `ws` share. */
export interface TlsOptions {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  servername?: string;
  rejectUnauthorized: boolean;
}

/** Where the API server is, and the credentials for it. */
export interface KubeEndpoint {
  /** Scheme, host, port and path prefix, with no slash at the end. */
  server: string;
  /** The namespace of the context or of the service account. */
  namespace: string;
  tls: TlsOptions;
  headers: HeaderSource;
}

/** An endpoint with its connections. A WebSocket client opens its own by `server`, `headers()` and `tls`. */
export interface KubeConnection extends KubeEndpoint {
  /** For calls that end. */
  readonly calls: Pool;
  /** For watches and logs, which never end and would use up the connections of calls. */
  readonly streams: Pool;
  close(): Promise<void>;
}

// HTTP/1.1 carries one request per connection at a time, so these bound the requests in flight. Others wait in the pool.
const MAX_CALLS = 32;
// The bounds of followed logs leave connections for the watches of all caches.
const MAX_STREAMS = 256;
// kube-apiserver closes an idle connection after 90 s, common load balancers after 60 s. A write must not meet a socket
// that the other side is closing.
const IDLE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

function pool(endpoint: KubeEndpoint, connections: number): Pool {
  return new Pool(new URL(endpoint.server).origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // The client sets a limit per call; undici's own limits would end a quiet watch after five minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { ...endpoint.tls, timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: 15_000 },
  });
}

/** Opens nothing yet: the pools open connections on demand and keep them. */
export function connectTo(endpoint: KubeEndpoint): KubeConnection {
  const calls = pool(endpoint, MAX_CALLS);
  const streams = pool(endpoint, MAX_STREAMS);
  return {
    ...endpoint,
    calls,
    streams,
    close: async () => {
      await Promise.all([calls.destroy(), streams.destroy()]);
    },
  };
}
