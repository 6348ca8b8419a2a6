/**
 * The dialect half of the model gateway: pure functions over bodies and bytes, no I/O, no clock.
 *
 * A call goes: `inspectRequest` (route) -> `requestFeatures` + `chooseUpstream` (which dialect to the backend) ->
 * `translateRequest` (also when the dialect stays: it forces usage reporting and applies engine quirks) -> then
 * `createPassThroughObserver`/`observeBody` when the dialect stays, else `createStreamTranslator`/`translateResponse`.
 * Errors of the backend go through `readUpstreamError`, everything told to a client through `errorBody`/`streamError`.
 */
export { errorBody, streamError } from './errors/error-body.ts';
export { DialectError } from './errors/dialect-error.ts';
export { estimateTokens } from './inspect/estimate-tokens.ts';
export { requestFeatures, PLAIN, type RequestFeatures } from './inspect/request-features.ts';
export { checkMessages, inspectRequest, promptPrefix, type Inspection } from './inspect/inspect-request.ts';
export { chooseUpstream, nativeDialects, quirksOf, type Engine, type Quirks } from './quirks.ts';
export { optionalCount } from './fields.ts';
export { parseInput } from './responses/parse-items.ts';
export { translateRequest } from './translate-request.ts';
export { translateResponse } from './translate-response.ts';
export { observeBody } from './stream/observe-body.ts';
export { createPassThroughObserver } from './stream/pass-through-observer.ts';
export { createStreamTranslator } from './stream/translator.ts';
export type { ClientError, Dialect, HistoryItem, TranslationContext, Usage } from './types.ts';
export { readUpstreamError } from './errors/upstream-error.ts';
