import type { FailureKind } from '../balance/breaker.ts';

/** What to do about an answer that is an error. */
export interface Verdict {
  /** Another endpoint may answer better. */
  failover: boolean;
  /** What it says about the endpoint, if it speaks against it. */
  breaker?: FailureKind;
}

/** Only what another replica may do better is sent again: never a 4xx, except 408 and 429. */
export function judgeStatus(status: number): Verdict {
  if (status === 429 || status === 408) return { failover: true };
  if (status === 502 || status === 503 || status === 504) return { failover: true, breaker: 'unavailable' };
  if (status >= 500) return { failover: true, breaker: 'error' };
  return { failover: false };
}

/** The Retry-After header in milliseconds, from seconds or an HTTP date (RFC 9110, 10.2.3). */
export function retryAfterMs(header: string | string[] | undefined, wallClock: number): number | undefined {
  const value = Array.isArray(header) ? header[0] : header;
  if (value === undefined) return undefined;
  const seconds = Number(value);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - wallClock;
  return Number.isFinite(ms) && ms >= 0 ? ms : undefined;
}

const RESET_CODES = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);
const TIMEOUT_CODES = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : '';
}

/**
 * Whether the connection was one kept alive from an earlier exchange and closed by the server before it read this
 * request, which every server does at some moment. Undici tells how much was ever read from the socket.
 */
export function diedIdle(error: unknown): boolean {
  if (!RESET_CODES.has(codeOf(error))) return false;
  const socket = error instanceof Error && 'socket' in error ? error.socket : undefined;
  const bytesRead =
    typeof socket === 'object' && socket !== null && 'bytesRead' in socket ? socket.bytesRead : undefined;
  return bytesRead !== 0;
}

export function isTimeout(error: unknown): boolean {
  return TIMEOUT_CODES.has(codeOf(error));
}
