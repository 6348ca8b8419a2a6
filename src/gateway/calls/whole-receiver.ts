import { isObject, type Json } from '../../lib/json.ts';
import {
  compacted,
  DialectError,
  errorInAnswer,
  observeBody,
  readAnswer,
  readAnswerExactly,
  translateResponse,
  withoutMark,
  withState,
} from '../dialects/index.ts';
import {
  AnswerTooLongError,
  HELD_MAX,
  type AnswerFacts,
  type AnswerReceiver,
  type ReceiverDeps,
} from './answer-receiver.ts';
import { isTranscription } from '../plain-routes.ts';
import { isStored, stateOf } from './call.ts';

const NO_FACTS: AnswerFacts = {
  usage: undefined,
  estimatedOutputTokens: 0,
  items: [],
  responseId: undefined,
  error: undefined,
};

const TEXT_TYPE = /^(?:text\/(?!html|event-stream)|application\/x-subrip)/;
const SOUND_TYPE = /^(?:audio\/|application\/octet-stream)/;

class NotJsonError extends Error {
  override readonly name = 'NotJsonError';
}

/** Holds a whole JSON answer until it is complete: when the server dies half way, another endpoint may still answer. */
export class WholeReceiver implements AnswerReceiver {
  readonly #deps: ReceiverDeps;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #answer: Buffer = Buffer.alloc(0);
  /** The media type of an answer that is no JSON. */
  #otherType: string | undefined;
  facts = NO_FACTS;
  response: unknown;

  constructor(deps: ReceiverDeps) {
    this.#deps = deps;
  }

  accepts(contentType: string): boolean {
    const isJson = contentType.startsWith('application/json');
    const { plain } = this.#deps.call;
    // Transcriptions come as text and subtitles, too, and speech as sound.
    const isText = isTranscription(plain?.route) && TEXT_TYPE.test(contentType);
    const isSound = plain?.route === 'speech' && SOUND_TYPE.test(contentType);
    if (isText || isSound) this.#otherType = contentType;
    return isJson || isText || isSound || contentType === '';
  }

  data(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > HELD_MAX) throw new AnswerTooLongError(`The answer is longer than ${HELD_MAX} bytes.`);
    this.#chunks.push(chunk);
  }

  end(): void {
    const { call, request, context, onFirstByte } = this.#deps;
    const whole =
      this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks, this.#size);
    const bytes = this.#otherType === undefined ? withoutMark(whole) : whole;
    onFirstByte();
    if (request.native) {
      const error = errorInAnswer(bytes);
      if (error !== undefined) throw new DialectError(error);
      // Servers of embeddings answer with a list, too.
      const isAnswer = this.#otherType !== undefined || looksLikeObject(bytes, call.plain !== undefined);
      if (!isAnswer) throw new NotJsonError('The answer is not a JSON object.');
      this.facts = { ...NO_FACTS, ...observeBody(call.dialect, bytes) };
      this.#answer = this.#corrected(bytes);
      return;
    }
    const { body, usage, items } = translateResponse(request.dialect, call.dialect, readAnswer(bytes), context);
    this.facts = { ...NO_FACTS, usage, items, responseId: idOf(body) };
    this.response = body;
    this.#answer = Buffer.from(JSON.stringify(call.compacts ? compacted(body) : body));
  }

  /** The answer with what is true of it. */
  #corrected(bytes: Buffer): Buffer {
    const { call } = this.#deps;
    const state = stateOf(call);
    if (state === undefined) return bytes;
    const said = readAnswerExactly(bytes) as Json;
    const response = withState(said, state);
    if (isStored(call)) this.response = response;
    return response === said ? bytes : Buffer.from(JSON.stringify(response));
  }

  finish(): void {
    this.#deps.client.sendWhole(this.#answer, this.#otherType);
  }

  /** Nothing to do: nothing is passed on before the end, so the caller answers. */
  fail(): void {}
}

/** Tells an answer from an error page. Pass-through does not parse the whole answer. */
function looksLikeObject(bytes: Buffer, mayBeList: boolean): boolean {
  return (mayBeList ? /^\s*[[{]/ : /^\s*\{/).test(bytes.toString('latin1', 0, 64));
}

function idOf(body: unknown): string | undefined {
  return isObject(body) && typeof body.id === 'string' ? body.id : undefined;
}
