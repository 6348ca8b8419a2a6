import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';

/** How a request came: as a call of the API below `prefix`, or to the host of a port. */
export type Way = { kind: 'call'; prefix: string; port: number } | { kind: 'host' };

// RFC 9110 section 7.6.1, and what proxies add to it.
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Where a client claims to come from, which only we may say; Expect was answered by us. */
const OURS = /^(?:x-forwarded-.*|forwarded|x-real-ip|expect)$/;
/** What an answer may not say on Berth's own origin: these speak for the whole host, or loosen what holds it. */
const NOT_ON_OUR_ORIGIN =
  /^(?:access-control-.*|alt-svc|clear-site-data|content-security-policy.*|cross-origin-.*|link|nel|refresh|report-to|reporting-endpoints|service-worker-allowed|set-cookie|strict-transport-security|www-authenticate|x-request-id)$/;
/** What none may say on any: our sign-in cookies are ours, and other servers do not speak for this one. */
const NEVER = /^(?:alt-svc|strict-transport-security)$/;
const OUR_COOKIE = /^(?:__Host-|__Secure-)?berth_/;
const OUR_KEY = /^(?:bearer +)?berth_/i;

export interface Sender {
  address: string;
  protocol: 'http' | 'https';
}

/** Names that a Connection header makes hop-by-hop, beside the usual ones. */
function hopsOf(headers: IncomingHttpHeaders): Set<string> {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  return new Set([...HOP_BY_HOP, ...named]);
}

function withoutOurCookies(cookie: string): string {
  const pairs = cookie.split(';').map((pair) => pair.trim());
  return pairs.filter((pair) => pair !== '' && !OUR_COOKIE.test(pair)).join('; ');
}

function mayPass(name: string, value: string, way: Way): boolean {
  if (name === 'authorization' || name === 'x-api-key') return way.kind === 'host' && !OUR_KEY.test(value);
  // A program's Origin would be compared with a Host that it does not know.
  return !(way.kind === 'call' && (name === 'origin' || name === 'referer' || name === 'host'));
}

/** The headers that the pod gets: those of the client without what is Berth's, and who it was. */
export function toPod(request: IncomingMessage, way: Way, sender: Sender): OutgoingHttpHeaders {
  const hops = hopsOf(request.headers);
  const headers: OutgoingHttpHeaders = {};
  for (const [name, values = []] of Object.entries(request.headersDistinct)) {
    if (hops.has(name) || OURS.test(name) || name === 'cookie' || !mayPass(name, values[0] ?? '', way)) continue;
    headers[name] = values.length === 1 ? values[0] : values;
  }
  const cookies = withoutOurCookies(request.headers.cookie ?? '');
  if (cookies !== '') headers['cookie'] = cookies;
  if (way.kind === 'call') headers['host'] = `localhost:${way.port}`;
  headers['x-forwarded-for'] = sender.address;
  headers['x-forwarded-proto'] = sender.protocol;
  if (request.headers.host !== undefined) headers['x-forwarded-host'] = request.headers.host;
  if (way.kind === 'call') headers['x-forwarded-prefix'] = way.prefix;
  if (request.headers['transfer-encoding'] !== undefined) headers['transfer-encoding'] = 'chunked';
  return headers;
}

/** A cookie for this host alone, and none that looks like ours. */
function cookieOf(value: string): string | undefined {
  if (OUR_COOKIE.test(value.trimStart())) return undefined;
  const [pair = '', ...attributes] = value.split(';');
  return [pair, ...attributes.filter((one) => !/^\s*domain\s*=/i.test(one))].join(';');
}

/** Where a redirect of the pod leads below the prefix; undefined when it leaves the pod. */
function locationBelow(prefix: string, location: string, port: number): string | undefined {
  const base = `http://localhost:${port}`;
  const target = URL.canParse(location, base) ? new URL(location, base) : undefined;
  if (target?.origin !== base) return undefined;
  // Relative ones are relative to a path that already has the prefix.
  if (!/^(?:https?:)?\//i.test(location)) return location;
  return `${prefix}${target.pathname}${target.search}${target.hash}`;
}

/**
 * The headers that the client gets. A call of the API is answered on Berth's own origin, so whatever comes is kept from
 * acting there: `sandbox` makes a page that a browser shows nevertheless a stranger without scripts.
 */
export function toClient(headers: IncomingMessage['headersDistinct'], way: Way): OutgoingHttpHeaders {
  const hops = hopsOf({ connection: headers['connection']?.join() });
  const out: OutgoingHttpHeaders = {};
  for (const [name, values = []] of Object.entries(headers)) {
    if (hops.has(name) || (way.kind === 'call' ? NOT_ON_OUR_ORIGIN : NEVER).test(name)) continue;
    out[name] = values.length === 1 ? values[0] : values;
  }
  if (way.kind === 'host') {
    const cookies = (headers['set-cookie'] ?? []).flatMap((value) => cookieOf(value) ?? []);
    delete out['set-cookie'];
    if (cookies.length > 0) out['set-cookie'] = cookies;
    return out;
  }
  const location = headers['location']?.[0];
  const kept = location === undefined ? undefined : locationBelow(way.prefix, location, way.port);
  delete out['location'];
  return {
    ...out,
    ...(kept !== undefined && { location: kept }),
    'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
  };
}
