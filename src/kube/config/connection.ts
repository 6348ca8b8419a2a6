import { Pool } from '../../lib/lean-http.ts';
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
  /** Another object when the client certificate has changed. */
  readonly tls: TlsOptions;
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

interface Pools {
  tls: TlsOptions;
  calls: Pool;
  streams: Pool;
}

/** The pools with the certificate of the endpoint. Those with an earlier one end with what is under way on them. */
class Connection implements KubeConnection {
  readonly #endpoint: KubeEndpoint;
  /** Those that are not closed yet, the newest last. */
  readonly #all: Pools[] = [];

  constructor(endpoint: KubeEndpoint) {
    this.#endpoint = endpoint;
  }

  get server(): string {
    return this.#endpoint.server;
  }

  get namespace(): string {
    return this.#endpoint.namespace;
  }

  get tls(): TlsOptions {
    return this.#endpoint.tls;
  }

  get headers(): HeaderSource {
    return this.#endpoint.headers;
  }

  get calls(): Pool {
    return this.#current().calls;
  }

  get streams(): Pool {
    return this.#current().streams;
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.flatMap(({ calls, streams }) => [calls.destroy(), streams.destroy()]));
  }

  #current(): Pools {
    const { tls } = this.#endpoint;
    const known = this.#all.at(-1);
    if (known?.tls === tls) return known;
    if (known !== undefined) void this.#endOf(known);
    const pools = { tls, calls: pool(this.#endpoint, MAX_CALLS), streams: pool(this.#endpoint, MAX_STREAMS) };
    this.#all.push(pools);
    return pools;
  }

  // An API server judges each request by the certificate of its connection, so none begins on an earlier one.
  async #endOf(pools: Pools): Promise<void> {
    await Promise.all([pools.calls.close(), pools.streams.close()]);
    this.#all.splice(this.#all.indexOf(pools), 1);
  }
}

/** Opens nothing yet: the pools open connections on demand and keep them. */
export function connectTo(endpoint: KubeEndpoint): KubeConnection {
  return new Connection(endpoint);
}
