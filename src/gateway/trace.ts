import type { IncomingHttpHeaders } from 'node:http';

/** Version, trace, parent and flags. Later versions may have more (W3C Trace Context, section 3.2). */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]*)?$/;
const PARENT_MAX = 256;
/** Vendors must take 512 characters, and may drop a longer list. */
const STATE = /^[\x20-\x7e\t]{1,512}$/;

/**
 * The headers that put an engine's work into the trace of the client, each name with its value: as the client sent them,
 * and none without a valid `traceparent`. The gateway begins no trace of its own.
 */
export function traceOf(headers: IncomingHttpHeaders): string[] {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string' || traceparent.length > PARENT_MAX) return [];
  const [, version, more] = TRACEPARENT.exec(traceparent) ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return [];
  const pair = ['traceparent', traceparent];
  return typeof tracestate === 'string' && STATE.test(tracestate) ? [...pair, 'tracestate', tracestate] : pair;
}
