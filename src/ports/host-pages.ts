import { hash, randomUUID } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { parseCookie } from 'cookie';
import { type AccessToken, readAccessToken, signAccessToken } from './access-token.ts';
import type { PortHost } from './address.ts';

/** Where a ticket is turned into a cookie, on the host of the port. */
export const ENTER_PATH = '/.berth/enter';
/** Milliseconds. A ticket is for the next click, a cookie for a day's work. */
export const TICKET_MS = 60_000;
const COOKIE_MS = 12 * 60 * 60_000;

/** What the browser gets instead of the page. */
export interface Answer {
  status: number;
  headers: OutgoingHttpHeaders;
  text: string;
}

/** The name of a cookie. Its prefix binds it to this host: another host cannot set one in its place. */
function cookieName(name: 'port' | 'port_session', isSecure: boolean): string {
  return `${isSecure ? '__Host-' : ''}berth_${name}`;
}

export function answer(status: number, text: string, headers: OutgoingHttpHeaders = {}): Answer {
  const common = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' };
  return { status, headers: { ...common, 'referrer-policy': 'no-referrer', ...headers }, text: `${text}\n` };
}

export const SIGN_IN = answer(
  401,
  'This page opens by a link that works once. To get one, send POST /api/v1/instances/ID/links with your API key.',
);

export function send(response: ServerResponse, { status, headers, text }: Answer): void {
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function sameHost(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host;
}

/**
 * Whether a page of another origin may have sent this, perhaps with the cookie. A person may still follow a link from
 * there. Browsers say the site to HTTPS and localhost alone. Over plain HTTP elsewhere only Origin tells, and a GET has
 * none: what a page of a host beside this one reads is refused by the header of the answer (see `toClient`).
 */
export function isCrossOrigin({ method, headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  if (origin !== undefined && !sameHost(origin, host)) return true;
  const site = headers['sec-fetch-site'];
  const isRead = method === 'GET' || method === 'HEAD';
  // Browsers send one of the two with everything that can write.
  if (site === undefined) return origin === undefined && !isRead;
  if (site === 'same-origin' || site === 'none') return false;
  const followsLink = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return !(followsLink && isRead);
}

export interface SignInDeps {
  key: Buffer;
  /** Milliseconds since the epoch. */
  now: number;
  isSecure: boolean;
}

/** Who comes in: what the ticket or the cookie says, and the session of a person, which comes beside it. */
export interface Visit {
  token: AccessToken;
  session: string | undefined;
}

export interface EnterDeps extends SignInDeps {
  isAuthorized: (visit: Visit) => Promise<boolean>;
  /** Whether this is the first use of the ticket. */
  isFirst: (id: string) => Promise<boolean>;
}

function digestOf(session: string | undefined): string | undefined {
  return session === undefined ? undefined : hash('sha256', session, 'base64url');
}

/** A ticket, and the session beside it, as the query of a link. */
export function ticketQuery(token: AccessToken, session: string | undefined, key: Buffer): URLSearchParams {
  const ticket = signAccessToken({ ...token, session: digestOf(session) }, key);
  return new URLSearchParams({ ticket, ...(session !== undefined && { session }) });
}

/** The visit that two texts stand for; undefined when they are not for this host, or do not belong to each other. */
function visitOf(
  [text, session]: readonly [string | undefined, string | undefined],
  { uid, port }: PortHost,
  options: { key: Buffer; kind: AccessToken['kind']; now: number },
): Visit | undefined {
  const token = readAccessToken(text, options);
  if (token?.uid !== uid || token.port !== port) return undefined;
  if (token.session === undefined) return { token, session: undefined };
  return digestOf(session) === token.session ? { token, session } : undefined;
}

/** Answers a ticket with a cookie and a redirect to the page. */
export async function enter(request: IncomingMessage, host: PortHost, deps: EnterDeps): Promise<Answer> {
  if (request.method !== 'GET') return answer(405, 'Open this link with a browser.');
  const { searchParams } = new URL(request.url ?? '', 'http://localhost');
  const texts = [searchParams.get('ticket') ?? undefined, searchParams.get('session') ?? undefined] as const;
  const visit = visitOf(texts, host, { key: deps.key, kind: 'ticket', now: deps.now });
  if (visit === undefined || !(await deps.isAuthorized(visit)) || !(await deps.isFirst(visit.token.id))) return SIGN_IN;
  const { token, session } = visit;
  const expires = deps.now + COOKIE_MS;
  const port = signAccessToken({ ...token, path: '/', kind: 'cookie', id: randomUUID(), expires }, deps.key);
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_MS / 1000}${deps.isSecure ? '; Secure' : ''}`;
  const cookie = (name: 'port' | 'port_session', value: string): string =>
    `${cookieName(name, deps.isSecure)}=${value}; ${attributes}`;
  return answer(302, 'You are signed in.', {
    location: token.path,
    'set-cookie': [cookie('port', port), ...(session === undefined ? [] : [cookie('port_session', session)])],
  });
}

/** The visit of the request's cookies, when they are valid for this host. */
export function visitByCookie(
  { headers }: IncomingMessage,
  host: PortHost,
  { key, now, isSecure }: SignInDeps,
): Visit | undefined {
  const cookies = parseCookie(headers.cookie ?? '');
  const texts = [cookies[cookieName('port', isSecure)], cookies[cookieName('port_session', isSecure)]] as const;
  return visitOf(texts, host, { key, kind: 'cookie', now });
}
