import { pino } from 'pino';
import { expect, it } from 'vitest';
import { readConfig } from '../../../src/config/config.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { RoleContext } from '../../../src/roles/role.ts';
import type { Process } from '../../../src/roles/process.ts';
import { Shutdown } from '../../../src/runtime/shutdown.ts';
import { startSpanSink } from '../../support/tracing/span-sink.ts';

function contextOf(env: Record<string, string>) {
  const clock = systemClock();
  const log = pino({ level: 'silent' });
  const shutdown = new Shutdown({ clock, log, graceMs: 30_000 });
  const process: Partial<Process> = { role: 'all', config: readConfig(env), log, clock };
  return { context: new RoleContext(process as Process, {} as never, shutdown), shutdown };
}

it('gives a role no tracer without a collector', async () => {
  expect(await contextOf({}).context.tracer()).toBeUndefined();
});

it.each([
  [{}, 'berth-all'],
  [{ OTEL_SERVICE_NAME: 'gpu-cloud' }, 'gpu-cloud'],
])('gives all roles of a process one tracer, and sends what is left when they have stopped: %j', async (env, name) => {
  await using sink = await startSpanSink();
  const { context, shutdown } = contextOf({ OTEL_EXPORTER_OTLP_ENDPOINT: sink.endpoint, ...env });
  const [tracer, same] = [await context.tracer(), await context.tracer()];
  expect(tracer).toBeDefined();
  expect(same).toBe(tracer);
  // A role that asked for the tracer ends before it.
  shutdown.defer('role', () => tracer?.start({ name: 'last' }, undefined).end());
  expect(await shutdown.stop('test')).toBe(true);
  expect(sink.spans.map((span) => span.name)).toEqual(['last']);
  expect(sink.spans[0]?.resource).toMatchObject({ 'service.name': name, 'k8s.namespace.name': 'berth-system' });
});
