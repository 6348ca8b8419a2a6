import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** How one request to one endpoint ended. */
export type Outcome =
  /** The answer came wholly. */
  | { kind: 'complete' }
  /** The endpoint answered with an error, or with something that is no answer; nothing was passed on. */
  | { kind: 'refused'; status: number; headers: IncomingHttpHeaders; body: string }
  /** The connection failed or fell silent; `started` tells whether the receiver had the first bytes of an answer. */
  | { kind: 'broken'; error: Error }
  /** We stopped it. */
  | { kind: 'aborted' };

/** Where the bytes of a good answer go. */
export interface Receiver {
  /** Media type that a good answer has. */
  readonly contentType: string;
  data(chunk: Buffer, controller: Dispatcher.DispatchController): void;
  /** The answer is complete; nothing of its end is passed on yet. Throws when it cannot be understood. */
  end(controller: Dispatcher.DispatchController): void;
}

interface Refusal {
  status: number;
  headers: IncomingHttpHeaders;
  chunks: Buffer[];
  size: number;
}

const ERROR_BODY_MAX = 64 * 1024;

class AbortedError extends Error {
  override readonly name = 'AbortedError';
}

/** One request on its way to one endpoint. */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #receiver: Receiver;
  readonly #done = Promise.withResolvers<Outcome>();
  #controller: Dispatcher.DispatchController | undefined;
  #aborted = false;
  #refusal: Refusal | undefined;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  /** Never rejects. */
  get outcome(): Promise<Outcome> {
    return this.#done.promise;
  }

  /** Closes the connection at once: the only way to tell an HTTP/1.1 server to stop. */
  abort(): void {
    this.#aborted = true;
    this.#controller?.abort(new AbortedError('the client left'));
    // Not on its way yet: nothing will report the end of it.
    if (this.#controller === undefined) this.#done.resolve({ kind: 'aborted' });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(new AbortedError('the client left'));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    if (status < 300 && String(headers['content-type']).startsWith(this.#receiver.contentType)) return;
    this.#refusal = { status: status < 300 ? 502 : status, headers, chunks: [], size: 0 };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const refusal = this.#refusal;
    if (refusal === undefined) {
      this.#receiver.data(chunk, controller);
      return;
    }
    refusal.size += chunk.length;
    refusal.chunks.push(chunk);
    if (refusal.size < ERROR_BODY_MAX) return;
    this.#refuse(refusal);
    controller.abort(new AbortedError('the error is longer than is read'));
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#refusal !== undefined) {
      this.#refuse(this.#refusal);
      return;
    }
    try {
      this.#receiver.end(controller);
      this.#done.resolve({ kind: 'complete' });
    } catch (error) {
      this.onResponseError(controller, error instanceof Error ? error : new Error(String(error)));
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#done.resolve(this.#aborted ? { kind: 'aborted' } : { kind: 'broken', error });
  }

  #refuse({ status, headers, chunks }: Refusal): void {
    const body = Buffer.concat(chunks).toString('utf8', 0, ERROR_BODY_MAX);
    this.#done.resolve({ kind: 'refused', status, headers, body });
  }
}
