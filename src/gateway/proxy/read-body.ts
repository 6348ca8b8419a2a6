import type { IncomingMessage } from 'node:http';

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

/**
 * The whole body of a request. The caller gives the bytes back to the budget when it drops the body.
 *
 * @param limit bytes
 * @throws BodyTooLargeError, OverloadedError (the budget is used up), ClientGoneError
 */
export function readBody(request: IncomingMessage, limit: number, budget: BodyBudget): Promise<Buffer> {
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
      reject(new BodyTooLargeError(`the body is longer than ${limit} bytes`));
      return;
    }
    request.on('data', (chunk: Buffer) => {
      if (done) return;
      if (size + chunk.length > limit) {
        fail(new BodyTooLargeError(`the body is longer than ${limit} bytes`));
      } else if (budget.take(chunk.length)) {
        size += chunk.length;
        chunks.push(chunk);
      } else {
        fail(new OverloadedError('too many request bytes are held'));
      }
    });
    request.on('end', () => {
      if (done) return;
      done = true;
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size));
    });
    request.on('error', gone);
    request.on('close', gone);
  });
}
