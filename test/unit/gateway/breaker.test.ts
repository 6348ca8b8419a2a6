import { describe, expect, it } from 'vitest';
import { Breaker, FAILURE_WEIGHT } from '../../../src/gateway/balance/breaker.ts';
import { fakeClock } from '../../support/fake-clock.ts';

function breakerAt() {
  const clock = fakeClock();
  clock.stall(1000);
  return { clock, breaker: new Breaker(clock) };
}

describe('circuit breaker', () => {
  it('opens after three broken connections in a row, or ten failed answers', () => {
    const { breaker, clock } = breakerAt();
    breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    expect(breaker.permits).toBe(true);
    breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    expect(breaker.state).toBe('open');
    const patient = breakerAt().breaker;
    for (let count = 0; count < 9; count += 1) patient.fail(FAILURE_WEIGHT.error, clock.monotonic());
    expect(patient.permits).toBe(true);
    patient.fail(FAILURE_WEIGHT.error, clock.monotonic());
    expect(patient.permits).toBe(false);
  });

  it('forgets failures when an answer succeeds between them', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 20; count += 1) {
      breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
      breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
      breaker.succeed();
    }
    expect(breaker.state).toBe('closed');
  });

  it('lets one trial through when half-open, closes on success, stays open longer on failure', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 3; count += 1) breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    expect(breaker.waitMs).toBe(1000);
    clock.stall(1000);
    expect(breaker.state).toBe('half-open');
    expect(breaker.permits).toBe(true);
    breaker.begin();
    expect(breaker.permits).toBe(false);
    breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    expect(breaker.waitMs).toBe(2000);
    clock.stall(2000);
    breaker.begin();
    breaker.succeed();
    expect(breaker.state).toBe('closed');
    expect(breaker.permits).toBe(true);
  });

  it('never waits longer than 30 s', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 3; count += 1) breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    for (let count = 0; count < 40; count += 1) {
      clock.stall(30_000);
      breaker.begin();
      breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    }
    expect(breaker.waitMs).toBe(30_000);
  });

  it('does not stay open for longer when requests fail that were under way when it opened', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 3; count += 1) breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    const begunAt = clock.monotonic();
    clock.stall(500);
    breaker.fail(FAILURE_WEIGHT.connection, begunAt);
    expect(breaker.waitMs).toBe(500);
    clock.stall(500);
    breaker.fail(FAILURE_WEIGHT.connection, begunAt);
    expect(breaker.permits).toBe(true);
  });

  it('allows another trial when the client left before the trial had a result', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 3; count += 1) breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    clock.stall(1000);
    breaker.begin();
    breaker.release();
    expect(breaker.permits).toBe(true);
  });

  it('allows another trial when one has had no result for 30 s', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 3; count += 1) breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    clock.stall(1000);
    breaker.begin();
    clock.stall(29_999);
    expect(breaker.permits).toBe(false);
    clock.stall(1);
    expect(breaker.permits).toBe(true);
  });

  it('opens for longer when a trial breaks after its first bytes', () => {
    const { breaker, clock } = breakerAt();
    for (let count = 0; count < 3; count += 1) breaker.fail(FAILURE_WEIGHT.connection, clock.monotonic());
    clock.stall(1000);
    const begunAt = breaker.begin();
    breaker.release();
    expect(breaker.permits).toBe(true);
    clock.stall(500);
    breaker.fail(FAILURE_WEIGHT.connection, begunAt);
    expect(breaker.waitMs).toBe(2000);
  });

  it('rests as long as Retry-After says, at most a minute, without being broken', () => {
    const { breaker, clock } = breakerAt();
    breaker.rest(2000);
    expect(breaker.permits).toBe(false);
    expect(breaker.state).toBe('closed');
    clock.stall(2000);
    expect(breaker.permits).toBe(true);
    breaker.rest(3_600_000);
    expect(breaker.waitMs).toBe(60_000);
  });
});
