/** Where a span is in its trace (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Whether whoever began the trace asked for its spans. */
  sampled: boolean;
  /** What vendors add: the value of `tracestate`. */
  state?: string;
}

export interface TraceHeaders {
  traceparent?: unknown;
  tracestate?: unknown;
}

/** Version, trace, parent and flags. Later versions may have more (W3C Trace Context, section 3.2). */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?$/;
const PARENT_MAX = 256;
/** Vendors must take 512 characters, and may drop a longer list. */
const STATE = /^[\x20-\x7e\t]{1,512}$/;
const SAMPLED = 1;

/** What the headers of a request say; undefined without a valid `traceparent`. An unusable `tracestate` is left out. */
export function readTraceContext({ traceparent, tracestate }: TraceHeaders): TraceContext | undefined {
  if (typeof traceparent !== 'string' || traceparent.length > PARENT_MAX) return undefined;
  const [, version, traceId, spanId, flags = '', more] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || (version === '00' && more !== undefined)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED;
  const state = typeof tracestate === 'string' && STATE.test(tracestate) ? { state: tracestate } : undefined;
  return { traceId, spanId, sampled, ...state };
}

/** The value of `traceparent`, in version 00. */
export function traceparentOf({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}

/** The headers that put a callee's work below this span, each name with its value. */
export function traceHeaders(context: TraceContext): string[] {
  const pair = ['traceparent', traceparentOf(context)];
  return context.state === undefined ? pair : [...pair, 'tracestate', context.state];
}
