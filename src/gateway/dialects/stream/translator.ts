import { isObject } from '../../../lib/json.ts';
import { ChatStreamParser } from '../chat/parse-stream.ts';
import { ChatEmitter } from '../chat/render-stream.ts';
import { isOverflow } from '../errors/context-overflow.ts';
import { DialectError } from '../errors/dialect-error.ts';
import type { GoingOn, Told } from '../go-on.ts';
import { signerOf } from '../call-signature.ts';
import { optionalString, parseJson } from '../fields.ts';
import { MessagesStreamParser } from '../messages/parse-stream.ts';
import { MessagesEmitter } from '../messages/render-stream.ts';
import { type Begun, begunMessage, begunResponse } from './begun.ts';
import { ResponsesStreamParser } from '../responses/parse-stream.ts';
import { ResponsesEmitter } from '../responses/render-stream.ts';
import { parseAnswer } from '../translate-response.ts';
import type { ClientError, Dialect, HistoryItem, IrResponse, OutputItem, TranslationContext, Usage } from '../types.ts';
import { answerOptions, type AnswerOptions } from '../answer-options.ts';
import type { Emitter } from './emitter.ts';
import { BlockSequencer } from './sequencer.ts';
import { SseReader } from './sse-reader.ts';

const CUT_SHORT: ClientError = {
  status: 502,
  message: 'Connection lost: the model server closed the connection before the answer was complete. Try again.',
  code: 'upstream_closed',
};

/** Translates one stream: reads the events of the server's dialect and writes events of the client's. */
export class StreamTranslator {
  readonly #sequencer: BlockSequencer;
  readonly #emitter: Emitter;
  #reader: SseReader;
  readonly #upstream: Dialect;
  /** The id that the client sees in the responses dialect. */
  readonly responseId: string;

  constructor(upstream: Dialect, client: Dialect, context: TranslationContext) {
    this.#upstream = upstream;
    const options = answerOptions(client, context);
    const emitter = createEmitter(client, context, options);
    const sequencer = new BlockSequencer({
      emitter,
      id: context.id,
      singleCall: options.singleCall,
      signer: signerOf(context.upstreamModel ?? context.model),
      origins: options.origins,
    });
    this.#sequencer = sequencer;
    this.#emitter = emitter;
    this.#reader = readerFor(sequencer, createParser(upstream, sequencer));
    this.responseId = optionalString(context.begun?.id) ?? `resp_${context.id}`;
  }

