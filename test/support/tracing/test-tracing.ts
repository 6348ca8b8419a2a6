import { pino } from 'pino';
import { startTracing } from '../../../src/runtime/tracing/open-telemetry.ts';
import type { Tracer } from '../../../src/runtime/tracing/tracer.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { SentSpan } from './otlp.ts';
import { startSpanSink } from './span-sink.ts';

export interface TestTracing {
  tracer: Tracer;
  /** Everything that was traced, in the order in which it ended. Call it once: nothing is traced any more. */
  end(): Promise<SentSpan[]>;
}

/** Traces everything that no parent leaves out, to a server of its own. */
export async function startTestTracing(): Promise<TestTracing> {
  const sink = await startSpanSink();
  const deps = { log: pino({ level: 'silent' }), clock: systemClock() };
  const { tracer, stop } = startTracing({ url: sink.url, parentBased: true, share: 1, resource: {} }, deps);
  return {
    tracer,
    async end() {
      await stop();
      await sink[Symbol.asyncDispose]();
      return sink.spans;
    },
  };
}
