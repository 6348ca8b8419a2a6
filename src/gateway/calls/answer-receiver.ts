import type { ClientError, HistoryItem, StreamTranslator, TranslationContext, Usage } from '../dialects/index.ts';
import type { Receiver } from './attempt.ts';
import type { Call } from './call.ts';
import type { ClientWriter } from './client-writer.ts';
import type { UpstreamRequest } from './upstream-request.ts';

/** What the gateway learns of an answer that it passes on. */
export interface AnswerFacts {
  readonly usage: Usage | undefined;
  /** The output so far: what the engine counted last, and an estimate of what was passed on since. */
  readonly estimatedOutputTokens: number;
  /** The engine counted all of it. */
  readonly isCounted: boolean;
  /** The output items, to be stored. */
  readonly items: HistoryItem[];
  readonly responseId: string | undefined;
  /** The error that the model server reported inside the stream. */
  readonly error: ClientError | undefined;
}

export const NO_FACTS: AnswerFacts = {
  usage: undefined,
  estimatedOutputTokens: 0,
  isCounted: true,
  items: [],
  responseId: undefined,
  error: undefined,
};

export interface AnswerReceiver extends Receiver {
  readonly facts: AnswerFacts;
  /** The answer as the client gets it, in the responses dialect only. */
  readonly response: unknown;
  /** Passes on the end of the answer, which is held back until the answer is stored. */
  finish(): void;
  /** The answer so far, where another server can go on with it. */
  readonly unfinished?: StreamTranslator | undefined;
  /** Tells the client that the answer broke off after its first byte. */
  fail(error: ClientError): void;
}

export interface ReceiverDeps {
  call: Call;
  request: UpstreamRequest;
  client: ClientWriter;
  context: TranslationContext;
  /** Another server of the model could go on with the answer. */
  mayGoOn: boolean;
  onFirstByte: () => void;
}

/** Bytes of a whole answer, or of the end of a stream that is held back. */
export const HELD_MAX = 32 * 1024 * 1024;

/** A server does not go on as the answer began, for which it is not to blame. */
export class DivergedError extends Error {
  override readonly name = 'DivergedError';
}

export class AnswerTooLongError extends Error {
  override readonly name = 'AnswerTooLongError';
}
