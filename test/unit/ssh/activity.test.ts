import pino from 'pino';
import { expect, it } from 'vitest';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { Activity } from '../../../src/access/activity.ts';
import { KubeError, TransportError } from '../../../src/kube/errors.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { FakeStore } from '../../support/fake-store.ts';
import { type RecordedCall, recordingClient } from '../../support/recording-client.ts';

const REF = { namespace: 't', name: 'i' };
const LEASE = 'berth-activity-ssh';

const nameOf = ({ arguments: [, ref] }: RecordedCall): string => (ref as { name: string }).name;

function world(idleTimeout: string | undefined, answers: unknown[] = []) {
  const instances = new FakeStore<GpuInstance>();
  const put = (limit: string | undefined): void =>
    instances.put({ metadata: { ...REF, uid: 'u' }, spec: { idleTimeout: limit } } as GpuInstance);
  put(idleTimeout);
  const clock = fakeClock();
  const { client, calls } = recordingClient(answers);
  const log = pino({ level: 'silent' });
  const activity = new Activity({ client, instances, clock, log, namespace: 'berth', role: 'ssh', id: 'one' });
  const stop = new AbortController();
  const running = activity.run(stop.signal);
  const written = (): unknown[] => calls.filter((call) => nameOf(call) === 'i').map((call) => call.arguments[2]);
  /** What the replica reported, oldest first. */
  const reports = (): unknown[] =>
    calls
      .filter((call) => nameOf(call) === LEASE)
      .map((call) => {
        const { metadata } = call.arguments[2] as { metadata: { annotations: Record<string, string | null> } };
        const text = metadata.annotations['activity.berth.dev/one'];
        return text ? (JSON.parse(text) as { until: string }).until.slice(11, 19) : text;
      });
  return { activity, clock, put, written, reports, stop: () => (stop.abort(), running) };
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

it('writes at once of an instance with an open session that gets an idleTimeout, and of none without', async () => {
  const { activity, put, written, stop } = world(undefined);
  const left = activity.began(REF);
  put('1m');
  expect(written()).toEqual([at('00:00:00')]);
  put('1m');
  expect(written()).toHaveLength(1);
  put('2m');
  expect(written()).toHaveLength(2);
  left();
  put('3m');
  expect(written()).toHaveLength(2);
  await stop();
});

it('reports after each round until when all is written, and takes its report away when it leaves', async () => {
  const { activity, clock, reports, stop } = world('30m');
  await clock.advance(0);
  expect(reports()).toEqual(['00:00:00']);
  activity.began(REF);
  await clock.advance(30_000);
  expect(reports()).toEqual(['00:00:00', '00:00:30']);
  await stop();
  expect(reports()).toEqual(['00:00:00', '00:00:30', '00:00:30', null]);
});

it('reports nothing while a use could not be written, and writes it again', async () => {
  const cut = new TransportError({ message: 'cut', status: 0, reason: 'cut' });
  const { activity, clock, reports, written, stop } = world('30m', [{}, cut, cut]);
  await clock.advance(0);
  activity.began(REF)();
  await clock.advance(30_000);
  expect([written().length, reports()]).toEqual([2, ['00:00:00']]);
  await clock.advance(30_000);
  expect([written().length, reports()]).toEqual([3, ['00:00:00', '00:01:00']]);
  await stop();
});

it('holds no report back for an instance that takes no annotation', async () => {
  const full = new KubeError({ message: 'too long', status: 422, reason: 'Invalid' });
  const { activity, clock, reports, stop } = world('30m', [{}, full, full]);
  await clock.advance(0);
  activity.began(REF);
  await clock.advance(30_000);
  expect(reports()).toEqual(['00:00:00', '00:00:30']);
  await stop();
});
