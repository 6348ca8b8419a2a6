import type { IncomingMessage } from 'node:http';
import { countStructure } from './json-structure.ts';

/** Parsing a million may block every other call for more than a second. No prompt has that many. */
const STRUCTURE_MAX = 500_000;
/** A parsed object, array or value takes 20 to 100 bytes. */
const STRUCTURE_BYTES = 64;

/** Its message is for the client. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}

export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
}

/** Bounds the memory that the request bodies of all calls hold. */
export class BodyBudget {
  readonly #max: number;
  #held = 0;

  /** @param max bytes */
  constructor(max: number) {
    this.#max = max;
  }

  /** Little is held: even when parsed, which may take 30 times as much, it fits. */
  get isCalm(): boolean {
    return this.#held <= this.#max / 64;
  }

  take(bytes: number): boolean {
    if (this.#held + bytes > this.#max) return false;
    this.#held += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}

/** Its message is for the client. */
export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

export interface HeldBody {
  bytes: Buffer;
  /** What the caller releases when it drops the body. */
  heldBytes: number;
}

/**
 * Reads the whole body, at most `limit` bytes, of a request that is to be parsed as JSON. Rejects with
 * BodyTooLargeError, ClientGoneError, and OverloadedError when the budget is used up.
 */
export function readBody(request: IncomingMessage, limit: number, budget: BodyBudget): Promise<HeldBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let done = false;
    const fail = (error: Error): void => {
      done = true;
      budget.release(size);
      chunks.length = 0;
      reject(error);
    };
    const gone = (): void => {
      // Node emits `close` after a complete request too.
      if (!done) fail(new ClientGoneError('The client left while it sent the body.'));
    };
    if (Number(request.headers['content-length'] ?? 0) > limit) {
      done = true;
      reject(tooLong(limit));
      return;
    }
    request.on('data', (chunk: Buffer) => {
      if (done) return;
      if (size + chunk.length > limit) {
        fail(tooLong(limit));
      } else if (budget.take(chunk.length)) {
        size += chunk.length;
        chunks.push(chunk);
      } else {
        fail(overloaded());
      }
    });
    request.on('end', () => {
      if (done) return;
      const bytes = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size);
      // A short body cannot have too many pieces, and counting would cost as much as parsing.
      const count = size <= STRUCTURE_MAX && budget.isCalm ? 0 : countStructure(bytes, STRUCTURE_MAX);
      const parsed = count * STRUCTURE_BYTES;
      if (count > STRUCTURE_MAX) {
        fail(tooManyPieces());
      } else if (budget.take(parsed)) {
        done = true;
        resolve({ bytes, heldBytes: size + parsed });
      } else {
        fail(overloaded());
      }
    });
    request.on('error', gone);
    request.on('close', gone);
  });
}

function tooLong(limit: number): BodyTooLargeError {
  return new BodyTooLargeError(`The request body is longer than ${limit} bytes.`);
}

function tooManyPieces(): BodyTooLargeError {
  return new BodyTooLargeError(
    `The JSON of the request body has more than ${STRUCTURE_MAX} objects, arrays and commas. Send fewer or shorter lists, or send long data as one string.`,
  );
}

function overloaded(): OverloadedError {
  return new OverloadedError('The gateway holds too many requests at the moment. Try again shortly.');
}
