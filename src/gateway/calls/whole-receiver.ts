import { isObject, type Json } from '../../lib/json.ts';
import { isClosed, isSpace } from '../../lib/json-structure.ts';
import {
  compacted,
  DialectError,
  errorInAnswer,
  failedWith,
  observeBody,
  outputTokensIn,
  readAnswer,
  readAnswerExactly,
  translateResponse,
  withoutMark,
  withState,
  type ClientError,
  type Usage,
} from '../dialects/index.ts';
import { keepAnswer, keepParsed } from './answer-share.ts';
import { NO_FACTS, type AnswerFacts, type AnswerReceiver, type ReceiverDeps } from './answer-receiver.ts';
import { HeldAnswer } from './held-answer.ts';
import { isTranscription } from '../plain-routes.ts';
import { isStored, stateOf } from './call.ts';
import { withoutKey } from './without-key.ts';

const TEXT_TYPE = /^(?:text\/(?!html|event-stream)|application\/x-subrip)/;
const SOUND_TYPE = /^(?:audio\/|application\/octet-stream)/;

class NotJsonError extends Error {
  override readonly name = 'NotJsonError';
}

/** Holds a whole JSON answer until it is complete: when the server dies half way, another endpoint may still answer. */
export class WholeReceiver implements AnswerReceiver {
  readonly #deps: ReceiverDeps;
  readonly #held = new HeldAnswer();
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
    if (!this.#held.add(chunk)) this.end();
    else keepAnswer(this.#deps.call.kept, this.#held.kept);
  }

  end(): void {
    this.#end();
    // The client gets what is there, which frees it.
    this.#deps.call.kept.keepAnyway(this.#answer.length);
  }

  #end(): void {
    const { call, request, context, onFirstByte } = this.#deps;
    const beyond = this.#held.factsBeyond(request.dialect, call.plain !== undefined);
    if (beyond !== undefined) {
      this.facts = beyond;
      onFirstByte();
    }
    const whole = this.#held.whole();
    const bytes = this.#otherType === undefined ? withoutMark(whole) : whole;
    // An answer for which there is no room has not begun: it costs nothing.
    if (!request.native || call.dialect === 'responses') keepParsed(call.kept, bytes);
    onFirstByte();
    if (request.native) {
      const error = errorInAnswer(bytes);
      if (error !== undefined) throw new DialectError(error);
      // Servers of embeddings answer with a list, too.
      const isAnswer = this.#otherType !== undefined || looksWhole(bytes, call.plain !== undefined);
      if (!isAnswer) throw new NotJsonError('The answer is not a whole JSON object.');
      const observed = observeBody(call.dialect, bytes);
      this.facts = {
        ...NO_FACTS,
        ...observed,
        ...(call.plain === undefined && this.#uncounted(bytes, observed.usage)),
      };
      this.#answer = this.#corrected(bytes, observed.error);
      return;
    }
    const { body, usage, items } = translateResponse(request.dialect, call.dialect, readAnswer(bytes), context);
    this.facts = { ...NO_FACTS, usage, items, responseId: idOf(body), ...this.#uncounted(bytes, usage) };
    this.response = body;
    this.#answer = Buffer.from(JSON.stringify(call.compacts ? compacted(body) : body));
  }

  /** Of an answer of which the engine counted only the prompt. */
  #uncounted(bytes: Buffer, usage: Usage | undefined): Partial<AnswerFacts> {
    if (usage === undefined || usage.outputTokens > 0) return {};
    return { estimatedOutputTokens: outputTokensIn(this.#deps.request.dialect, bytes), isCounted: false };
  }

  /** The answer with what is true of it, and with nothing of the inside in the error of a failed response. */
  #corrected(bytes: Buffer, failure: ClientError | undefined): Buffer {
    const { call, request } = this.#deps;
    const state = stateOf(call);
    if (state === undefined && failure === undefined) return bytes;
    const said = readAnswerExactly(bytes) as Json;
    const told = failure === undefined ? said : { ...said, error: failedWith(withoutKey(request.credential, failure)) };
    const response = state === undefined ? told : withState(told, state);
    if (isStored(call)) this.response = response;
    return response === said ? bytes : Buffer.from(JSON.stringify(response));
  }

  finish(): void {
    const { client, call } = this.#deps;
    // From now on it is what the client has not read.
    call.kept.release();
    client.sendWhole(this.#answer, this.#otherType);
  }

  /** Nothing to do: nothing is passed on before the end, so the caller answers. */
  fail(): void {}
}

/** What closes what begins so. */
const CLOSING: Readonly<Record<string, number>> = { '[': 0x5d, '{': 0x7d };
/** In longer ones no more than the last byte is looked at: embeddings may have megabytes of numbers. */
const WALKED_BYTES = 65_536;

/**
 * Tells an answer from an error page, and from the start of one: a server that names no length may end anywhere. Pass-through
 * does not parse the whole answer.
 */
function looksWhole(bytes: Buffer, mayBeList: boolean): boolean {
  const [first = ''] = /\S/.exec(bytes.toString('latin1', 0, 64)) ?? [];
  if (first !== '{' && !(mayBeList && first === '[')) return false;
  let end = bytes.length;
  while (isSpace(bytes[end - 1])) end -= 1;
  if (bytes[end - 1] !== CLOSING[first]) return false;
  return bytes.length > WALKED_BYTES || isClosed(bytes);
}

function idOf(body: unknown): string | undefined {
  return isObject(body) && typeof body.id === 'string' ? body.id : undefined;
}
