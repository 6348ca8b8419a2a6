import { randomUUID } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { parseCookie } from 'cookie';
import type { PrincipalRef } from '../access/principal.ts';
import { readAccessToken, signAccessToken, type AccessToken } from './access-token.ts';
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

/** The name of the cookie. Its prefix binds it to this host: another host cannot set one in its place. */
function cookieName(isSecure: boolean): string {
  return isSecure ? '__Host-berth_port' : 'berth_port';
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

export interface EnterDeps extends SignInDeps {
  isAuthorized: (user: PrincipalRef) => boolean;
  /** Whether this is the first use of the ticket. */
  isFirst: (id: string) => Promise<boolean>;
}

function opens(token: AccessToken | undefined, { uid, port }: PortHost): token is AccessToken {
  return token?.uid === uid && token.port === port;
}

/** Answers a ticket with a cookie and a redirect to the page. */
export async function enter(request: IncomingMessage, host: PortHost, deps: EnterDeps): Promise<Answer> {
  if (request.method !== 'GET') return answer(405, 'Open this link with a browser.');
  const text = new URL(request.url ?? '', 'http://localhost').searchParams.get('ticket') ?? undefined;
  const ticket = readAccessToken(text, { key: deps.key, kind: 'ticket', now: deps.now });
  if (!opens(ticket, host) || !deps.isAuthorized(ticket) || !(await deps.isFirst(ticket.id))) return SIGN_IN;
  const expires = deps.now + COOKIE_MS;
  const value = signAccessToken({ ...ticket, path: '/', kind: 'cookie', id: randomUUID(), expires }, deps.key);
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_MS / 1000}${deps.isSecure ? '; Secure' : ''}`;
  return answer(302, 'You are signed in.', {
    location: ticket.path,
    'set-cookie': `${cookieName(deps.isSecure)}=${value}; ${attributes}`,
  });
}

/** The token in the request's cookie, when it is valid for this host. */
export function cookieToken(
  { headers }: IncomingMessage,
  host: PortHost,
  { key, now, isSecure }: SignInDeps,
): AccessToken | undefined {
  const text = parseCookie(headers.cookie ?? '')[cookieName(isSecure)];
  const token = readAccessToken(text, { key, kind: 'cookie', now });
  return opens(token, host) ? token : undefined;
}
