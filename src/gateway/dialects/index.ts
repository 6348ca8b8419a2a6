/**
 * The dialect half of the model gateway: pure functions over bodies and bytes, no I/O, no clock.
 *
 * A call goes: `inspectRequest` (route) -> `requestFeatures` + `chooseUpstream` (which dialect to the backend) ->
 * `translateRequest` (also when the dialect stays: it forces usage reporting and applies engine quirks) -> then
 * `createPassThroughObserver`/`observeBody` when the dialect stays, else `createStreamTranslator`/`translateResponse`.
 * Errors of the backend go through `readUpstreamError`, everything told to a client through `errorBody`/`streamError`.
 */
import { DialectError } from './errors.ts';
import type { Quirks } from './quirks.ts';
import type { ClientError, Dialect, HistoryItem, TranslationContext, Usage } from './types.ts';

export { DialectError } from './errors.ts';
export { requestFeatures, PLAIN, type RequestFeatures } from './features.ts';
export { chooseUpstream, isTrusted, nativeDialects, quirksOf, type Engine, type Quirks } from './quirks.ts';
export type { ClientError, Dialect, HistoryItem, TranslationContext, Usage } from './types.ts';

/** What routing needs to know of a client body. */
export interface Inspection {
  model: string;
  stream: boolean;
  /** Normalised, dialect-independent start of the prompt: system text, tool names, first user text. */
  promptPrefix: string[];
  /** A client-supplied session key (`prompt_cache_key`, Claude Code's session id): stronger than the prefix. */
  sessionHint: string | undefined;
  /** The client itself asked for usage in a chat stream; otherwise the forced usage chunk must be hidden. */
  wantsUsage: boolean;
  /** Responses only: the answer is to be kept (default true there, false elsewhere). */
  store: boolean;
  previousResponseId: string | undefined;
  /** Responses only: ids of `item_reference` inputs the gateway's store must supply. */
  itemReferences: string[];
  /** Upper bound of output tokens the client asked for, if any. */
  maxTokens: number | undefined;
}

export interface RequestOptions {
  /** The name the backend serves the model under. */
  model: string;
  quirks: Quirks;
  /** Items of the chain named by `previous_response_id`, oldest first. */
  history?: readonly HistoryItem[];
  /** Items for the ids in `Inspection.itemReferences`; an id may stand for several items. */
  references?: ReadonlyMap<string, readonly HistoryItem[]>;
}

/** The answer of a backend in the client's dialect. `items` are this answer's output, to be stored after the input's. */
export interface TranslatedResponse {
  body: unknown;
  usage: Usage | undefined;
  items: HistoryItem[];
}

export interface StreamTranslator {
  /** Raw upstream bytes in, client SSE text out (possibly empty). Chunk boundaries may fall anywhere. */
  push(chunk: Uint8Array): string;
  /** The upstream ended: closes what is open; a stream cut short becomes an error in the client's dialect. */
  end(): string;
  /** The upstream failed: the error event and the end of the stream. Empty when already finished. */
  fail(error: ClientError): string;
  readonly usage: Usage | undefined;
  /** Best count so far when no usage was reported (client or backend gone): for billing partial output. */
  readonly estimatedOutputTokens: number;
  readonly items: HistoryItem[];
  readonly responseId: string;
  readonly finished: boolean;
  /** The error the backend reported inside the stream, if it did. */
  readonly error: ClientError | undefined;
}

export interface PassThroughObserver {
  /** Bytes to forward now, always whole SSE events; undefined when nothing is complete yet. */
  push(chunk: Uint8Array): Uint8Array | undefined;
  /** What is left when the upstream ended. */
  end(): Uint8Array | undefined;
  readonly usage: Usage | undefined;
  readonly estimatedOutputTokens: number;
  /** Responses only: the output items of the final event, and its id. */
  readonly items: HistoryItem[];
  readonly responseId: string | undefined;
  /** The dialect's terminal event was seen. */
  readonly finished: boolean;
}

/** Parses and checks a client body far enough to route it. Throws `DialectError`. */
export function inspectRequest(_dialect: Dialect, _body: unknown): Inspection {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** Client body -> backend body, through the internal form when the dialects differ. Throws `DialectError`. */
export function translateRequest(_from: Dialect, _to: Dialect, _body: unknown, _options: RequestOptions): unknown {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** The input items of a body (without `instructions`): what the gateway stores before the output items. */
export function requestItems(_dialect: Dialect, _body: unknown): HistoryItem[] {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** A whole backend answer -> the client's dialect. */
export function translateResponse(
  _upstream: Dialect,
  _client: Dialect,
  _body: unknown,
  _context: TranslationContext,
): TranslatedResponse {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** One machine per stream. */
export function createStreamTranslator(
  _upstream: Dialect,
  _client: Dialect,
  _context: TranslationContext,
): StreamTranslator {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** Watches a stream that is forwarded byte for byte; `hideUsage` drops the chat usage chunk the gateway forced. */
export function createPassThroughObserver(_dialect: Dialect, _options: { hideUsage: boolean }): PassThroughObserver {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** Usage (and, for responses, items and id) of a whole body that is forwarded as it is. */
export function observeBody(
  _dialect: Dialect,
  _bytes: Uint8Array,
): { usage: Usage | undefined; items: HistoryItem[]; responseId: string | undefined } {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** What a backend's error body says, freed of internal addresses; 401 and 403 of a backend become 502. */
export function readUpstreamError(_status: number, _body: string): ClientError {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** A whole error answer in the dialect's shape. Not for a wrong key: that one is the same in every dialect. */
export function errorBody(
  _dialect: Dialect,
  _error: ClientError & { requestId: string },
): { status: number; body: unknown; headers: Record<string, string> } {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** The error as the last event(s) of a stream that was forwarded byte for byte. */
export function streamError(_dialect: Dialect, _error: ClientError): string {
  throw new DialectError({ status: 501, message: 'not ready' });
}

/** `count_tokens` without the engine: an estimate of the prompt's size. */
export function estimateTokens(_dialect: Dialect, _body: unknown): number {
  throw new DialectError({ status: 501, message: 'not ready' });
}
