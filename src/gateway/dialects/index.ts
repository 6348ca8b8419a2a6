/**
 * The dialects of the model gateway: bodies and bytes in, bodies and bytes out, no I/O and no clock.
 *
 * 1. `inspectRequest` reads what routing needs.
 * 2. `requestFeatures` and `chooseUpstream` decide in which dialect the server is asked.
 * 3. `translateRequest` makes its body, also in the client's own dialect: it asks for usage and applies engine quirks.
 * 4. In the client's dialect the answer passes through a `PassThroughObserver` or `observeBody`, else through a
 *    `StreamTranslator` or `translateResponse`.
 *
 * `readUpstreamError` reads errors of a server, `errorBody` and `streamError` write errors for a client.
 */
export { errorBody, failedWith, INSUFFICIENT_QUOTA, streamError } from './errors/error-body.ts';
export { isOverflow } from './errors/context-overflow.ts';
export { DialectError, invalid, unsupported } from './errors/dialect-error.ts';
export { estimateTokens, promptTokens, tokensOfItem } from './inspect/estimate-tokens.ts';
export { isFreeData } from './inspect/free-data.ts';
export { mostOfItem, mostOfPrompt, SOUND_BYTES_PER_TOKEN } from './inspect/most-prompt.ts';
export { refuseImagesInText, remoteMedia, type RemoteMedia } from './inspect/media.ts';
export { requestFeatures, PLAIN, type RequestFeatures } from './inspect/request-features.ts';
export {
  checkBody,
  checkMessages,
  inspectRequest,
  promptPrefix,
  refuseOfProxies,
  refuseOfServers,
  type Inspection,
} from './inspect/inspect-request.ts';
export {
  chooseUpstream,
  dialectsWithSalt,
  ENGINES,
  nativeDialects,
  quirksOf,
  type Engine,
  type Quirks,
} from './quirks.ts';
export { compacted, toCompact } from './responses/compaction.ts';
export { withState, type ResponseState } from './responses/state.ts';
export { readAnswer, readAnswerExactly, withoutMark } from './read-answer.ts';
export { optionalCount, optionalString, parseJson } from './fields.ts';
export { fieldsForOutside, forOutside, trialsForOutside } from './outside-request.ts';
export { inputToStore, parseInput } from './responses/parse-items.ts';
export { renderItems } from './responses/render-request.ts';
export { translateRequest, type RequestOptions, withUsage } from './translate-request.ts';
export { outputTokensIn, translateResponse } from './translate-response.ts';
export { observeBody, PassThroughObserver, usageAtEnd } from './stream/pass-through-observer.ts';
export { failedStream, StreamTranslator, translatorBehind } from './stream/translator.ts';
export {
  DIALECTS,
  ROUTES,
  type ClientError,
  type Dialect,
  type HistoryItem,
  type TranslationContext,
  type Usage,
} from './types.ts';
export { BROKE_OFF, bodyToGoOn, isSaidInChat, type GoingOn, type Told } from './go-on.ts';
export { errorInAnswer, readUpstreamError } from './errors/upstream-error.ts';
export { wholeAsChunks } from './chat/whole-as-chunks.ts';
