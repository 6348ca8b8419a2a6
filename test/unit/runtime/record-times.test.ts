import { expect, it } from 'vitest';
import { RecordTimes } from '../../../src/runtime/record-times.ts';

it('never goes back, and goes on at the pace of the clock', () => {
  const clock = { time: 100, now: () => clock.time };
  const times = new RecordTimes(clock, 150);
  expect(times.now()).toBe(150);
  clock.time = 130;
  expect(times.now()).toBe(180);
  clock.time = 20;
  expect(times.now()).toBe(180);
  clock.time = 30;
  expect(times.now()).toBe(190);
  clock.time = 400;
  expect(times.now()).toBe(560);
});

it('is the clock where that is in front', () => {
  expect(new RecordTimes({ now: () => 200 }, 150).now()).toBe(200);
});
