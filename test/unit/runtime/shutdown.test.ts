import { EventEmitter } from 'node:events';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Shutdown, stopOnSignals } from '../../../src/runtime/shutdown.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';

function setup() {
  const clock = fakeClock();
  return { clock, shutdown: new Shutdown({ clock, log: pino({ level: 'silent' }), graceMs: 30_000 }) };
}

test('what was started last stops first, and each waits for the one before', async () => {
  const { shutdown, clock } = setup();
  const order: string[] = [];
  const workers = Promise.withResolvers<void>();
  shutdown.defer('lease', () => void order.push('lease'));
  shutdown.defer('workers', async () => {
    order.push('workers');
    await workers.promise;
  });
  const done = shutdown.stop('SIGTERM');
  expect(shutdown.stopping.aborted).toBe(true);
  await settle();
  expect(order).toEqual(['workers']);
  workers.resolve();
  expect(await done).toBe(true);
  expect(order).toEqual(['workers', 'lease']);
  expect(shutdown.expired.aborted).toBe(false);
  expect(clock.pending).toBe(0);
});

test('a step that fails or hangs does not keep the others from stopping', async () => {
  const { shutdown, clock } = setup();
  const order: string[] = [];
  shutdown.defer('first', () => void order.push('first'));
  shutdown.defer('hangs', () => new Promise(() => undefined));
  shutdown.defer('fails', () => Promise.reject(new Error('no')));
  const done = shutdown.stop('SIGTERM');
  await clock.advance(29_999);
  expect(order).toEqual([]);
  await clock.advance(1);
  expect(await done).toBe(false);
  expect(order).toEqual(['first']);
  expect(shutdown.expired.aborted).toBe(true);
});

test('the first signal stops, the second cuts it short', async () => {
  const { shutdown } = setup();
  const process = new EventEmitter() as unknown as NodeJS.Process;
  const ignore = stopOnSignals(process, shutdown);
  shutdown.defer('hangs', () => new Promise(() => undefined));
  process.emit('SIGTERM', 'SIGTERM');
  await settle();
  expect(shutdown.expired.aborted).toBe(false);
  process.emit('SIGINT', 'SIGINT');
  expect(shutdown.expired.aborted).toBe(true);
  ignore();
  expect(process.listenerCount('SIGTERM')).toBe(0);
});
