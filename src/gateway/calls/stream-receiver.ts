import type { Dispatcher } from 'undici';
import { ByteBlocks } from '../../lib/byte-blocks.ts';
import { isObject } from '../../lib/json.ts';
import type { PlainRoute } from '../../wire/model-endpoints.ts';
import {
  DialectError,
  errorInAnswer,
  parseJson,
  PassThroughObserver,
  readAnswer,
  readAnswerExactly,
  streamError,
  StreamTranslator,
  translatorBehind,
  wholeAsChunks,
  withoutMark,
  type ClientError,
} from '../dialects/index.ts';
import { keepAnswer, keepParsed } from './answer-share.ts';
import {
  AnswerTooLongError,
  DivergedError,
  HELD_MAX,
  type AnswerFacts,
  type AnswerReceiver,
  type ReceiverDeps,
} from './answer-receiver.ts';
import { HeldAnswer } from './held-answer.ts';
import { isTranscription } from '../plain-routes.ts';
import { isStored, letGo, stateOf } from './call.ts';
import { answersOf } from './most-tokens.ts';

/** How a whole body begins, perhaps behind a mark of byte order. */
const JSON_START = /^(?:\xef\xbb\xbf)?\s*[[{]/;
const NO_BYTES = Buffer.alloc(0);
/** A Buffer of its own for each piece. */
const TOLD_PIECE = 128;
/** An error is shorter. */
const HEAD_MAX = 65_536;
/** A translator keeps the answer until its end. This is twice the longest answers: 128 k events of 250 bytes. */
const TRANSLATED_MAX = 64 * 1024 * 1024;

const CUT_SHORT: ClientError = {
  status: 502,
  message: 'Connection lost: the model server ended the stream before it was complete. Try again.',
};

class CutShortError extends Error {
  override readonly name = 'CutShortError';
}

class EmptyStreamError extends Error {
  override readonly name = 'EmptyStreamError';
}

/**
 * Receives a stream of events, and passes it on byte for byte or through a translator. Nothing goes out before the first
 * event is known to be no error. A server may answer with one whole body, which becomes a stream.
 */
export class StreamReceiver implements AnswerReceiver {
  readonly #deps: ReceiverDeps;
  /** Passes events on, and learns from them. */
  #answer: PassThroughObserver | StreamTranslator;
  /** Of a whole body that is too long. */
  #beyond: AnswerFacts | undefined;
  #begun = false;
  #received = 0;
  /** The server did not say what it sends. The first byte tells. */
  #isUntyped = false;
  /** What came before the first event. Some servers send an error that has not the form of one. */
  readonly #head = new ByteBlocks();
  #whole: HeldAnswer | undefined;
  /** Chunks of this turn of the event loop. Engines write event by event, and often many arrive at once. */
  #batch: Buffer[] = [];
  /** The end of an answer that is to be stored, from its final event on. Clients may continue once they read it. */
  readonly #held = new ByteBlocks();
  /** It goes on with an answer of which the client has the start. */
  readonly #goesOn: boolean;
  /** What the client has of an answer that is passed on as it is, where another server could go on with it. */
  #told: Uint8Array[] | undefined;

  /** @param begun the answer to go on with */
  constructor(deps: ReceiverDeps, begun?: StreamTranslator) {
    const { call, request, context } = deps;
    this.#deps = deps;
    this.#goesOn = begun !== undefined;
    if (request.native && deps.mayGoOn) this.#told = [];
    const state = stateOf(call);
    this.#answer =
      begun ??
      (request.native
        ? new PassThroughObserver(call.dialect, {
            hideUsage: !call.inspection.wantsUsage,
            isTranscript: isTranscription(call.plain?.route),
            hasSeveral: answersOf(call.body) > 1,
            ...(state && { state }),
          })
        : new StreamTranslator(request.dialect, call.dialect, context));
  }

  get facts(): AnswerFacts {
    return this.#beyond ?? this.#answer;
  }

  /** The client has the start of the answer, from here or from an earlier server. */
  get #hasTold(): boolean {
    return this.#begun || this.#goesOn;
  }

  accepts(contentType: string): boolean {
    // A whole answer does not go on with another one.
    if (this.#goesOn) return contentType.startsWith('text/event-stream');
    if (contentType.startsWith('application/json')) this.#whole = new HeldAnswer();
    this.#isUntyped = contentType === '';
    return this.#isUntyped || this.#whole !== undefined || contentType.startsWith('text/event-stream');
  }

  data(chunk: Buffer, controller: Dispatcher.DispatchController): void {
    this.#received += chunk.length;
    if (this.#isUntyped && /\S/.test(chunk.toString('latin1'))) {
      this.#isUntyped = false;
      if (JSON_START.test(chunk.toString('latin1', 0, 64))) this.#whole = new HeldAnswer();
    }
    if (this.#whole !== undefined) {
      if (!this.#whole.add(chunk)) this.#endWhole(this.#whole);
      else this.#keep();
      return;
    }
    if (this.#received > TRANSLATED_MAX && !this.#deps.request.native)
      throw new AnswerTooLongError(`The stream is longer than ${TRANSLATED_MAX} bytes.`);
    this.#batch.push(chunk);
    if (this.#batch.length > 1) return;
    process.nextTick(() => {
      try {
        if (this.#batch.length === 0) return;
        this.#passOn(controller);
        this.#keep();
      } catch (error) {
        // In a tick of its own, no caller catches it.
        controller.abort(error instanceof Error ? error : new Error('No error was thrown', { cause: error }));
      }
    });
  }

  /** Counts what is kept of the answer. Throws AnswerShareError when there is no room for it. */
  #keep(): void {
    keepAnswer(this.#deps.call.kept, this.#kept);
  }

  get #kept(): number {
    return [this.#whole, this.#answer, this.#head, this.#held].reduce((sum, part) => sum + (part?.kept ?? 0), 0);
  }

  /** Runs before the next event of the network, also before an error. The last bytes wait for the end: one write less. */
  #passOn(controller: Dispatcher.DispatchController, isLast = false): void {
    const [first, ...others] = this.#batch;
    if (first === undefined || controller.aborted) return;
    this.#batch = [];
    const bytes = others.length === 0 ? first : Buffer.concat([first, ...others]);
    const out = this.#withoutKey(this.#answer.push(bytes));
    if (out === undefined || out.length === 0) {
      if (!this.#begun && this.#received <= HEAD_MAX) this.#head.add(bytes);
      return;
    }
    this.#refuseError();
    this.#begin();
    if (this.response === undefined && !isLast) this.#write(out, controller);
    else this.#hold(out);
    if (this.#goesOn && this.#answer.error !== undefined)
      controller.abort(new DivergedError('The server continues otherwise than the answer began.'));
  }

  #write(out: string | Uint8Array, controller: Dispatcher.DispatchController): void {
    const { client, call } = this.#deps;
    client.write(out, controller);
    if (this.#told === undefined) return;
    if (call.hold.hasRoom && call.hold.take(out.length + TOLD_PIECE) === 'taken') this.#told.push(Buffer.from(out));
    else this.#forgetTold(this.#told);
  }

  /** No other server can go on with it. */
  #forgetTold(told: readonly Uint8Array[]): void {
    const { call, request } = this.#deps;
    this.#told = undefined;
    request.body = NO_BYTES;
    if (isStored(call)) call.hold.give(told.reduce((sum, { length }) => sum + length + TOLD_PIECE, 0));
    else letGo(call);
  }

  /** Its engine said why it stopped. What may be missing is its usage. */
  get isWhole(): boolean {
    const { isOpen, error } = this.#answer;
    return this.#hasTold && this.#whole === undefined && !isOpen && error === undefined;
  }

  get unfinished(): StreamTranslator | undefined {
    const { call, context, mayGoOn } = this.#deps;
    const facts = this.#answer;
    if (!mayGoOn || !call.mayRetry || this.#held.size > 0) return undefined;
    if (facts instanceof StreamTranslator) return facts.told === undefined ? undefined : facts;
    if (this.#told === undefined || !facts.isOpen) return undefined;
    return translatorBehind(call.dialect, Buffer.concat(this.#told), { ...context, request: call.body });
  }

  end(controller: Dispatcher.DispatchController): void {
    const { call, request } = this.#deps;
    if (this.#whole !== undefined) {
      this.#endWhole(this.#whole);
      return;
    }
    this.#passOn(controller, true);
    if (!this.#hasTold) refuseErrorIn(this.#head.take());
    const { isOpen, isBetweenEvents } = this.#answer;
    if (this.#deps.mayGoOn && this.#hasTold && isOpen && isBetweenEvents) this.#breakOff(controller);
    const rest = this.#withoutKey(this.#answer.end());
    this.#refuseError();
    if (rest !== undefined && rest.length > 0) this.#begin();
    // Nothing was passed on, so another endpoint may still answer.
    if (!this.#hasTold) throw new EmptyStreamError('The stream ended before its first event.');
    // The translator itself ends a stream that was cut short.
    const isCut = request.native && !this.#answer.finished && this.#answer.error === undefined;
    const cut = isCut ? streamError(call.dialect, CUT_SHORT) : '';
    if (rest !== undefined) this.#hold(rest);
    this.#hold(cut);
    call.kept.keepAnyway(this.#kept);
  }

  /** A server that ends is cut off as cleanly as one that has said all. */
  #breakOff(controller: Dispatcher.DispatchController): never {
    const last = this.#held.take();
    if (last.length > 0) this.#write(last, controller);
    throw new CutShortError('The stream ended before the answer was complete.');
  }

  /** Engines repeat what they were sent when they complain of it. */
  #withoutKey<T extends string | Uint8Array>(out: T | undefined): T | string | undefined {
    const { credential } = this.#deps.request;
    if (out === undefined || credential === undefined || this.#answer.error === undefined) return out;
    return credential.redact(typeof out === 'string' ? out : Buffer.from(out).toString('utf8'));
  }

  /** Before the first byte, an error in the stream is the error of the call: another endpoint may still answer. */
  #refuseError(): void {
    if (!this.#hasTold && this.#answer.error !== undefined) throw new DialectError(this.#answer.error);
  }

  #endWhole(held: HeldAnswer): void {
    const { call, request, context, onFirstByte } = this.#deps;
    this.#beyond = held.factsBeyond(request.dialect, call.plain !== undefined);
    if (this.#beyond !== undefined) onFirstByte();
    const bytes = refuseErrorIn(held.whole());
    if (call.plain !== undefined) {
      this.#begin();
      this.#hold(this.#answer.push(wholeAsEvents(call.plain.route, bytes)) ?? '');
      return;
    }
    keepParsed(call.kept, bytes);
    const chunks = request.native && call.dialect === 'chat' ? wholeAsChunks(readAnswerExactly(bytes)) : undefined;
    if (chunks !== undefined) {
      this.#begin();
      this.#hold(this.#answer.push(Buffer.from(chunks)) ?? '');
      return;
    }
    const translator = new StreamTranslator(request.dialect, call.dialect, { ...context, request: call.body });
    const out = translator.whole(readAnswer(bytes));
    this.#answer = translator;
    this.#begin();
    this.#hold(out);
    call.kept.keepAnyway(this.#kept);
  }

  finish(): void {
    const { client, call } = this.#deps;
    const last = this.#held.take();
    // From now on it is what the client has not read.
    call.kept.release();
    client.endStream(last);
  }

  fail(error: ClientError): void {
    if (this.#held.size > 0) this.finish();
    else if (this.#answer instanceof StreamTranslator) this.#deps.client.endStream(this.#answer.fail(error));
    else this.#deps.client.sendError(error);
  }

  #hold(out: string | Uint8Array): void {
    const bytes = Buffer.from(out);
    if (this.#held.size + bytes.length > HELD_MAX)
      throw new AnswerTooLongError(`The end of the stream is longer than ${HELD_MAX} bytes.`);
    this.#held.add(bytes);
  }

  #begin(): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#head.take();
    this.#deps.onFirstByte();
  }

  /** The whole answer, once the final event of a responses stream has come. Absent when it is too long to be kept. */
  get response(): unknown {
    return isStored(this.#deps.call) ? this.#answer.response : undefined;
  }
}

/** @throws DialectError when the body is an error */
function refuseErrorIn(whole: Buffer): Buffer {
  const bytes = withoutMark(whole);
  const error = errorInAnswer(bytes);
  if (error !== undefined) throw new DialectError(error);
  return bytes;
}

/** The stream that a whole answer stands for: some servers, and some models of OpenAI, leave out that one was asked for. */
function wholeAsEvents(route: PlainRoute, bytes: Buffer): Buffer {
  const text = bytes.toString('utf8');
  if (!isTranscription(route)) return Buffer.from(`${eventOf(text)}data: [DONE]\n\n`);
  const body = parseJson(text);
  const { text: heard = '', usage } = isObject(body) ? body : {};
  return Buffer.from(eventOf(JSON.stringify({ type: 'transcript.text.done', text: heard, usage })));
}

/** A JSON text may have line ends between its tokens, and has none inside of them. */
function eventOf(json: string): string {
  return `data: ${json.replaceAll(/[\r\n]+/g, ' ').trim()}\n\n`;
}
