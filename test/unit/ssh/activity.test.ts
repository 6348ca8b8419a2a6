import pino from 'pino';
import { expect, it } from 'vitest';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { Activity } from '../../../src/access/activity.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { recordingClient } from '../../support/recording-client.ts';

const REF = { namespace: 't', name: 'i' };

function world(idleTimeout: string | undefined) {
  const instances = new FakeStore<GpuInstance>();
  instances.put({ metadata: { ...REF, uid: 'u' }, spec: { idleTimeout } } as GpuInstance);
  const clock = fakeClock();
  const { client, calls } = recordingClient();
  const activity = new Activity({ client, instances, clock, log: pino({ level: 'silent' }) });
  const stop = new AbortController();
  const running = activity.run(stop.signal);
  const written = (): unknown[] => calls.map((call) => call.arguments[2]);
  return { activity, clock, written, stop: () => (stop.abort(), running) };
}

function at(time: string): unknown {
  return { metadata: { uid: 'u', annotations: { 'berth.dev/last-activity': `2026-01-01T${time}.000Z` } } };
}

it('writes when somebody comes, while he is there, once after he has gone, and then no more', async () => {
  const { activity, clock, written, stop } = world('30m');
  const one = activity.began(REF);
  const two = activity.began(REF);
  expect(written()).toEqual([at('00:00:00')]);
  await clock.advance(30_000);
  one();
  await clock.advance(30_000);
  expect(written()).toEqual([at('00:00:00'), at('00:00:30'), at('00:01:00')]);
  two();
  await clock.advance(90_000);
  expect(written()).toEqual([at('00:00:00'), at('00:00:30'), at('00:01:00'), at('00:01:30')]);
  await stop();
  expect(written()).toHaveLength(4);
});

it('writes at most once in half a minute for many who come and go', async () => {
  const { activity, clock, written, stop } = world('30m');
  for (let count = 0; count < 100; count += 1) activity.began(REF)();
  expect(written()).toHaveLength(1);
  await clock.advance(30_000);
  expect(written()).toEqual([at('00:00:00'), at('00:00:30')]);
  activity.began(REF)();
  await stop();
  expect(written()).toHaveLength(3);
});

it('writes nothing for instances that do not end when idle', async () => {
  const { activity, clock, written, stop } = world(undefined);
  activity.began(REF);
  await clock.advance(120_000);
  await stop();
  expect(written()).toEqual([]);
});
