import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { INDEXES } from '../../../src/caches/indexes.ts';
import { Authenticator } from '../../../src/access/authenticator.ts';
import { LastUsed } from '../../../src/http/interface/auth/last-used.ts';
import { Ring } from '../../../src/http/interface/events/ring.ts';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { Cache } from '../../../src/kube/watch/cache.ts';
import type { KubeClient } from '../../../src/kube/client/client.ts';
import { toKubeError } from '../../../src/kube/errors.ts';
import { type ApiKey, type ApiKeySpec, hashToken, type Scope } from '../../../src/resources/api-key.ts';
import { openSession, sealSession, SessionTooLargeError } from '../../../src/web/session.ts';
import { ALL_TENANTS } from '../../support/access.ts';
import { fakeClock } from '../../support/fake-clock.ts';
import { patched } from '../../support/patched.ts';

function apiKey(name: string, spec: Partial<ApiKeySpec> = {}, created = '2025-01-01T00:00:00Z'): ApiKey {
  const base = { hash: hashToken('secret'), prefix: '', displayName: '', revoked: false };
  return {
    metadata: { name, namespace: `ns-${name}`, uid: `uid-${name}`, creationTimestamp: created },
    spec: { ...base, scopes: ['compute:read'], ...spec },
  };
}

function keys(...objects: ApiKey[]) {
  const cache = new Cache<ApiKey>({ indexers: INDEXES.apiKeys, onListenerError: () => undefined });
  cache.replace(objects, '1');
  return cache;
}

describe('authentication', () => {
  it('finds the tenant of a key, and nobody for one that is over', () => {
    const clock = fakeClock();
    const future = new Date(clock.now() + 1000).toISOString();
    const check = (spec: Partial<ApiKeySpec>): string | undefined =>
      new Authenticator({ apiKeys: keys(apiKey('a', spec)).store, tenants: ALL_TENANTS, clock }).authenticate('secret')
        ?.namespace;
    expect(check({})).toBe('ns-a');
    expect(check({ expiresAt: future })).toBe('ns-a');
    expect(check({ expiresAt: new Date(clock.now()).toISOString() })).toBeUndefined();
    expect(check({ revoked: true })).toBeUndefined();
    expect(check({ hash: hashToken('other') })).toBeUndefined();
  });

  it.each<[Partial<ApiKeySpec>, read: boolean, write: boolean]>([
    [{}, true, false],
    [{ scopes: ['compute:write', 'models'] }, false, true],
    [{ scopes: undefined }, true, true],
    [{ scopes: ['compute:read', 'compute:write'], revoked: true }, false, false],
  ])('lasts as long as the key is good and has the scope: %j', (spec, read, write) => {
    const apiKeys = keys(apiKey('a', spec)).store;
    const authenticator = new Authenticator({ apiKeys, tenants: ALL_TENANTS, clock: fakeClock() });
    // As in the cookie of a port, which lasts for longer than its key may.
    const caller = { keyId: 'uid-a', namespace: 'ns-a', expires: Number.MAX_SAFE_INTEGER };
    const may = (scope: Scope): boolean => authenticator.refusal(caller, { scope }) === undefined;
    expect([may('compute:read'), may('compute:write')]).toEqual([read, write]);
  });

  it('is not drawn to a copy of the hash in another namespace', () => {
    const copy = apiKey('a-thief', {}, '2025-06-01T00:00:00Z');
    const { store } = keys(copy, apiKey('owner'));
    const authenticator = new Authenticator({ apiKeys: store, tenants: ALL_TENANTS, clock: fakeClock() });
    expect(authenticator.authenticate('secret')?.namespace).toBe('ns-owner');
  });

  it('knows the priority of the key, where it has one', () => {
    const principalOf = (spec: Partial<ApiKeySpec>) =>
      new Authenticator({
        apiKeys: keys(apiKey('a', spec)).store,
        tenants: ALL_TENANTS,
        clock: fakeClock(),
      }).authenticate('secret');
    expect(principalOf({ priority: 'low' })?.priority).toBe('low');
    expect(principalOf({})).not.toHaveProperty('priority');
  });
});

