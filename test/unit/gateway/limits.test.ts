import { afterEach, describe, expect, it, vi } from 'vitest';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { Limiter } from '../../../src/gateway/limits/limiter.ts';
import type { Principal } from '../../../src/access/principal.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { CeilingsOf } from '../../../src/access/ceilings.ts';
import { type Ceilings, DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';

function setup(models: Partial<Ceilings['models']> = {}) {
  const ceilings: CeilingsOf = () => ({ ...DEFAULT_CEILINGS, models: { ...DEFAULT_CEILINGS.models, ...models } });
  return new Limiter({ requests: memoryCounter(), tokens: memoryCounter(), ceilings, clock: systemClock() });
}

function caller(limits: NonNullable<Principal['limits']>, keyId = 'k'): Principal {
  return { keyId, namespace: 'a', name: 'n', scopes: ['models'], limits };
}

describe('Limiter', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('counts requests per minute, by key', async () => {
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

  it('counts the keys of a tenant together, names the ceiling, and says who can raise it', async () => {
    const limiter = setup({ callsPerMinute: 2, tokensPerMinute: 100, callsAtOnce: 1 });
    const [one, other] = [caller({}, 'k1'), caller({}, 'k2')];
    const stranger = { ...caller({}, 'k3'), namespace: 'b' };
    expect(await limiter.countRequest(one)).toBeUndefined();
    expect(await limiter.countRequest(other)).toBeUndefined();
    const denied = await limiter.countRequest(one);
    expect(denied).toMatchObject({ limit: 'models.callsPerMinute' });
    expect(denied?.message).toMatch(/2 requests per minute.*operator.*models\.callsPerMinute.*TenantPolicy/);
    expect(await limiter.countRequest(stranger)).toBeUndefined();

    expect(limiter.enter(one)).toBeUndefined();
    expect(limiter.enter(other)).toMatchObject({ limit: 'models.callsAtOnce' });
    expect(limiter.enter(stranger)).toBeUndefined();
    limiter.leave(one);
    expect(limiter.enter(other)).toBeUndefined();

    expect(await limiter.reserveTokens(one, 100)).toHaveProperty('replace');
    expect(await limiter.reserveTokens(other, 1)).toMatchObject({ limit: 'models.tokensPerMinute' });
    expect(await limiter.reserveTokens(stranger, 1)).toHaveProperty('replace');
  });

  it('takes nothing of one limit when the other refuses', async () => {
    const limiter = setup({ callsPerMinute: 2, tokensPerMinute: 100, callsAtOnce: 2 });
    const [tight, free] = [
      caller({ requestsPerMinute: 1, concurrentRequests: 1, tokensPerMinute: 1000 }, 'k1'),
      caller({}, 'k2'),
    ];
    for (let count = 0; count < 9; count += 1) await limiter.countRequest(tight);
    expect(await limiter.countRequest(free)).toBeUndefined();
    for (let count = 0; count < 9; count += 1) limiter.enter(tight);
    expect(limiter.enter(free)).toBeUndefined();
    expect(await limiter.reserveTokens(free, 100)).toHaveProperty('replace');
    // The tenant's limit refuses; the key gets its tokens back, and so has all of its own once the minute is over.
    for (let count = 0; count < 20; count += 1)
      expect(await limiter.reserveTokens(tight, 90)).toMatchObject({ limit: 'models.tokensPerMinute' });
  });
});
