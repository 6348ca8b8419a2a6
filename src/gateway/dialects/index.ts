/**
 * The dialect half of the model gateway: pure functions over bodies and bytes, no I/O, no clock.
 *
 * A call goes: `inspectRequest` (route) -> `requestFeatures` + `chooseUpstream` (which dialect to the backend) ->
 * `translateRequest` (also when the dialect stays: it forces usage reporting and applies engine quirks) -> then
 * `createPassThroughObserver`/`observeBody` when the dialect stays, else `createStreamTranslator`/`translateResponse`.
 * Errors of the backend go through `readUpstreamError`, everything told to a client through `errorBody`/`streamError`.
 */
import { DialectError } from './errors.ts';
import type { ClientError, Dialect, HistoryItem, TranslationContext, Usage } from './types.ts';

export { errorBody, streamError } from './error-body.ts';
export { DialectError } from './errors.ts';
export { estimateTokens } from './estimate.ts';
export { requestFeatures, PLAIN, type RequestFeatures } from './features.ts';
export { checkMessages, inspectRequest, promptPrefix, type Inspection } from './inspect.ts';
export { chooseUpstream, isTrusted, nativeDialects, quirksOf, type Engine, type Quirks } from './quirks.ts';
export { requestItems, translateRequest, type RequestOptions } from './translate-request.ts';
export { translateResponse, type TranslatedResponse } from './translate-response.ts';
export type { ClientError, Dialect, HistoryItem, TranslationContext, Usage } from './types.ts';
export { readUpstreamError } from './upstream-error.ts';

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
