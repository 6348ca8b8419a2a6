import compression from 'compression';
import type { RequestHandler } from 'express';

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
