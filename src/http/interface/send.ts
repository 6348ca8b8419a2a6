import compression from 'compression';
import type { RequestHandler, Response } from 'express';
import { etagOf, hasVersion } from '../../lib/etag.ts';
import { countUnread, isShareUnread } from '../../lib/unread-answers.ts';
import { unread } from './errors/busy.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

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
  send(response, json, JSON_TYPE);
}

/** @throws ApiError overloaded while other answers wait for the clients of the tenant, if nothing was changed */
function send(response: Response, text: string, type: string): void {
  const bytes = Buffer.byteLength(text);
  if (response.req.method === 'GET' && isShareUnread(response)) throw unread();
  response.setHeader('content-type', type);
  response.setHeader('content-length', bytes);
  countUnread(response, bytes);
  response.end(text);
}

const TEXT_TYPE = 'text/plain; charset=utf-8';

/** Sends text that a program in an instance wrote. It is never taken for a page: nosniff stands on every answer. */
export function sendText(response: Response, text: string, type = TEXT_TYPE): void {
  response.setHeader('cache-control', 'private, no-store');
  send(response, text, type);
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
