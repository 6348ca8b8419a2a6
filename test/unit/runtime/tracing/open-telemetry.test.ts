import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { startTracing, type TracingOptions } from '../../../../src/runtime/tracing/open-telemetry.ts';
import type { TraceContext } from '../../../../src/runtime/tracing/trace-context.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type SpanSink, startSpanSink } from '../../../support/tracing/span-sink.ts';

const PARENT: TraceContext = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', sampled: true };

let sink: SpanSink;
let lines: string[];

beforeEach(async () => {
  sink = await startSpanSink();
  lines = [];
});
afterEach(() => sink[Symbol.asyncDispose]());

function start(changed: Partial<TracingOptions> = {}) {
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const options = { url: sink.url, parentBased: true, share: 1, resource: { 'service.name': 'berth-test' } };
  return startTracing({ ...options, ...changed }, { log, clock: fakeClock() });
}

it('sends spans with their parents, times and attributes', async () => {
  const { tracer, stop } = start();
  const outer = tracer.start({ name: 'outer', kind: 'server', at: 1_000 }, { ...PARENT, state: 'rojo=1' });
  const inner = outer.child({ name: 'inner', kind: 'client', at: 1_250, attributes: { text: 'x', number: 7 } });
  inner.set({ flag: true });
  inner.fail('Broken');
  inner.end(2_500);
  outer.end(3_000);
  tracer.start({ name: 'alone' }, undefined).end();
  await stop();
  const [first, second, third] = sink.spans;
  expect(first).toMatchObject({
    traceId: PARENT.traceId,
    parentId: second?.spanId,
    name: 'inner',
    kind: 'client',
    from: 1_250,
    to: 2_500,
    attributes: { text: 'x', number: 7, flag: true, 'error.type': 'Broken' },
    failed: true,
    state: 'rojo=1',
    resource: { 'service.name': 'berth-test' },
  });
  expect(second).toMatchObject({ parentId: PARENT.spanId, kind: 'server', from: 1_000, to: 3_000, failed: false });
  expect(outer.context).toEqual({ ...PARENT, spanId: second?.spanId, state: 'rojo=1' });
  expect(third).toMatchObject({ parentId: '', kind: 'internal' });
  expect(third?.traceId).not.toBe(PARENT.traceId);
  expect(lines).toEqual([]);
});

it.each([
  ['the parent', { parentBased: true, share: 0 }, true, true],
  ['the parent', { parentBased: true, share: 1 }, false, false],
  ['the share', { parentBased: false, share: 0 }, true, false],
  ['the share', { parentBased: false, share: 1 }, false, true],
])('%s decides whether a span is sent: %j, parent sampled %s', async (_, options, sampled, expected) => {
  const { tracer, stop } = start(options);
  const span = tracer.start({ name: 'one' }, { ...PARENT, sampled });
  expect(span.context).toMatchObject({ traceId: PARENT.traceId, sampled: expected });
  expect(span.context.spanId).not.toBe(PARENT.spanId);
  span.end();
  await stop();
  expect(sink.spans.map(({ name }) => name)).toEqual(expected ? ['one'] : []);
});

it('sends about the share of new traces', async () => {
  const { tracer, stop } = start({ share: 0.25 });
  for (let index = 0; index < 2_000; index += 1) tracer.start({ name: 'one' }, undefined).end();
  await stop();
  // Four standard deviations of the binomial distribution.
  expect(Math.abs(sink.spans.length - 500)).toBeLessThan(80);
});

it('tells the log once a minute that a collector refuses, and how many spans it lost', async () => {
  sink.status = 400;
  const { tracer, stop } = start();
  // More than one batch: each is refused by itself.
  for (let index = 0; index < 1_100; index += 1) tracer.start({ name: 'one' }, undefined).end();
  await stop();
  expect(sink.requests.length).toBeGreaterThan(1);
  expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
    expect.objectContaining({ level: 40, reason: 'Bad Request', spans: 512, msg: 'Traces were not sent' }),
  ]);
});

it('keeps a bounded number of spans for a collector that is away', async () => {
  await sink[Symbol.asyncDispose]();
  const { tracer, stop } = start();
  for (let index = 0; index < 5_000; index += 1) tracer.start({ name: 'one' }, undefined).end();
  await stop();
  expect(lines.length).toBe(1);
});
