import { isObject, readJson } from '../../lib/json.ts';
import { DialectError, errorInAnswer, observeBody, translateResponse } from '../dialects/index.ts';
import {
  AnswerTooLongError,
  HELD_MAX,
  type AnswerFacts,
  type AnswerReceiver,
  type ReceiverDeps,
} from './answer-receiver.ts';
import { isStored } from './call.ts';

const NO_FACTS: AnswerFacts = {
  usage: undefined,
  estimatedOutputTokens: 0,
  items: [],
  responseId: undefined,
  error: undefined,
};

const TEXT_TYPE = /^(?:text\/(?!html|event-stream)|application\/x-subrip)/;

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
  #textType: string | undefined;
  facts = NO_FACTS;
  response: unknown;

  constructor(deps: ReceiverDeps) {
    this.#deps = deps;
  }

  accepts(contentType: string): boolean {
    const isJson = contentType.startsWith('application/json');
    // Transcriptions come as text and subtitles, too.
    const isText = this.#deps.call.plain?.route === 'transcriptions' && TEXT_TYPE.test(contentType);
    if (isText) this.#textType = contentType;
    return isJson || isText;
  }

  data(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > HELD_MAX) throw new AnswerTooLongError(`The answer is longer than ${HELD_MAX} bytes.`);
    this.#chunks.push(chunk);
  }

  end(): void {
    const { call, request, context, onFirstByte } = this.#deps;
    const bytes =
      this.#chunks.length === 1 && this.#chunks[0] ? this.#chunks[0] : Buffer.concat(this.#chunks, this.#size);
    onFirstByte();
    if (request.native) {
      const error = errorInAnswer(bytes);
      if (error !== undefined) throw new DialectError(error);
      // Servers of embeddings answer with a list, too.
      const isAnswer = this.#textType !== undefined || looksLikeObject(bytes, call.plain !== undefined);
      if (!isAnswer) throw new NotJsonError('The answer is not a JSON object.');
      this.facts = { ...NO_FACTS, ...observeBody(call.dialect, bytes) };
      if (isStored(call)) this.response = readJson(bytes.toString('utf8'));
      this.#answer = bytes;
      return;
    }
    const upstream = readJson(bytes.toString('utf8'));
    const { body, usage, items } = translateResponse(request.dialect, call.dialect, upstream, context);
    this.facts = { ...NO_FACTS, usage, items, responseId: idOf(body) };
    this.response = body;
    this.#answer = Buffer.from(JSON.stringify(body));
  }

  finish(): void {
    this.#deps.client.sendWhole(this.#answer, this.#textType);
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
