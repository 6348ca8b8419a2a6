import { once } from 'node:events';
import type { IncomingMessage, request as Request } from 'node:http';
import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Environment } from '../settings.ts';
import { ConnectionLost } from './failures.ts';
import { authoritiesOf, bare, proxyLogin, proxyOf } from './network.ts';

interface Outgoing {
  method: string;
  headers: Record<string, string>;
  body?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Milliseconds of silence within an answer after which the connection is taken for lost. */
  silenceMs?: number | undefined;
}

/** Milliseconds until a proxy must have let the client through. */
const PROXY_MS = 30_000;
const SILENCE_MS = 300_000;

/** The proxy lets nobody through. */
export class ProxyRefusal extends Error {
  override name = 'ProxyRefusal';

  constructor(host: string, status: number) {
    super(`the proxy ${host} answers ${status}`);
  }
}

const load = createRequire(import.meta.url);

/**
 * Node's HTTP. That of TLS takes the most time of a start, so it is loaded where it is needed. An import would read every
 * export of node:http, and one of them loads a client of WebSockets, which takes longer than all of a command.
 */
function clientFor({ protocol }: URL): { request: typeof Request } {
  return load(protocol === 'https:' ? 'node:https' : 'node:http') as { request: typeof Request };
}

/** A connection to the host of the URL through the proxy, without TLS yet. */
async function tunnel(
  url: URL,
  proxy: URL,
  signal: AbortSignal | undefined,
  ca: string[] | undefined,
): Promise<Duplex> {
  const to = `${url.hostname}:${url.port || 443}`;
  const limit = AbortSignal.timeout(PROXY_MS);
  const request = clientFor(proxy).request({
    host: bare(proxy.hostname),
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    method: 'CONNECT',
    path: to,
    headers: { host: to, ...proxyLogin(proxy) },
    agent: false,
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    ...(ca && { ca }),
  });
  request.end();
  const [answer, socket] = (await once(request, 'connect')) as [IncomingMessage, Duplex];
  if (answer.statusCode === 200) return socket;
  socket.destroy();
  throw new ProxyRefusal(proxy.host, answer.statusCode ?? 0);
}

/** The request to a server, which is not sent yet: directly, or through the proxy of the environment. */
export async function requestTo(url: URL, { method, headers, signal }: Outgoing, env: Environment) {
  const proxy = proxyOf(url, env);
  const options = { method, headers, ...(signal && { signal }) };
  const isTls = url.protocol === 'https:';
  const ca = isTls ? authoritiesOf(env) : undefined;
  const trust = ca && { ca };
  const { request } = clientFor(isTls || proxy === undefined ? url : proxy);
  if (proxy === undefined) return request(url, { ...options, ...trust, agent: false });
  if (!isTls) {
    const to = {
      host: bare(proxy.hostname),
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      path: url.href,
      agent: false,
    };
    return request({ ...options, ...to, headers: { ...headers, host: url.host, ...proxyLogin(proxy) } });
  }
  const socket = await tunnel(url, proxy, signal, ca);
  const { connect } = await import('node:tls');
  const host = bare(url.hostname);
  // A server is not told the name of itself where that is an address (RFC 6066, section 3).
  const secure = connect({ socket, host, servername: isIP(host) === 0 ? host : '', ...trust });
  return request(url, { ...options, createConnection: () => secure });
}

/**
 * One exchange over HTTP. Node's own fetch would do, but the oldest Node that the program runs on has none that knows proxies
 * and authorities. Rejects when there is no answer.
 */
export async function exchange(url: URL, outgoing: Outgoing, env: Environment): Promise<IncomingMessage> {
  const request = await requestTo(url, outgoing, env);
  request.end(outgoing.body);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  // After the first byte: until then an answer may take as long as the caller lets it.
  answer.setTimeout(outgoing.silenceMs ?? SILENCE_MS, () => answer.destroy(new ConnectionLost()));
  request.on('error', () => undefined);
  return answer;
}
