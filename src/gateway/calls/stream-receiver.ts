import type { Dispatcher } from 'undici';
import {
  createPassThroughObserver,
  createStreamTranslator,
  observeBody,
  streamError,
  translateResponse,
  type ClientError,
  type HistoryItem,
  type TranslationContext,
  type Usage,
} from '../dialects/index.ts';
import type { Receiver } from './attempt.ts';
import { isKept, type Call } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import type { Plan } from './upstream-request.ts';

/** A receiver with what it learned of the answer. */
export interface AnswerReceiver extends Receiver {
  readonly usage: Usage | undefined;
  /** When the engine reported no usage: what was passed on. */
  readonly estimatedOutputTokens: number;
  readonly items: HistoryItem[];
  readonly responseId: string | undefined;
  /** The answer as the client got it, responses dialect only. */
  readonly response: unknown;
  /** The stream ended with an error that the backend reported inside it. */
  readonly error: ClientError | undefined;
  /** Passes on what was held back until the answer was stored: its end. */
  finish(): void;
  /** The backend fell silent after the first byte. */
  fail(error: ClientError): void;
}

const WHOLE_MAX = 32 * 1024 * 1024;
/** A translator keeps the answer until its end. Twice what the longest answers of today have: 128 k events of 250 bytes. */
const TRANSLATED_MAX = 64 * 1024 * 1024;

class AnswerTooLongError extends Error {
  override readonly name = 'AnswerTooLongError';
}

class NotJsonError extends Error {
  override readonly name = 'NotJsonError';
}

class EmptyStreamError extends Error {
  override readonly name = 'EmptyStreamError';
}

const CUT_SHORT: ClientError = { status: 502, message: 'The model server ended the stream before it was complete.' };

export function receiverFor(call: Call, plan: Plan, client: ClientWriter, onFirstByte: () => void): AnswerReceiver {
  const context: TranslationContext = {
    id: call.id,
    createdAt: call.createdAt,
    model: call.inspection.model,
    request: call.body,
  };
  const parts = { call, plan, client, context, onFirstByte };
  return call.inspection.stream ? new StreamReceiver(parts) : new WholeReceiver(parts);
}

interface Parts {
  call: Call;
  plan: Plan;
  client: ClientWriter;
  context: TranslationContext;
  onFirstByte: () => void;
}

/**
 * A whole JSON answer. It is held until it is complete, so a server that dies half way costs the client nothing; then
 * the very bytes are sent on, or their translation.
 */
class WholeReceiver implements AnswerReceiver {
  readonly contentType = 'application/json';
  readonly #parts: Parts;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #answer: Buffer = Buffer.alloc(0);
  usage: Usage | undefined;
  estimatedOutputTokens = 0;
  items: HistoryItem[] = [];
  responseId: string | undefined;
  response: unknown;
  readonly error = undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  data(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > WHOLE_MAX) throw new AnswerTooLongError(`the answer is longer than ${WHOLE_MAX} bytes`);
    this.#chunks.push(chunk);
  }

  end(): void {
    const { call, plan, context, onFirstByte } = this.#parts;
    const bytes =
      this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks, this.#size);
    onFirstByte();
    if (plan.native) {
      if (!looksLikeObject(bytes)) throw new NotJsonError('the answer is not a JSON object');
      const { usage, items, responseId } = observeBody(call.dialect, bytes);
      this.usage = usage;
      this.items = items;
      this.responseId = responseId;
      if (isKept(call)) this.response = JSON.parse(bytes.toString('utf8'));
      this.#answer = bytes;
      return;
    }
    const upstream: unknown = JSON.parse(bytes.toString('utf8'));
    const { body, usage, items } = translateResponse(plan.dialect, call.dialect, upstream, context);
    this.usage = usage;
    this.items = items;
    this.response = body;
    this.responseId = idOf(body);
    this.#answer = Buffer.from(JSON.stringify(body));
  }

  finish(): void {
    this.#parts.client.sendWhole(this.#answer);
  }

  /** Nothing was passed on before the end: the caller answers. */
  fail(): void {}
}

interface Codec {
  push(chunk: Uint8Array): string | Uint8Array | undefined;
  end(): string | Uint8Array | undefined;
  readonly usage: Usage | undefined;
  readonly estimatedOutputTokens: number;
  readonly items: HistoryItem[];
  readonly responseId: string | undefined;
  readonly finished: boolean;
  readonly error?: ClientError | undefined;
  fail?(error: ClientError): string;
}

