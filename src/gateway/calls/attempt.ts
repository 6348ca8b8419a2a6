import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { ByteBlocks } from '../../lib/byte-blocks.ts';

/** How one request to one endpoint ended. */
export type Outcome =
  /** The whole answer has arrived. */
  | { kind: 'complete' }
  /** The endpoint answered with an error status or, with a good one, another media type. Nothing was passed on. */
  | { kind: 'refused'; status: number; headers: IncomingHttpHeaders; body: string }
  /** The connection failed or fell silent, or the answer cannot be understood. */
  | { kind: 'broken'; error: Error }
  | { kind: 'aborted' };

/** Takes the bytes of a good answer. */
export interface Receiver {
  /**
   * Whether it takes an answer of this media type, in small letters; empty where the server names none. Asked once, before
   * the bytes of an answer with a good status.
   */
  accepts(contentType: string): boolean;
  data(chunk: Buffer, controller: Dispatcher.DispatchController): void;
  /** The answer is complete. Passes on nothing of its end yet. Throws when the answer cannot be understood. */
  end(controller: Dispatcher.DispatchController): void;
  /** All that came is a whole answer, whatever becomes of the connection. */
  readonly isWhole?: boolean;
}

interface Refusal {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: ByteBlocks;
}

const ERROR_BODY_MAX = 64 * 1024;

class AbortedError extends Error {
  override readonly name = 'AbortedError';
}

/** One request on its way to one endpoint. */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly #receiver: Receiver;
  readonly #onBytes: () => void;
  readonly #done = Promise.withResolvers<Outcome>();
  #controller: Dispatcher.DispatchController | undefined;
  #aborted = false;
  /** Why the gateway ended the request. */
  #cut: Error | undefined;
  #refusal: Refusal | undefined;

  /** @param onBytes is called for everything that the server sends */
  constructor(receiver: Receiver, onBytes: () => void) {
    this.#receiver = receiver;
    this.#onBytes = onBytes;
  }

  /** Never rejects. */
  get outcome(): Promise<Outcome> {
    return this.#done.promise;
  }

  /** Closes the connection at once, which is the only way to tell an HTTP/1.1 server to stop. */
  abort(): void {
    this.#aborted = true;
    this.#cut = new AbortedError('The call is over.');
    this.#controller?.abort(this.#cut);
    // The request has not begun, so undici will not report its end.
    if (this.#controller === undefined) this.#done.resolve({ kind: 'aborted' });
  }

  /** Ends the request as broken, with this error. */
  giveUp(error: Error): void {
    this.#cut = error;
    this.#controller?.abort(error);
    this.#done.resolve({ kind: 'broken', error });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#cut !== undefined) controller.abort(this.#cut);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#onBytes();
    if (status < 300 && this.#receiver.accepts(mediaTypeOf(headers))) return;
    this.#refusal = { status, headers, bytes: new ByteBlocks() };
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#onBytes();
    const refusal = this.#refusal;
    if (refusal === undefined) {
      this.#receiver.data(chunk, controller);
      return;
    }
    refusal.bytes.add(chunk);
    if (refusal.bytes.size < ERROR_BODY_MAX) return;
    this.#refuse(refusal);
    controller.abort(new AbortedError('The rest of the error is not read.'));
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#refusal === undefined) this.#complete(controller);
    else this.#refuse(this.#refusal);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#cut === undefined && 'code' in error && this.#receiver.isWhole === true) this.#complete(controller);
    else this.#break(error);
  }

  #complete(controller: Dispatcher.DispatchController): void {
    try {
      this.#receiver.end(controller);
      this.#done.resolve({ kind: 'complete' });
    } catch (error) {
      this.#break(error instanceof Error ? error : new Error('No error was thrown', { cause: error }));
    }
  }

  #break(error: Error): void {
    this.#done.resolve(this.#aborted ? { kind: 'aborted' } : { kind: 'broken', error });
  }

  #refuse({ status, headers, bytes }: Refusal): void {
    const body = bytes.take().toString('utf8', 0, ERROR_BODY_MAX);
    this.#done.resolve({ kind: 'refused', status, headers, body });
  }
}

function mediaTypeOf({ 'content-type': type = '' }: IncomingHttpHeaders): string {
  return type.toLowerCase();
}
