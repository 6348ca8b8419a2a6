import type { TraceContext } from './trace-context.ts';

/** Names follow the semantic conventions of OpenTelemetry, else `berth.`. Never a secret, nor what a tenant wrote. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  name: string;
  /** By default `internal`. */
  kind?: 'server' | 'client' | 'internal';
  attributes?: Attributes;
  /** When it began, in ms since the epoch; by default now. */
  at?: number;
}

/** A part of a trace that has begun. After its end, nothing changes it. */
export interface Span {
  readonly context: TraceContext;
  /** Begins a span below this one. */
  child(start: SpanStart): Span;
  set(attributes: Attributes): void;
  /** Marks what the span is of as failed. */
  fail(errorType: string): void;
  /** @param at in ms since the epoch; by default now */
  end(at?: number): void;
}

/** Begins traces, and goes on with those of others. Its spans cost little where the trace is not sampled. */
export interface Tracer {
  /** @param parent where the caller is in its trace; undefined: a new trace */
  start(start: SpanStart, parent: TraceContext | undefined): Span;
}
