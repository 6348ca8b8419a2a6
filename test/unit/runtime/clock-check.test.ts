import { expect, test } from 'vitest';
import { ClockCheck } from '../../../src/runtime/clock-check.ts';
import { fakeClock } from '../../support/fake-clock.ts';

/** An answer at once of a server whose clock is ahead by so much. */
function world() {
  const clock = fakeClock();
  const check = new ClockCheck(clock);
  return {
    clock,
    check,
    answer: (aheadMs: number, tookMs = 0): void => {
      const date = Math.floor((clock.now() + aheadMs) / 1000) * 1000;
      check.saw({ date, sentAt: clock.monotonic() - tookMs, receivedAt: clock.monotonic() });
    },
  };
}

test('a clock is right when the server says about the same, and where the server says nothing', () => {
  const { check, answer } = world();
  expect(check.isRight()).toBe(true);
  check.saw({ date: Number.NaN, sentAt: 0, receivedAt: 0 });
  expect(check.isRight()).toBe(true);
  answer(0);
  expect(check.isRight()).toBe(true);
});

test.each([
  [5_000, 0, true],
  [6_000, 0, false],
  [-5_000, 0, true],
  [-7_000, 0, false],
  // The answer may be as old as its way back took.
  [-12_000, 8_000, true],
])('a server that is %i ms ahead, and whose answer took %i ms, agrees: %s', (ahead, took, right) => {
  const { check, answer, clock } = world();
  clock.stall(took);
  answer(ahead, took);
  expect(check.isRight()).toBe(right);
});

test('a clock that is set is wrong at once, until an answer agrees', () => {
  const { check, answer, clock } = world();
  answer(0);
  clock.jumpWall(30 * 86_400_000);
  expect(check.isRight()).toBe(false);
  answer(-30 * 86_400_000);
  expect([check.isRight(), Math.round(check.aheadMs / 86_400_000)]).toEqual([false, 30]);
  clock.jumpWall(-30 * 86_400_000);
  expect(check.isRight()).toBe(true);
});

test("the time is the API server's from its first answer on where this clock is wrong, also when it is set", () => {
  const { check, answer, clock } = world();
  clock.jumpWall(30 * 86_400_000);
  const wrong = clock.now();
  expect(check.now()).toBe(wrong);
  answer(-30 * 86_400_000);
  clock.jumpWall(-60 * 86_400_000);
  clock.stall(2_000);
  expect(Math.abs(check.now() - (wrong - 30 * 86_400_000 + 2_000))).toBeLessThanOrEqual(1_000);
});

test('the time is that of this clock while one server of several agrees', () => {
  const { check, answer, clock } = world();
  answer(0);
  answer(86_400_000);
  expect(check.now()).toBe(clock.now());
  clock.stall(20_000);
  expect(Math.abs(check.now() - clock.now() - 86_400_000)).toBeLessThanOrEqual(1_000);
});

test('one server of several whose clock is wrong does no harm, all of them do', () => {
  const { check, answer, clock } = world();
  for (let second = 0; second < 60; second += 1) {
    answer(second % 3 === 0 ? 0 : 60_000);
    clock.stall(1_000);
    expect(check.isRight()).toBe(true);
  }
  for (let second = 0; second < 20; second += 1) {
    answer(60_000);
    clock.stall(1_000);
  }
  expect(check.isRight()).toBe(false);
});
