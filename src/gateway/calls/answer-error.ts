import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { DialectError } from '../dialects/index.ts';
import { StartError } from '../zero/waiting-room.ts';
import { LimitError } from '../limits/limiter.ts';
import { QueueError } from '../queue/call-queue.ts';
import type { CallOutcome } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import { BodyTooLargeError, ClientGoneError, OverloadedError } from './read-body.ts';

const OVERLOAD_RETRY_MS = 1000;

/** Tells the client why its call failed. Returns how the call counts. */
export function answerError({ log }: { log: Logger }, client: ClientWriter, error: unknown): CallOutcome {
  if (client.gone || error instanceof ClientGoneError) return 'client_closed';
  if (client.cutBy !== undefined) {
    client.sendError(client.cutBy);
    return 'cut';
  }
  if (error instanceof LimitError) {
    client.sendError({ status: 429, message: error.message, code: 'rate_limit_exceeded' }, error.retryAfterMs);
    return 'rate_limited';
  }
  if (error instanceof QueueError) {
    const code = error.status === 429 ? 'rate_limit_exceeded' : null;
    client.sendError({ status: error.status, message: error.message, code }, error.retryAfterMs);
    return error.status === 429 ? 'rate_limited' : 'unavailable';
  }
  if (error instanceof OverloadedError) {
    client.sendError({ status: 503, message: error.message }, OVERLOAD_RETRY_MS);
    return 'unavailable';
  }
  if (error instanceof StartError) {
    client.sendError({ status: 503, message: error.message }, error.retryAfterMs);
    return 'unavailable';
  }
  if (error instanceof BodyTooLargeError) {
    client.sendError({ status: 413, message: error.message, code: 'request_too_large' });
    return 'client_error';
  }
  if (error instanceof DialectError) {
    client.sendError(error, error.status === 503 ? OVERLOAD_RETRY_MS : undefined);
    return error.status < 500 ? 'client_error' : 'unavailable';
  }
  const incident = randomUUID();
  log.error({ err: error, incident }, 'Model call failed');
  client.sendError({
    status: 500,
    message: `The gateway failed. Tell the operator of the cluster the incident id ${incident}.`,
  });
  return 'upstream_error';
}