describe('the last use of a key', () => {
  it('costs one write in five minutes, however many calls', async () => {
    const clock = fakeClock();
    const { store } = keys(apiKey('a'));
    const written: unknown[] = [];
    const client = { patch: (...call: unknown[]) => Promise.resolve(written.push(call[2])) } as unknown as KubeClient;
    const lastUsed = new LastUsed({ client, apiKeys: store, clock, log: pino({ level: 'silent' }) });
    const principal = new Authenticator({ apiKeys: store, tenants: ALL_TENANTS, clock }).authenticate('secret');
    if (principal === undefined) throw new Error('no principal');
    const abort = new AbortController();
    const running = lastUsed.run(abort.signal);
    for (let second = 0; second < 290; second += 1) {
      lastUsed.touch(principal);
      await clock.advance(1000);
    }
    const lastUsedTime = '2026-01-01T00:00:00Z';
    expect(written.map((body) => patched(apiKey('a'), body).status)).toEqual([{ lastUsedTime }]);
    await clock.advance(20_000);
    lastUsed.touch(principal);
    await clock.advance(10_000);
    expect(written).toHaveLength(2);
    abort.abort();
    await running;
  });

  it('is written again when the key had no status in the cache', async () => {
    const clock = fakeClock();
    const { store } = keys(apiKey('a'));
    let calls = 0;
    const answer = { status: 422, body: 'the server rejected our request due to an error in our request' };
    const patch = () => Promise.reject((calls += 1) && toKubeError('PATCH', answer));
    const client = { patch } as unknown as KubeClient;
    const lastUsed = new LastUsed({ client, apiKeys: store, clock, log: pino({ level: 'silent' }) });
    const principal = new Authenticator({ apiKeys: store, tenants: ALL_TENANTS, clock }).authenticate('secret');
    if (principal === undefined) throw new Error('no principal');
    const abort = new AbortController();
    const running = lastUsed.run(abort.signal);
    lastUsed.touch(principal);
    await clock.advance(20_000);
    expect(calls).toBe(2);
    abort.abort();
    await clock.advance(10_000);
    await running;
  });
});

describe('the gate', () => {
  it('lets some in, keeps order, and forgets who gave up', async () => {
    const clock = fakeClock();
    const gate = new ClaimGate(1, clock);
    const signal = new AbortController().signal;
    const order: string[] = [];
    const leave = await gate.enter('a', { timeoutMs: 1000, signal });
    const gone = new AbortController();
    const second = gate.enter('a', { timeoutMs: 1000, signal: gone.signal });
    const third = gate.enter('a', { timeoutMs: 1000, signal }).then((out) => (order.push('third'), out));
    const fourth = gate.enter('a', { timeoutMs: 100, signal });
    gone.abort();
    expect(await second).toBeUndefined();
    await clock.advance(100);
    expect(await fourth).toBeUndefined();
    expect(order).toEqual([]);
    leave?.();
    const out = await third;
    expect(out).toBeTypeOf('function');
    out?.();
    expect(await gate.enter('a', { timeoutMs: 1000, signal })).toBeTypeOf('function');
    expect(clock.pending).toBe(0);
  });
});

it('the ring keeps the newest and names the last it forgot', () => {
  const ring = new Ring<number>(3);
  for (let n = 1; n <= 100; n += 1) {
    ring.push(n);
    expect(ring.entries().at(-1)).toBe(n);
    expect(ring.entries().length).toBeLessThan(6);
    expect(ring.entries().length).toBeGreaterThanOrEqual(Math.min(n, 3));
    const forgotten = ring.forgotten ?? 0;
    expect(ring.entries()[0]).toBe(forgotten + 1);
  }
});

describe('sessions', () => {
  const key = Buffer.alloc(32, 1);
  const session = { token: 'token-of-ann', expires: 1000 };

  it('open with the same key until they end', () => {
    const sealed = sealSession(session, key);
    expect(openSession(sealed, { key, now: 999 })).toEqual(session);
    expect(openSession(sealed, { key, now: 1000 })).toBeUndefined();
    expect(openSession(sealed, { key: Buffer.alloc(32, 2), now: 0 })).toBeUndefined();
    expect(sealed).not.toContain(Buffer.from('token-of-ann').toString('base64url'));
  });

  it('do not open when a single bit is changed', () => {
    const bytes = Buffer.from(sealSession(session, key), 'base64url');
    for (let index = 0; index < bytes.length; index += 1) {
      const forged = Buffer.from(bytes);
      forged.writeUInt8(forged.readUInt8(index) ^ 1, index);
      expect(openSession(forged.toString('base64url'), { key, now: 0 })).toBeUndefined();
    }
    for (const text of ['', 'x', '%%%']) expect(openSession(text, { key, now: 0 })).toBeUndefined();
  });

  it('say when they do not fit into a cookie', () => {
    expect(() => sealSession({ token: 'x'.repeat(4000), expires: 1 }, key)).toThrow(SessionTooLargeError);
  });
});
