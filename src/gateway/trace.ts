import type { IncomingHttpHeaders } from 'node:http';
import { readTraceContext, traceHeaders } from '../runtime/tracing/trace-context.ts';
import type { Attributes, Span } from '../runtime/tracing/tracer.ts';
import type { Result, Served } from './calls/apply-outcome.ts';
import type { Call } from './calls/call.ts';
import type { Endpoint } from './endpoint.ts';
import { PLAIN_ROUTES } from './plain-routes.ts';

/**
 * The headers that put an engine's work into the trace of the client, each name with its value: as the client sent them,
 * and none without a valid `traceparent`. For a gateway that sends no spans: it begins no trace of its own.
 */
export function traceOf({ traceparent, tracestate }: IncomingHttpHeaders): string[] {
  const context = readTraceContext({ traceparent, tracestate });
  if (context === undefined || typeof traceparent !== 'string') return [];
  const pair = ['traceparent', traceparent];
  return context.state === undefined ? pair : [...pair, 'tracestate', context.state];
}

/** One request to one endpoint, as a span below that of the call. */
export interface AttemptTrace {
  /** For the engine. */
  headers: readonly string[];
  end(result: Pick<Result, 'outcome' | 'receiver'>): void;
}

/** Begins the span of an attempt. Where calls are not traced, the engine gets the headers of the client. */
export function traceAttempt(call: Call, { origin, name, probe }: Endpoint): AttemptTrace {
  if (call.span === undefined) return { headers: call.trace, end: () => undefined };
  const operation = call.plain === undefined ? 'chat' : PLAIN_ROUTES[call.plain.route].operation;
  const { model, stream } = call.inspection;
  const { hostname, port, protocol } = new URL(origin);
  const span = call.span.child({
    name: `${operation} ${model}`,
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': probe?.engine ?? 'unknown',
      'gen_ai.request.model': model,
      'gen_ai.request.stream': stream,
      'server.address': hostname,
      'server.port': Number(port === '' ? (protocol === 'https:' ? 443 : 80) : port),
      'berth.endpoint': name,
    },
  });
  return { headers: traceHeaders(span.context), end: (result) => endAttempt(span, result) };
}

function endAttempt(span: Span, { outcome, receiver }: Pick<Result, 'outcome' | 'receiver'>): void {
  const { usage, error } = receiver.facts;
  if (usage !== undefined) {
    span.set({
      'gen_ai.usage.input_tokens': usage.inputTokens,
      'gen_ai.usage.output_tokens': usage.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': usage.cachedTokens,
    });
  }
  if (outcome.kind === 'refused') {
    span.set({ 'http.response.status_code': outcome.status });
    span.fail(String(outcome.status));
  } else if (outcome.kind === 'broken') span.fail(outcome.error.name);
  else if (outcome.kind === 'complete' && error !== undefined) span.fail('upstream_error');
  span.end();
}

/** Says on the span of the request what became of the call. */
export function traceCall(span: Span | undefined, { model, served }: { model?: string; served: Served }): void {
  if (span === undefined) return;
  const attributes: Attributes = {
    'berth.gateway.outcome': served.outcome,
    'berth.gateway.attempts': served.attempts,
    ...(model !== undefined && { 'gen_ai.request.model': model }),
    ...(served.route !== undefined && { 'berth.gateway.route': served.route }),
  };
  span.set(attributes);
}
