import {
  createTraceState,
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer as OtelTracer,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Logger } from 'pino';
import type { Clock } from '../../lib/clock.ts';
import { ExportProblems } from './export-problems.ts';
import type { TraceContext } from './trace-context.ts';
import type { Attributes, Span, SpanStart, Tracer } from './tracer.ts';

export interface TracingOptions {
  /** Where the collector takes OTLP over HTTP, with the path of traces. */
  url: URL;
  /** Whether whoever began a trace decides about its spans; else, and for new traces, the share decides. */
  parentBased: boolean;
  /** The share of traces whose spans are sent, 0 to 1. */
  share: number;
  /** What the spans are of, as a resource of OpenTelemetry. */
  resource: Attributes;
}

export interface RunningTracing {
  tracer: Tracer;
  /** Sends what is left, for three seconds at most. Never rejects. */
  stop: () => Promise<void>;
}

/** Milliseconds for one export with its repetitions. Pods have some seconds left when they have drained. */
const EXPORT_MS = 3_000;
const MAX_VALUE = 512;

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/**
 * Sends spans to a collector, in batches and in the background: no request waits for it, and what does not arrive is
 * dropped. The exporter reads the headers, the certificates and the compression for itself, from `OTEL_EXPORTER_OTLP_*`.
 */
export function startTracing(options: TracingOptions, { log, clock }: { log: Logger; clock: Clock }): RunningTracing {
  const problems = new ExportProblems(log, clock);
  const quiet = (): void => undefined;
  const warn = (message: string): void => problems.note(new Error(message), 0);
  // The SDK warns when its queue is full, and when a collector takes a part of a batch.
  diag.setLogger({ error: quiet, warn, info: quiet, debug: quiet, verbose: quiet }, DiagLogLevel.WARN);
  const exporter = new OTLPTraceExporter({ url: options.url.href, timeoutMillis: EXPORT_MS });
  const provider = new TracerProvider({
    resource: resourceFromAttributes(options.resource),
    sampler: samplerOf(options),
    spanLimits: { attributeValueLengthLimit: MAX_VALUE },
    spanProcessors: [
      new BatchSpanProcessor({ exporter: reporting(exporter, problems), exportTimeoutMillis: EXPORT_MS }),
    ],
  });
  const tracer = provider.getTracer('berth');
  return {
    tracer: { start: (start, parent) => begin(tracer, start, parent && { ...parent, isRemote: true }) },
    stop: async () => {
      await provider.shutdown().catch(quiet);
      diag.disable();
    },
  };
}

function samplerOf({ parentBased, share }: TracingOptions): Sampler {
  const root =
    share >= 1 ? new AlwaysOnSampler() : share <= 0 ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(share);
  return parentBased ? new ParentBasedSampler({ root }) : root;
}

/** The exporter, whose failures the log has. */
function reporting(exporter: OTLPTraceExporter, problems: ExportProblems): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        if (result.error !== undefined) problems.note(result.error, spans.length);
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}

type Parent = TraceContext & { isRemote: boolean };

function begin(tracer: OtelTracer, start: SpanStart, parent: Parent | undefined): Span {
  const { name, kind = 'internal', attributes, at } = start;
  const context =
    parent === undefined
      ? ROOT_CONTEXT
      : trace.setSpanContext(ROOT_CONTEXT, {
          traceId: parent.traceId,
          spanId: parent.spanId,
          traceFlags: parent.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
          isRemote: parent.isRemote,
          ...(parent.state !== undefined && { traceState: createTraceState(parent.state) }),
        });
  const options = {
    kind: KINDS[kind],
    ...(attributes && { attributes }),
    ...(at !== undefined && { startTime: new Date(at) }),
  };
  return spanOf(tracer, tracer.startSpan(name, options, context));
}

function spanOf(tracer: OtelTracer, span: OtelSpan): Span {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const state = traceState?.serialize();
  const sampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  const own = { traceId, spanId, sampled, ...(state !== undefined && state !== '' && { state }) };
  return {
    context: own,
    child: (start) => begin(tracer, start, { ...own, isRemote: false }),
    // Of a span that has ended the SDK would warn.
    set(attributes) {
      if (span.isRecording()) span.setAttributes(attributes);
    },
    fail(errorType) {
      if (!span.isRecording()) return;
      span.setAttribute('error.type', errorType);
      span.setStatus({ code: SpanStatusCode.ERROR });
    },
    // A small number would be a time since the start of the process.
    end: (at) => span.end(at === undefined ? undefined : new Date(at)),
  };
}
