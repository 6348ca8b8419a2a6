import type { IncomingMessage } from 'node:http';
import { countStructure } from './json-structure.ts';

/** To parse a million may block every other call for more than a second, and no prompt has so many pieces. */
const STRUCTURE_MAX = 500_000;
/** What an object, array or value takes once it is parsed: 20 to 100 bytes. */
const STRUCTURE_BYTES = 64;

/** Its message is for the client. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';
}

export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError';
}

/** Memory that request bodies of all calls hold at once. */
export class BodyBudget {
  readonly #max: number;
  #held = 0;

  /** @param max bytes */
  constructor(max: number) {
    this.#max = max;
  }

  /** So little is held that it does not matter how much more it takes when it is parsed: up to 30 times its length. */
  get isCalm(): boolean {
    return this.#held <= this.#max / 64;
  }

  take(bytes: number): boolean {
    if (this.#held + bytes > this.#max) return false;
    this.#held += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}

export class OverloadedError extends Error {
  override readonly name = 'OverloadedError';
}

export interface HeldBody {
  bytes: Buffer;
  /** What the budget gets back when the body is dropped. */
  held: number;
}

/**
 * The whole body of a request, to be parsed as JSON. The caller gives back to the budget what it holds.
 *
 * @param limit bytes
 * @throws BodyTooLargeError, OverloadedError (the budget is used up), ClientGoneError
 */
export function readBody(request: IncomingMessage, limit: number, budget: BodyBudget): Promise<HeldBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let done = false;
    const fail = (error: Error): void => {
      done = true;
      budget.give(size);
      chunks.length = 0;
      reject(error);
    };
    const gone = (): void => {
      // Comes after every request, also after a complete one.
      if (!done) fail(new ClientGoneError('the client left while it sent the body'));
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
      // A body of so few bytes cannot have too many, and counting would cost as much as parsing does.
      const count = size <= STRUCTURE_MAX && budget.isCalm ? 0 : countStructure(bytes, STRUCTURE_MAX);
      const parsed = count * STRUCTURE_BYTES;
      if (count > STRUCTURE_MAX) {
        fail(tooFine());
      } else if (budget.take(parsed)) {
        done = true;
        resolve({ bytes, held: size + parsed });
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

function tooFine(): BodyTooLargeError {
  return new BodyTooLargeError(
    `The JSON of the request body has more than ${STRUCTURE_MAX} objects, arrays and commas. Send fewer or shorter lists, or send long data as one string.`,
  );
}

function overloaded(): OverloadedError {
  return new OverloadedError('too many request bytes are held');
}
