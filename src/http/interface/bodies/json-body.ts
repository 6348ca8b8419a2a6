import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request, RequestHandler } from 'express';
import type { Clock } from '../../../lib/clock.ts';
import { countStructure } from '../../../lib/json-structure.ts';
import { JsonLevelsError, MOST_LEVELS, readJson } from '../../../lib/json.ts';
import { ApiError } from '../errors/api-error.ts';
import { type BodyRules, readBody } from './read-body.ts';

const JSON_TYPE = /^application\/(?:[a-z0-9!#$&^_.+-]+\+)?json[\t ]*(?:;|$)/i;
const CHARSET = /;[\t ]*charset[\t ]*=[\t ]*"?([^";\t ]+)/i;

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function checkType({ headers }: IncomingMessage): void {
  const type = headers['content-type'];
  // No Content-Type at all counts as JSON.
  if (type !== undefined && !JSON_TYPE.test(type)) {
    throw new ApiError('unsupported_media_type', 'The body must be JSON: send Content-Type: application/json.');
  }
  const charset = CHARSET.exec(type ?? '')?.[1]?.toLowerCase() ?? 'utf-8';
  const encoding = headers['content-encoding'] ?? 'identity';
  if (charset !== 'utf-8' && charset !== 'utf8') {
    throw new ApiError('unsupported_media_type', 'The body must be JSON in UTF-8, as RFC 8259 section 8.1 says.');
  }
  if (encoding !== 'identity') {
    throw new ApiError('unsupported_media_type', 'The body must not be compressed. Send it without Content-Encoding.');
  }
}

/** The longest lists that fields take have some 900 together. A schema looks at each name and value before it refuses. */
const STRUCTURE_MAX = 1500;

function parse(bytes: Buffer): unknown {
  if (bytes.length === 0) return {};
  if (countStructure(bytes, STRUCTURE_MAX) > STRUCTURE_MAX) {
    throw new ApiError(
      'payload_too_large',
      `The body has more than ${STRUCTURE_MAX} objects, lists and commas. Send fewer names and values.`,
    );
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return text.trim() === '' ? {} : readJson(text);
  } catch (error) {
    const message =
      error instanceof JsonLevelsError
        ? `The body has lists and objects in more than ${MOST_LEVELS} levels. Send it with fewer.`
        : 'The body is not valid JSON in UTF-8.';
    throw new ApiError('malformed_json', message, { cause: error });
  }
}

/**
 * Reads a JSON body into `request.body`, within the rules for its sender; `{}` when there is none or it is null, as null
 * equals absent everywhere.
 */
export function jsonBody(rulesOf: (request: Request) => BodyRules, clock: Clock): RequestHandler {
  return async (request, _response, next) => {
    if (hasBody(request)) {
      checkType(request);
      request.body = await readBody(request, rulesOf(request), clock, parse);
    }
    request.body ??= {};
    next();
  };
}

/** Bytes of an unread body that are worth reading to keep the connection. */
const WORTH_READING = 64 * 1024;

/**
 * After an early answer Node reads the rest of the body, however long. A long body ends the connection instead: then its
 * client may see a broken connection before it sees the answer.
 * @param worthReading bytes
 */
export function closeAfterUnreadBody(
  request: IncomingMessage,
  response: ServerResponse,
  worthReading: number = WORTH_READING,
): void {
  if (request.complete) return;
  const length = Number(request.headers['content-length'] ?? 0);
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if ((chunked || length > worthReading) && !response.headersSent) response.setHeader('connection', 'close');
}