  /** Takes bytes that are cut anywhere. Returns whole events for the client, or an empty string. */
  push(chunk: Uint8Array): string {
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof DialectError)) throw error;
      this.#sequencer.fail({ status: error.status, message: error.message });
    }
    return this.#sequencer.take();
  }

  /** What another engine needs to go on with the answer; undefined where none can. */
  get told(): Told | undefined {
    return this.#sequencer.told;
  }

  /** From now on the bytes are those of a chat stream that goes on with the answer. */
  goOn(goingOn: GoingOn): void {
    this.#sequencer.goOn(goingOn);
    this.#reader = readerFor(this.#sequencer, new ChatStreamParser(this.#sequencer, goingOn.given));
  }

  /** The client has all that came until now, and not by the events of this one. */
  settle({ hasHead = false, itemId, sequence }: Partial<Begun>): void {
    this.#sequencer.settle(hasHead, itemId);
    if (sequence !== undefined) this.#emitter.resume?.(sequence);
  }

  /** No event has ended the answer. */
  get isOpen(): boolean {
    return !this.#sequencer.stopped && !this.finished;
  }

  /** All that came was whole events. */
  get isBetweenEvents(): boolean {
    return this.#reader.isBetweenEvents;
  }

  /** The server ended the stream. Closes what is open. A stream that was cut short ends with an error. */
  end(): string {
    this.#reader.end();
    if (this.#sequencer.stopped) this.#sequencer.finish();
    else this.#sequencer.fail(CUT_SHORT);
    return this.#sequencer.take();
  }

  /**
   * The server sent a whole answer in place of a stream. Returns the stream of it. Throws DialectError for an error, or
   * a body that is no answer.
   */
  whole(body: unknown): string {
    feedAnswer(parseAnswer(this.#upstream, body), this.#sequencer);
    this.#sequencer.finish();
    return this.#sequencer.take();
  }

  /** The server failed. Returns the error event and the end of the stream, empty when the stream has ended. */
  fail(error: ClientError): string {
    this.#sequencer.fail(error);
    return this.#sequencer.take();
  }

  get usage(): Usage | undefined {
    return this.#sequencer.usage;
  }

  get isCounted(): boolean {
    return this.#sequencer.isCounted;
  }

  get estimatedOutputTokens(): number {
    return this.#sequencer.estimatedOutputTokens;
  }

  /** Bytes of memory, about. */
  get kept(): number {
    return this.#reader.kept + this.#sequencer.kept;
  }

  /** Responses only: the whole answer, once it has ended. */
  get response(): unknown {
    return this.#emitter.response;
  }

  get items(): HistoryItem[] {
    return this.#sequencer.items;
  }

  /** The final event was written, after an answer or an error. */
  get finished(): boolean {
    return this.#sequencer.finished;
  }

  /** The error that ended the stream. */
  get error(): ClientError | undefined {
    return this.#sequencer.error;
  }
}

/**
 * The whole stream for a call that cannot be served, in place of an error status: for a request beyond the context in
 * the responses dialect. OpenAI answers so, and Codex does not read the body of a 400. Undefined for other errors.
 */
export function failedStream(client: Dialect, error: ClientError, context: TranslationContext): string | undefined {
  if (client !== 'responses' || !isOverflow(error)) return undefined;
  return new StreamTranslator(client, client, context).fail(error);
}

function createEmitter(client: Dialect, context: TranslationContext, options: AnswerOptions): Emitter {
  if (client === 'chat') return new ChatEmitter(context, options);
  return client === 'messages' ? new MessagesEmitter(context) : new ResponsesEmitter(context, options);
}

interface StreamParser {
  event(data: string): void;
}

function readerFor(sequencer: BlockSequencer, parser: StreamParser): SseReader {
  return new SseReader((data) => {
    if (!sequencer.finished) parser.event(data);
  });
}

function createParser(upstream: Dialect, sink: BlockSequencer): StreamParser {
  if (upstream === 'chat') return new ChatStreamParser(sink);
  return upstream === 'messages' ? new MessagesStreamParser(sink) : new ResponsesStreamParser(sink);
}

/**
 * The translator that goes on with a stream of which the client has these events of its own dialect; undefined where none
 * can.
 *
 * @param context of the call; the ids of the answer are those that its engine gave it
 */
export function translatorBehind(
  client: Dialect,
  told: Uint8Array,
  context: TranslationContext,
): StreamTranslator | undefined {
  const begun = BEGUN[client](told);
  if (begun === undefined) return undefined;
  const given = client === 'chat' ? chatHeadOf(told) : { begun: begun.response };
  const translator = new StreamTranslator(client, client, { ...context, ...given });
  translator.push(told);
  translator.settle(begun);
  return translator.told === undefined ? undefined : translator;
}

const BEGUN: Record<Dialect, (told: Uint8Array) => Partial<Begun> | undefined> = {
  chat: () => ({}),
  responses: begunResponse,
  messages: begunMessage,
};

/** How an engine named its chat answer. */
function chatHeadOf(told: Uint8Array): Partial<TranslationContext> {
  let head: Partial<TranslationContext> = {};
  const reader = new SseReader((data) => {
    const chunk = parseJson(data);
    if (head.chatId !== undefined || !isObject(chunk) || typeof chunk.id !== 'string') return;
    const { id: chatId, created, model } = chunk;
    head = {
      chatId,
      ...(typeof created === 'number' && { createdAt: created }),
      ...(typeof model === 'string' && { model }),
    };
  });
  reader.push(told);
  return head;
}

/** Feeds a whole answer to a sequencer, as if it had come as a stream. The caller finishes it. */
function feedAnswer({ items, stop, stopSequence, usage }: IrResponse, sink: BlockSequencer): void {
  sink.usage = usage;
  sink.stop(() => stop, stopSequence);
  for (const [index, item] of items.entries()) {
    sink.seal();
    feed(item, index, sink);
  }
  sink.counted(usage?.outputTokens ?? 0);
}

function feed(item: OutputItem, index: number, sink: BlockSequencer): void {
  if (item.kind === 'call') {
    sink.call(index, item.callId, item.name);
    sink.callArguments(index, item.arguments);
    return;
  }
  if (item.kind === 'reasoning' && item.callSignature !== undefined) {
    sink.callSignature(item.callSignature.data);
    return;
  }
  sink[item.kind](item.text);
  if (item.kind !== 'reasoning') return;
  const { signature, redacted, opaque } = item;
  if ((signature ?? redacted ?? opaque) !== undefined) sink.reasoningMark({ signature, redacted, opaque });
}
