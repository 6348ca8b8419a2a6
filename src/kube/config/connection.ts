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

/** Where the API server is and how to prove who we are. */
export interface KubeEndpoint {
  /** Scheme, host, port and path prefix, with no slash at the end. */
  server: string;
  /** The namespace of the context or of the service account. */
  namespace: string;
  tls: TlsOptions;
  /** The headers that authenticate a request; `refresh` after a 401 reads the credential anew. */
  headers: HeaderSource;
}

/**
 * An endpoint with its connections. A WebSocket client uses `server`, `headers()` and `tls` with connections of its own.
 */
export interface KubeConnection extends KubeEndpoint {
  /** For calls that end. */
  readonly calls: Pool;
  /** For watches and logs: apart, so that streams which never end cannot use up the connections of calls. */
  readonly streams: Pool;
  close(): Promise<void>;
}

// HTTP/1.1 carries one request per connection at a time, so these bound what is in flight; more wait in the pool.
const MAX_CALLS = 32;
const MAX_STREAMS = 256;
// Below the 90 s after which kube-apiserver, and the 60 s after which common load balancers, close an idle connection:
// a write must not meet a socket that the other side is closing.
const IDLE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 10_000;

function pool(endpoint: KubeEndpoint, connections: number): Pool {
  return new Pool(new URL(endpoint.server).origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: IDLE_MS,
    // Limits are per call and set by the client; undici's own would end a quiet watch after five minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { ...endpoint.tls, timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: 15_000 },
  });
}

/** Opens nothing yet: connections are made on demand and kept. */
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
