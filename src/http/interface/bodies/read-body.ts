import type { IncomingMessage } from 'node:http';
import { type BodyErrors, BodyReader, TOO_SLOW } from '../../../lib/body-reader.ts';
import type { Clock } from '../../../lib/clock.ts';
import { ApiError } from '../errors/api-error.ts';

/** Bytes that a body takes at once, before its first byte. Most bodies fit in. */
const FIRST_BYTES = 4096;
/** Well above what the pace asks of a body of 1 MiB. */
const LONGEST_MS = 30_000;

/** What a body may hold. */
export interface BodyRules {
  /** Most bytes of the body. */
  limit: number;
  /** Holds more bytes for the sender; throws the ApiError that the sender gets when its share is used up. */
  take: (bytes: number) => void;
  give: (bytes: number) => void;
}

/**
 * One buffer that counts all that it holds: a list of tiny chunks would cost many times their bytes. It grows to the
 * announced length at once: a body that has no room is refused after its first bytes, and nothing is copied twice.
 */
class BodyBuffer {
  readonly #rules: BodyRules;
  /** Bytes, as the sender says; 0 when it does not. */
  readonly #announced: number;
  #buffer: Buffer;
  #size = 0;
  #held: number;

  constructor(rules: BodyRules, announced: number) {
    this.#rules = rules;
    this.#announced = announced;
    this.#held = Math.min(FIRST_BYTES, rules.limit);
    rules.take(this.#held);
    this.#buffer = Buffer.allocUnsafe(this.#held);
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#size);
  }

  append(chunk: Buffer): void {
    const size = this.#size + chunk.length;
    if (size > this.#held) this.#grow(Math.min(this.#rules.limit, Math.max(size, this.#announced || 2 * this.#held)));
    chunk.copy(this.#buffer, this.#size);
    this.#size = size;
  }

  release(): void {
    this.#rules.give(this.#held);
    this.#held = 0;
    this.#buffer = Buffer.alloc(0);
  }

  #grow(capacity: number): void {
    this.#rules.take(capacity - this.#held);
    this.#held = capacity;
    const grown = Buffer.allocUnsafe(capacity);
    this.#buffer.copy(grown, 0, 0, this.#size);
    this.#buffer = grown;
  }
}

const ERRORS: BodyErrors = {
  tooLong: (limit) => new ApiError('payload_too_large', `The body is longer than ${limit} bytes. Send a shorter one.`),
  tooSlow: () => new ApiError('request_timeout', TOO_SLOW, { headers: { connection: 'close' } }),
  gone: () => new ApiError('bad_request', 'The connection closed before the body was complete.'),
};

/**
 * Hands the whole body to `use`. Its bytes count against the sender's share from before the first one until `use`
 * returns.
 * @throws ApiError payload_too_large, request_timeout, bad_request, and what `take` throws
 */
export async function readBody<T>(
  request: IncomingMessage,
  rules: BodyRules,
  clock: Clock,
  use: (bytes: Buffer) => T,
): Promise<T> {
  // Refused before a byte of it is read.
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > rules.limit) throw ERRORS.tooLong(rules.limit);
  const buffer = new BodyBuffer(rules, announced);
  try {
    const reader = new BodyReader(request, { limit: rules.limit, longestMs: LONGEST_MS }, ERRORS, clock);
    await reader
      .read((chunk) => buffer.append(chunk))
      .catch((error: unknown) => {
        request.pause();
        throw error;
      });
    return use(buffer.bytes);
  } finally {
    buffer.release();
  }
}
