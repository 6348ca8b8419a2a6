import { hash } from 'node:crypto';
import compression from 'compression';
import type { RequestHandler, Response } from 'express';

const JSON_TYPE = 'application/json; charset=utf-8';

export function etagOf(text: string | Buffer): string {
  return `W/"${hash('sha1', text, 'base64url')}"`;
}

/** Whether the client has this version, by weak comparison (RFC 9110 section 13.1.2). */
export function hasVersion(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const opaque = etag.slice(2);
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === opaque);
}

/**
 * Sends JSON text, or 304 when the client has it. Express ignores If-None-Match when the request says no-cache, which
 * fetch() adds to every conditional request (Fetch standard, HTTP-network-or-cache fetch).
 */
export function sendJson(response: Response, json: string, knownEtag?: string): void {
  const { method, headers } = response.req;
  response.setHeader('cache-control', 'private, no-cache');
  if (method === 'GET' || method === 'HEAD') {
    const etag = knownEtag ?? etagOf(json);
    response.setHeader('etag', etag);
    if (hasVersion(headers['if-none-match'], etag)) {
      response.status(304).end();
      return;
    }
  }
  response.setHeader('content-type', JSON_TYPE);
  response.setHeader('content-length', Buffer.byteLength(json));
  response.end(json);
}

const TEXT_TYPE = 'text/plain; charset=utf-8';

/** Sends text that a program in an instance wrote. It is never taken for a page: nosniff stands on every answer. */
export function sendText(response: Response, text: string, type = TEXT_TYPE): void {
  response.setHeader('cache-control', 'private, no-store');
  response.setHeader('content-type', type);
  response.setHeader('content-length', Buffer.byteLength(text));
  response.end(text);
}

/** Sends a list of items that are JSON text already. */
export function sendList(response: Response, items: readonly string[]): void {
  sendJson(response, `{"object":"list","data":[${items.join(',')}]}`);
}

/** gzip or brotli for long answers. Never for event streams: the compressor would delay events. */
export function compress(): RequestHandler {
  return compression({
    threshold: 1024,
    level: 1,
    filter: (request, response) =>
      !String(response.getHeader('content-type')).startsWith('text/event-stream') &&
      compression.filter(request, response),
  });
}
