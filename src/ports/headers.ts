import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { hopByHop } from '../lib/relay-headers.ts';

/** How a request named the port: by a path of the API that begins with `prefix`, or by the host of the port. */
export type Routing = { kind: 'path'; prefix: string; port: number } | { kind: 'host' };

/** Where the client comes from, which Berth itself says; and Expect, which Berth has answered. */
const SET_BY_BERTH = /^(?:x-forwarded-.*|forwarded|x-real-ip|expect)$/;
/** What a pod may not say on Berth's own origin: it would apply to the whole host, or weaken its protection. */
const NOT_ON_OUR_ORIGIN =
  /^(?:access-control-.*|alt-svc|clear-site-data|content-security-policy.*|cross-origin-.*|link|nel|refresh|report-to|reporting-endpoints|service-worker-allowed|set-cookie|strict-transport-security|www-authenticate|x-request-id)$/;
/** What a pod may not say on any host: it names other servers, or rules for the host that outlive the instance. */
const NEVER = /^(?:alt-svc|strict-transport-security)$/;
const OUR_COOKIE = /^(?:__Host-|__Secure-)?berth_/;
const OUR_KEY = /^(?:bearer +)?berth_/i;
const KEY_HEADERS: ReadonlySet<string> = new Set(['authorization', 'x-api-key', 'api-key']);

export interface Sender {
  address: string;
  protocol: 'http' | 'https';
}

/** Byte for byte what is left: a parser would decode values, and drop what it does not know. */
function withoutOurCookies(cookie: string): string {
  const pairs = cookie.split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair !== '' && !OUR_COOKIE.test(pair)).join('; ');
}

function mayPass(name: string, value: string, routing: Routing): boolean {
  if (KEY_HEADERS.has(name)) return routing.kind === 'host' && !OUR_KEY.test(value);
  // The server in the pod would compare these with a Host that the client did not use.
  return !(routing.kind === 'path' && (name === 'origin' || name === 'referer' || name === 'host'));
}

/** The headers that the pod gets: those of the client without Berth's credentials, and where the client comes from. */
export function toPod(request: IncomingMessage, routing: Routing, sender: Sender): OutgoingHttpHeaders {
  const hops = hopByHop(request.headers.connection);
  const headers: OutgoingHttpHeaders = {};
  for (const [name, values = []] of Object.entries(request.headersDistinct)) {
    if (hops.has(name) || SET_BY_BERTH.test(name) || name === 'cookie' || !mayPass(name, values[0] ?? '', routing))
      continue;
    headers[name] = values.length === 1 ? values[0] : values;
  }
  const cookies = withoutOurCookies(request.headers.cookie ?? '');
  if (cookies !== '') headers['cookie'] = cookies;
  if (routing.kind === 'path') headers['host'] = `localhost:${routing.port}`;
  headers['x-forwarded-for'] = sender.address;
  headers['x-forwarded-proto'] = sender.protocol;
  if (request.headers.host !== undefined) headers['x-forwarded-host'] = request.headers.host;
  if (routing.kind === 'path') headers['x-forwarded-prefix'] = routing.prefix;
  if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
  return headers;
}

/** The pod's Set-Cookie for this host alone; undefined when the cookie looks like one of Berth's. */
function ownCookie(value: string): string | undefined {
  if (OUR_COOKIE.test(value.trimStart())) return undefined;
  const [pair = '', ...attributes] = value.split(';');
  return [pair, ...attributes.filter((one) => !/^\s*domain\s*=/i.test(one))].join(';');
}

/** The location of the pod's redirect below the prefix; undefined when it leaves the pod. */
function locationBelow(prefix: string, location: string, port: number): string | undefined {
  const base = `http://localhost:${port}`;
  const target = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (target?.origin !== base) return undefined;
  // A scheme without slashes is relative for readers of http alone: for others, another host begins there.
  if (/^https?:(?![/\\])/i.test(location)) return undefined;
  // A relative location is relative to a path that already has the prefix.
  if (!/^(?:https?:)?[/\\]/i.test(location)) return location;
  return `${prefix}${target.pathname}${target.search}${target.hash}`;
}

/** The client's headers. A page below an API path has Berth's origin: `sandbox` gives it another, and no scripts. */
export function toClient(headers: IncomingMessage['headersDistinct'], routing: Routing): OutgoingHttpHeaders {
  const hops = hopByHop(headers['connection']);
  const out: OutgoingHttpHeaders = {};
  for (const [name, values = []] of Object.entries(headers)) {
    if (hops.has(name) || (routing.kind === 'path' ? NOT_ON_OUR_ORIGIN : NEVER).test(name)) continue;
    out[name] = values.length === 1 ? values[0] : values;
  }
  if (routing.kind === 'host') {
    // Keeps pages of other hosts from using the answer, also where browsers do not say which site a request comes from.
    out['cross-origin-resource-policy'] ??= 'same-origin';
    const cookies = (headers['set-cookie'] ?? []).flatMap((value) => ownCookie(value) ?? []);
    delete out['set-cookie'];
    if (cookies.length > 0) out['set-cookie'] = cookies;
    return out;
  }
  const location = headers['location']?.[0];
  const kept = location === undefined ? undefined : locationBelow(routing.prefix, location, routing.port);
  delete out['location'];
  return {
    ...out,
    ...(kept !== undefined && { location: kept }),
    'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
  };
}
