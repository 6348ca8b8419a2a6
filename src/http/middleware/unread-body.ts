import type { IncomingMessage, ServerResponse } from 'node:http';

/** Bytes of a refused body that are worth reading to keep the connection. */
const WORTH_READING = 64 * 1024;

/** Node reads what is left of a body after an early answer, without end; a long one ends the connection instead. */
export function closeAfterUnreadBody(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) return;
  const length = Number(request.headers['content-length'] ?? 0);
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if ((chunked || length > WORTH_READING) && !response.headersSent) response.setHeader('connection', 'close');
}
