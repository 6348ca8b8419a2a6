import type { IncomingHttpHeaders } from 'node:http';

/** RFC 6750 section 2.1: the scheme in any case, one space or more, then b64token. */
const BEARER = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/**
 * The token of a request. Anthropic's clients send it as X-Api-Key; with both headers Authorization counts, so a wrong
 * one is not healed by the other.
 */
export function tokenOf(headers: IncomingHttpHeaders): string | undefined {
  const { authorization } = headers;
  if (authorization !== undefined) return BEARER.exec(authorization)?.[1];
  const key = headers['x-api-key'];
  return typeof key === 'string' && key !== '' ? key : undefined;
}