/** A stream of events: byte for byte, or through the translator. */
class StreamReceiver implements AnswerReceiver {
  readonly contentType = 'text/event-stream';
  readonly #parts: Parts;
  readonly #codec: Codec;
  #begun = false;
  #received = 0;
  /** What came since the event loop was last idle: engines write event by event, and often many are read at once. */
  #batch: Buffer[] = [];
  /** From the final event of an answer to be stored on: who reads it may continue the answer at once. */
  readonly #held: Buffer[] = [];
  #heldSize = 0;
  response: unknown;

  constructor(parts: Parts) {
    const { call, plan, context } = parts;
    this.#parts = parts;
    this.#codec = plan.native
      ? createPassThroughObserver(call.dialect, { hideUsage: !call.inspection.wantsUsage })
      : createStreamTranslator(plan.dialect, call.dialect, context);
  }

  get usage(): Usage | undefined {
    return this.#codec.usage;
  }

  get estimatedOutputTokens(): number {
    return this.#codec.estimatedOutputTokens;
  }

  get items(): HistoryItem[] {
    return this.#codec.items;
  }

  get responseId(): string | undefined {
    return this.#codec.responseId;
  }

  get error(): ClientError | undefined {
    return this.#codec.error;
  }

  data(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    this.#received += chunk.length;
    if (this.#received > TRANSLATED_MAX && !this.#parts.plan.native)
      throw new AnswerTooLongError(`the stream is longer than ${TRANSLATED_MAX} bytes`);
    this.#batch.push(chunk);
    if (this.#batch.length > 1) return;
    process.nextTick(() => {
      try {
        this.#passOn(controller);
      } catch (error) {
        // Nobody above catches it here.
        controller.abort(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  /** Runs before whatever comes next from the network, be it an error. */
  #passOn(controller: Dispatcher.DispatchController): void {
    const [first, ...others] = this.#batch;
    if (first === undefined || controller.aborted) return;
    this.#batch = [];
    const out = this.#codec.push(others.length === 0 ? first : Buffer.concat([first, ...others]));
    if (out === undefined || out.length === 0) return;
    this.#begin();
    this.#capture(out);
    if (this.response === undefined) this.#parts.client.write(out, controller);
    else this.#hold(out);
  }

  end(controller: Dispatcher.DispatchController): void {
    const { call, plan } = this.#parts;
    this.#passOn(controller);
    const rest = this.#codec.end();
    if (rest !== undefined && rest.length > 0) {
      this.#begin();
      this.#capture(rest);
    }
    // Nothing was passed on yet, so another endpoint may still answer.
    if (!this.#begun) throw new EmptyStreamError('the stream ended before its first event');
    // The translator ends a stream that was cut short by itself.
    const cut = plan.native && !this.#codec.finished ? streamError(call.dialect, CUT_SHORT) : '';
    if (rest !== undefined) this.#hold(rest);
    this.#hold(cut);
  }

  finish(): void {
    this.#parts.client.endStream(Buffer.concat(this.#held));
  }

  fail(error: ClientError): void {
    if (this.#held.length > 0) this.finish();
    else if (this.#codec.fail === undefined) this.#parts.client.sendError(error);
    else this.#parts.client.endStream(this.#codec.fail(error));
  }

  #hold(out: string | Uint8Array): void {
    this.#heldSize += out.length;
    if (this.#heldSize > WHOLE_MAX) throw new AnswerTooLongError(`the end of the stream is longer than ${WHOLE_MAX}`);
    this.#held.push(Buffer.from(out));
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#parts.onFirstByte();
  }

  /** The final event of a responses stream carries the whole answer. Events come whole from both codecs. */
  #capture(out: string | Uint8Array): void {
    const { call } = this.#parts;
    if (!isKept(call)) return;
    const text =
      typeof out === 'string' ? out : Buffer.from(out.buffer, out.byteOffset, out.byteLength).toString('utf8');
    const line =
      /(?:^|\n)data: ?(\{"type":"response\.(?:completed|incomplete)"[^\n]*)/.exec(text) ??
      /(?:^|\n)event: ?response\.(?:completed|incomplete)\r?\ndata: ?([^\n]*)/.exec(text);
    if (line?.[1] === undefined) return;
    const event = JSON.parse(line[1]) as { response?: unknown };
    this.response = event.response;
  }
}

/** Enough to tell an answer from an error page; parsing it all is what pass-through saves. */
function looksLikeObject(bytes: Buffer): boolean {
  return /^\s*\{/.test(bytes.toString('latin1', 0, 64));
}

function idOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('id' in body)) return undefined;
  return typeof body.id === 'string' ? body.id : undefined;
}
