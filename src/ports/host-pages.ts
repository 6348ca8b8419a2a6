import { randomUUID } from 'node:crypto';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { PortHost } from './address.ts';
import { readPass, signPass, type Pass } from './pass.ts';

/** Where a ticket is turned into a cookie, on the host of the port. */
export const ENTER_PATH = '/.berth/enter';
/** Milliseconds. A ticket is for the next click, a cookie for a day's work. */
export const TICKET_MS = 60_000;
const COOKIE_MS = 12 * 60 * 60_000;

/** What the browser is told instead of the page. */
export interface Answer {
  status: number;
  headers: OutgoingHttpHeaders;
  text: string;
}

/** What the cookie is called. The prefix binds it to this host: a sister host cannot set one in its place. */
export function cookieName(isSecure: boolean): string {
  return isSecure ? '__Host-berth_port' : 'berth_port';
}

function plain(status: number, text: string, headers: OutgoingHttpHeaders = {}): Answer {
  const common = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' };
  return { status, headers: { ...common, 'referrer-policy': 'no-referrer', ...headers }, text: `${text}\n` };
}

export function refusal(status: number, text: string): Answer {
  return plain(status, text);
}

export const SIGN_IN = plain(
  401,
  'This port of an instance opens by a link that works once: POST /api/v1/instances/ID/links with your API key.',
);

export function send(response: ServerResponse, { status, headers, text }: Answer): void {
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function sameHost(origin: string, host: string | undefined): boolean {
  return URL.canParse(origin) && new URL(origin).host === host;
}

/**
 * Whether a page elsewhere made the browser send this: the cookie would come along, from a sister host at least. Only a
 * person who follows a link may come from elsewhere.
 */
export function comesFromElsewhere({ method, headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  if (origin !== undefined && !sameHost(origin, host)) return true;
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  const follows = headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  return !(follows && (method === 'GET' || method === 'HEAD'));
}

export interface EnterDeps {
  key: Buffer;
  now: number;
  isSecure: boolean;
  mayGoOn(pass: Pass): boolean;
  /** Whether this is the first use of the ticket. */
  isFirst(id: string): Promise<boolean>;
}

/** Answers a ticket with a cookie and the way to the page. */
export async function enter(request: IncomingMessage, host: PortHost, deps: EnterDeps): Promise<Answer> {
  if (request.method !== 'GET') return refusal(405, 'Open this link with a browser.');
  const ticket = new URL(request.url ?? '', 'http://localhost').searchParams.get('ticket') ?? undefined;
  const pass = readPass(ticket, { key: deps.key, kind: 'ticket', now: deps.now });
  const isGood = pass !== undefined && pass.uid === host.uid && pass.port === host.port && deps.mayGoOn(pass);
  if (!isGood || !(await deps.isFirst(pass.id))) return SIGN_IN;
  const { path, ...rest } = pass;
  const expires = deps.now + COOKIE_MS;
  const value = signPass({ ...rest, path: '/', kind: 'cookie', id: randomUUID(), expires }, deps.key);
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_MS / 1000}${deps.isSecure ? '; Secure' : ''}`;
  return plain(302, 'Go on.', {
    location: path,
    'set-cookie': `${cookieName(deps.isSecure)}=${value}; ${attributes}`,
  });
}

/** The pass in the request's cookie, for this host and not over. */
export function passOf(
  request: IncomingMessage,
  host: PortHost,
  options: { key: Buffer; now: number; isSecure: boolean },
): Pass | undefined {
  const name = `${cookieName(options.isSecure)}=`;
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim());
  const value = pairs.find((pair) => pair.startsWith(name))?.slice(name.length);
  const pass = readPass(value, { key: options.key, kind: 'cookie', now: options.now });
  return pass?.uid === host.uid && pass.port === host.port ? pass : undefined;
}
