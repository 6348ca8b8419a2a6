import { afterEach, describe, expect, it, vi } from 'vitest';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { KeyLimiter } from '../../../src/gateway/key-limiter.ts';
import type { Principal } from '../../../src/access/principal.ts';
import { systemClock } from '../../../src/lib/clock.ts';

function setup() {
  return new KeyLimiter(memoryCounter(), memoryCounter(), systemClock());
}

function caller(limits: NonNullable<Principal['limits']>, keyId = 'k'): Principal {
  return { keyId, namespace: 'a', name: 'n', scopes: ['models'], limits };
}

describe('KeyLimiter', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('counts requests per minute, per key', async () => {
    const limiter = setup();
    const key = caller({ requestsPerMinute: 2 });
    expect(await limiter.countRequest(key)).toBeUndefined();
    expect(await limiter.countRequest(key)).toBeUndefined();
    const denied = await limiter.countRequest(key);
    expect(denied?.message).toContain('2 requests per minute');
    expect(denied?.retryAfterMs).toBeGreaterThan(0);
    expect(denied?.retryAfterMs).toBeLessThanOrEqual(60_000);
    expect(await limiter.countRequest(caller({ requestsPerMinute: 2 }, 'other'))).toBeUndefined();
  });

  it('bounds the calls under way and forgets keys without any', () => {
    const limiter = setup();
    const key = caller({ concurrentRequests: 1 });
    expect(limiter.enter(key)).toBeUndefined();
    expect(limiter.enter(key)?.message).toContain('under way');
    limiter.leave(key);
    expect(limiter.enter(key)).toBeUndefined();
  });

  it('sets estimated tokens aside: calls that begin together cannot all pass', async () => {
    const limiter = setup();
    const key = caller({ tokensPerMinute: 100 });
    const first = await limiter.reserveTokens(key, 100);
    expect(first).toHaveProperty('replace');
    expect(await limiter.reserveTokens(key, 10)).toHaveProperty('message');
    // The call used less than was set aside.
    if ('replace' in first) await first.replace(30);
    const second = await limiter.reserveTokens(key, 10);
    expect(second).toHaveProperty('replace');
    if ('replace' in second) await second.replace(200);
    expect(await limiter.reserveTokens(key, 1)).toHaveProperty('message');
  });

  it('gives no credit in a later minute for what a long call did not use', async () => {
    vi.useFakeTimers();
    const limiter = setup();
    const key = caller({ tokensPerMinute: 100 });
    const long = await limiter.reserveTokens(key, 100);
    vi.advanceTimersByTime(60_000);
    if ('replace' in long) await long.replace(30);
    expect(await limiter.reserveTokens(key, 70)).toHaveProperty('replace');
    expect(await limiter.reserveTokens(key, 1)).toHaveProperty('message');
  });

  it('lets keys without limits pass without counting', async () => {
    const limiter = setup();
    const key = caller({});
    for (let count = 0; count < 50; count += 1) {
      expect(await limiter.countRequest(key)).toBeUndefined();
      expect(limiter.enter(key)).toBeUndefined();
    }
  });
});
