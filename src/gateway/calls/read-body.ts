import type { IncomingMessage } from 'node:http';
import { type BodyErrors, BodyReader, TOO_SLOW } from '../../lib/body-reader.ts';
import type { Clock } from '../../lib/clock.ts';
import { countNames, countStructure } from '../../lib/json-structure.ts';
import { whoCanChange } from '../../resources/tenants/who-can-change.ts';
import { DialectError } from '../dialects/index.ts';
import type { BodyHold } from '../limits/body-shares.ts';
import { LimitError } from '../limits/limiter.ts';

/** Parsing a million may block every other call for more than a second. No prompt has that many. */
const STRUCTURE_MAX = 500_000;
/** Different names of members, each of which takes the parser some microseconds. The tools of a large agent have a tenth. */
const NAMES_MAX = 20_000;
/** Bytes of the shortest member with a name of its own, about. */
const MEMBER_BYTES = 6;
/** A parsed object, array or value takes 20 to 100 bytes. */
const STRUCTURE_BYTES = 64;
/** A Buffer of its own for each piece that arrives. A client may send its body byte by byte. */
const CHUNK_BYTES = 256;
/** Below the 60 s after which the server itself ends a request, without an answer in the dialect's shape. */
const LONGEST_MS = 55_000;
const RETRY_MS = 1000;

/** Its message is for the client. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}

export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
}

/** Its message is for the client. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

export interface Reading {
  /** Bytes. */
  limit: number;
  /** Takes what the body needs. Released here when the promise rejects, else by the caller. */
  hold: BodyHold;
  clock: Clock;
  /** The body is no JSON: nothing parses it. */
  isForm?: boolean;
}

/**
 * Reads the whole body of a request that is to be parsed as JSON. Rejects with BodyTooLargeError, ClientGoneError,
 * OverloadedError when the memory for all is used up, LimitError when the tenant's share of it is, and DialectError 408
 * when the client sends nothing for 10 s, less than 64 KiB per second, or for 55 s in all.
 */
export async function readBody(
  request: IncomingMessage,
  { limit, hold, clock, isForm = false }: Reading,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  try {
    if (Number(request.headers['content-length'] ?? 0) > limit) throw ERRORS.tooLong(limit);
    await new BodyReader(request, { limit, longestMs: LONGEST_MS }, ERRORS, clock).read((chunk) => {
      holdBytes(hold, chunk.length + CHUNK_BYTES);
      chunks.push(chunk);
    });
    const bytes = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
    hold.give(chunks.length * CHUNK_BYTES);
    // A short body cannot have too many pieces, and counting would cost as much as parsing.
    if (!isForm) refuseManyNames(bytes);
    if (!isForm && !(bytes.length <= STRUCTURE_MAX && hold.bodies.isCalm)) holdPieces(hold, bytes, STRUCTURE_MAX);
    return bytes;
  } catch (error) {
    hold.release();
    throw error;
  }
}

/**
 * Holds the stored texts that a call continues, as if they had come in its body. Throws OverloadedError, LimitError or
 * BodyTooLargeError before a text is parsed for which there is no room.
 */
export function textHolder(hold: BodyHold): (text: string) => void {
  let pieces = 0;
  return (text) => {
    holdBytes(hold, text.length);
    const json = Buffer.from(text);
    refuseManyNames(json);
    pieces += holdPieces(hold, json, STRUCTURE_MAX - pieces);
  };
}

/** @throws BodyTooLargeError */
function refuseManyNames(json: Buffer): void {
  if (json.length < NAMES_MAX * MEMBER_BYTES || countStructure(json, NAMES_MAX) <= NAMES_MAX) return;
  if (countNames(json, NAMES_MAX) > NAMES_MAX)
    throw new BodyTooLargeError(
      `The objects of the request body, or of a stored response that it continues, have more than ${NAMES_MAX} different names. Send lists in place of objects, or send long data as one string.`,
    );
}

/** Holds what the pieces of a JSON text take when it is parsed. Returns how many there are. */
function holdPieces(hold: BodyHold, json: Buffer, most: number): number {
  const count = countStructure(json, most);
  if (count > most) throw tooManyPieces();
  holdBytes(hold, count * STRUCTURE_BYTES);
  return count;
}

/** Holds bytes of a body or an answer. Throws what its client gets when there is no room. */
export function holdBytes(hold: BodyHold, bytes: number): void {
  const result = hold.take(bytes);
  if (result === 'taken') return;
  if (result === 'all-full') throw overloaded();
  throw hold.held + bytes > hold.most ? beyondShare(hold.most) : shareFull(hold.most);
}

const ERRORS: BodyErrors = {
  tooLong: (limit) => new BodyTooLargeError(`The request body is longer than ${limit} bytes.`),
  tooSlow: () => new DialectError({ status: 408, message: TOO_SLOW, code: 'request_timeout' }),
  gone: () => new ClientGoneError('The client left while it sent the body.'),
};

function tooManyPieces(): BodyTooLargeError {
  return new BodyTooLargeError(
    `The JSON of the request body, with the stored responses that it continues, has more than ${STRUCTURE_MAX} objects, arrays and commas. Send fewer or shorter lists, or send long data as one string.`,
  );
}

function overloaded(): OverloadedError {
  return new OverloadedError('The gateway holds too many requests at the moment. Try again shortly.');
}

function shareFull(most: number): LimitError {
  return new LimitError({
    limit: 'http.bodyMib',
    message: `The calls of this tenant together hold ${most / 2 ** 20} MiB of request bodies and stored responses, which is its share. Wait for some to finish. ${whoCanChange('http.bodyMib')}`,
    retryAfterMs: RETRY_MS,
  });
}

function beyondShare(most: number): BodyTooLargeError {
  return new BodyTooLargeError(
    `The request body, with the stored responses that it continues, needs more than the ${most / 2 ** 20} MiB that this tenant may hold in all. ${whoCanChange('http.bodyMib')}`,
  );
}
