import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { NotFoundError, TransportError } from '../../../src/kube/errors.ts';
import { EventRecorder } from '../../../src/kube/events.ts';
import { NODES, type Pod, PODS } from '../../../src/kube/types.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { recordingClient } from '../../support/recording-client.ts';

const POD: Pod = { metadata: { name: 'a', namespace: 'ns', uid: 'u1', resourceVersion: '5' } };
const STARTED = { type: 'Normal', reason: 'Started', message: 'It runs.' } as const;

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

function start(answers: unknown[] = []) {
  const clock = fakeClock();
  const { client, calls } = recordingClient(answers);
  const recorder = new EventRecorder({ client, component: 'berth', clock, log: pino({ level: 'silent' }) });
  const stop = new AbortController();
  const done = recorder.run(stop.signal);
  stops.push(async () => {
    stop.abort();
    await done;
  });
  return { clock, client, calls, recorder, stop, done };
}

test('an Event names its object, its source and the time', async () => {
  const { recorder, calls } = start();
  recorder.record(PODS, POD, STARTED);
  await settle();
  expect(calls).toMatchObject([
    {
      verb: 'create',
      arguments: [
        { kind: 'Event' },
        {
          metadata: { namespace: 'ns', name: expect.stringMatching(/^a\.[0-9a-f]+$/) as string },
          involvedObject: {
            apiVersion: 'v1',
            kind: 'Pod',
            namespace: 'ns',
            name: 'a',
            uid: 'u1',
            resourceVersion: '5',
          },
          ...STARTED,
          count: 1,
          firstTimestamp: '2026-01-01T00:00:00Z',
          source: { component: 'berth' },
        },
        {},
      ],
    },
  ]);
});

test('an Event about something without a namespace lives in default', async () => {
  const { recorder, calls } = start();
  recorder.record(NODES, { metadata: { name: 'node-1' } }, STARTED);
  await settle();
  expect(calls[0]?.arguments[1]).toMatchObject({
    metadata: { namespace: 'default' },
    involvedObject: { name: 'node-1' },
  });
});

test('the same words count up one Event; other words make another', async () => {
  const { recorder, calls, clock } = start();
  recorder.record(PODS, POD, STARTED);
  await clock.advance(5_000);
  recorder.record(PODS, POD, STARTED);
  recorder.record(PODS, POD, { ...STARTED, message: 'Other.' });
  await settle();
  expect(calls.map(({ verb }) => verb)).toEqual(['create', 'patch', 'create']);
  expect(calls[1]?.arguments.slice(2)).toMatchObject([
    { count: 2, lastTimestamp: '2026-01-01T00:00:05Z' },
    { type: 'merge' },
  ]);
});

test('an Event that has expired meanwhile is made anew', async () => {
  const gone = new NotFoundError({ message: 'gone', status: 404, reason: 'NotFound' });
  const { recorder, calls } = start([{}, gone, {}]);
  recorder.record(PODS, POD, STARTED);
  recorder.record(PODS, POD, STARTED);
  await settle();
  expect(calls.map(({ verb }) => verb)).toEqual(['create', 'patch', 'create']);
});

test('a flood about one object is dropped after 25, then one comes every five minutes; others are not touched', async () => {
  const { recorder, calls, clock } = start();
  for (let index = 0; index < 100; index += 1) recorder.record(PODS, POD, { ...STARTED, message: `${index}` });
  recorder.record(PODS, { metadata: { ...POD.metadata, name: 'b', uid: 'u2' } }, STARTED);
  await settle();
  expect(calls).toHaveLength(26);
  await clock.advance(300_000);
  recorder.record(PODS, POD, { ...STARTED, message: 'later' });
  recorder.record(PODS, POD, { ...STARTED, message: 'too soon' });
  await settle();
  expect(calls).toHaveLength(27);
});

test('a long message and a long name are cut', async () => {
  const { recorder, calls } = start();
  const name = 'n'.repeat(253);
  recorder.record(PODS, { metadata: { ...POD.metadata, name } }, { ...STARTED, message: 'x'.repeat(5_000) });
  await settle();
  const event = calls[0]?.arguments[1] as { metadata: { name: string }; message: string };
  expect(event.message).toHaveLength(1_024);
  expect(event.metadata.name.length).toBeLessThanOrEqual(253);
});

test('an Event that cannot be written is given up, and the next ones are sent', async () => {
  const broken = new TransportError({ message: 'reset', status: 0, reason: 'ECONNRESET' });
  const { recorder, calls } = start([broken, {}]);
  recorder.record(PODS, POD, STARTED);
  recorder.record(PODS, POD, { ...STARTED, message: 'Other.' });
  await settle();
  expect(calls).toHaveLength(2);
});

test('what was noted before the end is sent', async () => {
  const { recorder, calls, stop, done } = start();
  stop.abort();
  recorder.record(PODS, POD, STARTED);
  await done;
  expect(calls).toHaveLength(1);
});

test('an API server that does not answer holds the end up for two seconds', async () => {
  const { clock, recorder, stop, done, calls, client } = start();
  client.create = (...args) => {
    calls.push({ verb: 'create', arguments: args });
    const { promise, reject } = Promise.withResolvers<never>();
    args[2]?.signal?.addEventListener('abort', () => reject(new Error('aborted')));
    return promise;
  };
  recorder.record(PODS, POD, STARTED);
  recorder.record(PODS, POD, { ...STARTED, message: 'Another.' });
  await settle();
  stop.abort();
  await clock.advance(2_000);
  await done;
  expect(calls).toHaveLength(1);
  expect(clock.pending).toBe(0);
});
