import { PassThrough } from 'node:stream';
import type { Request, Response } from 'express';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { setPrincipal } from '../../../src/access/principal.ts';
import { StreamRegistry } from '../../../src/http/interface/events/stream-registry.ts';
import { idempotencyKey, objectNames } from '../../../src/http/interface/idempotency.ts';
import { ClaimGate } from '../../../src/http/features/instances/claim-gate.ts';
import { CallLimits } from '../../../src/http/interface/request-limit.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import { FairShares } from '../../../src/lib/shares.ts';
import { OpenStreams } from '../../../src/ports/open-streams.ts';
import { DEFAULT_CEILINGS } from '../../../src/resources/tenants/ceilings.ts';
import { memoryCounter } from '../../../src/runtime/counter.ts';
import { fakeClock, settle } from '../../support/fake-clock.ts';
import { type Client, type LoneApi, startLoneApi } from '../../support/http/lone-api.ts';
import { gpuInstance } from '../../support/inventory-world.ts';
import { accessWhile } from '../../support/access.ts';
import { waitFor } from '../../support/wait-for.ts';

describe('fair shares', () => {
  it('leave room for one more owner, whatever the others take', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 1, max: 50 }))), (wishes) => {
        const shares = new FairShares(1000, 1 / 4);
        for (const [owner, amount] of wishes) shares.take(String(owner), amount);
        expect(shares.take('newcomer', 10)).toBe('taken');
      }),
    );
  });

  it('give one owner its bound or its part of what is free, and everything back', () => {
    const shares = new FairShares(100, 1);
    expect(shares.take('a', 11, 10)).toBe('owner-full');
    expect(shares.take('a', 50)).toBe('taken');
    expect(shares.take('a', 1)).toBe('all-full');
    expect(shares.take('b', 25)).toBe('taken');
    shares.give('a', 50);
    shares.give('b', 25);
    expect(shares.total).toBe(0);
    expect(shares.take('b', 50)).toBe('taken');
  });
});

describe('the gate for claims', () => {
  const signal = new AbortController().signal;

  function crowd() {
    const clock = fakeClock();
    const gate = new ClaimGate(32, clock);
    const inside: string[] = [];
    const leaves: (() => void)[] = [];
    const refused: unknown[] = [];
    async function tryToEnter(tenant: string): Promise<void> {
      const leave = await gate.enter(tenant, { timeoutMs: 15_000, signal });
      if (leave === undefined) return;
      inside.push(tenant);
      leaves.push(leave);
    }
    const enter = (tenant: string): void => {
      void tryToEnter(tenant).catch((error: unknown) => refused.push(error));
    };
    return { clock, inside, leaves, refused, enter };
  }

  it('has room for a tenant whose neighbour never leaves', async () => {
    const { enter, inside, clock } = crowd();
    for (let count = 0; count < 200; count += 1) enter('greedy');
    await settle();
    expect(inside).toHaveLength(22);
    enter('honest');
    await settle();
    expect(inside).toContain('honest');
    await clock.advance(15_000);
    expect(clock.pending).toBe(0);
  });

  it('serves the tenants that wait in turns, however many requests each has in line', async () => {
    const { enter, inside, leaves } = crowd();
    for (let count = 0; count < 100; count += 1) enter('greedy');
    for (const tenant of ['b', 'c']) for (let count = 0; count < 8; count += 1) enter(tenant);
    await settle();
    const before = inside.length;
    for (const leave of leaves.splice(0)) leave();
    await settle();
    const next = inside.slice(before);
    // Whoever waited with few requests is inside now.
    expect(['b', 'c'].map((tenant) => inside.filter((one) => one === tenant).length)).toEqual([8, 8]);
    expect(next.length).toBeGreaterThan(0);
  });

  it('admits everybody in the end, each tenant in order', async () => {
    const { enter, inside, leaves } = crowd();
    const all = Array.from({ length: 120 }, (_, index) => ['a', 'b', 'c'][index % 3] ?? '');
    for (const tenant of all) enter(tenant);
    await settle();
    while (leaves.length > 0) {
      for (const leave of leaves.splice(0)) leave();
      await settle();
    }
    expect(inside).toHaveLength(120);
  });

  it('has a line of bounded length, and a shorter one for each tenant', async () => {
    const { enter, refused } = crowd();
    for (let count = 0; count < 22 + 256 + 1; count += 1) enter('greedy');
    await settle();
    expect(refused).toEqual([expect.objectContaining({ code: 'too_many_at_once', status: 429 })]);
    for (let tenant = 0; tenant < 40; tenant += 1) for (let count = 0; count < 60; count += 1) enter(`t${tenant}`);
    await settle();
    expect(refused.at(-1)).toMatchObject({ code: 'overloaded', status: 503 });
  });
});

it('the line for a place has room for another tenant, whoever fills it', async () => {
  const gate = new ClaimGate(1, fakeClock());
  const signal = new AbortController();
  let refused = 0;
  const enter = (tenant: string): void =>
    void gate.enter(tenant, { timeoutMs: 1000, signal: signal.signal }).catch(() => {
      refused += 1;
    });
  for (let tenant = 0; tenant < 6; tenant += 1) for (let count = 0; count < 300; count += 1) enter(`greedy-${tenant}`);
  await settle();
  const before = refused;
  expect(before).toBeGreaterThan(0);
  enter('honest');
  await settle();
  expect(refused).toBe(before);
  signal.abort();
});

describe('calls per minute', () => {
  const http = { ...DEFAULT_CEILINGS.http, requestsPerMinute: 5 };
  const limits = new CallLimits(memoryCounter(), () => ({ ...DEFAULT_CEILINGS, http }));
  const call = (keyId: string, namespace: string, most?: number) =>
    limits.count({ keyId, namespace, ...(most !== undefined && { limits: { requestsPerMinute: most } }) });

  it('are bounded for all keys of a tenant together', async () => {
    for (const key of ['1', '2', '3', '4', '5']) expect(await call(key, 'a')).toMatchObject({ left: 59_999 });
    const { refused } = await call('6', 'a');
    expect(refused?.message).toContain('This tenant may make 5 calls per minute.');
    expect(refused?.message).toContain('http.requestsPerMinute');
    expect((await call('7', 'b')).refused).toBeUndefined();
  });

  it('of a key over its own limit do not count for its tenant', async () => {
    for (let count = 0; count < 20; count += 1) await call('8', 'c', 1);
    expect((await call('9', 'c')).refused).toBeUndefined();
  });
});

it('streams to ports leave room for other tenants', () => {
  const streams = new OpenStreams(accessWhile().access);
  const open = (namespace: string, pod: string) => streams.open({ keyId: 'k', namespace }, pod);
  const greedy = Array.from({ length: 2048 }, (_, index) => open('a', `pod-${index % 32}`));
  expect(() => open('a', 'another')).toThrow('connections to the instances of this tenant');
  open('b', 'theirs');
  greedy[0]?.close();
  greedy[1]?.close();
  expect(() => open('a', 'another')).not.toThrow();
});

it('an event stream whose client reads nothing is cut a second after its access has ended', async () => {
  const clock = fakeClock();
  let isOver = false;
  const { access, recheck } = accessWhile(() => (isOver ? 'It is over.' : undefined));
  const streams = new StreamRegistry({ access, ceilings: () => DEFAULT_CEILINGS, clock });
  const request = {} as Request;
  setPrincipal(request, { keyId: 'k', namespace: 'a', name: 'k', scopes: ['compute:read'] });
  const response = Object.assign(new PassThrough(), { writeHead: () => undefined });
  streams.open(request, response as unknown as Response);
  isOver = true;
  await recheck();
  expect([response.writableEnded, response.destroyed]).toEqual([true, false]);
  await clock.advance(1000);
  expect(response.destroyed).toBe(true);
});

it('event streams of clients that do not read end when they use up the share of their tenant', () => {
  const { access } = accessWhile();
  const streams = new StreamRegistry({ access, ceilings: () => DEFAULT_CEILINGS, clock: fakeClock() });
  const open = (namespace: string, waiting: number) => {
    const request = {} as Request;
    setPrincipal(request, { keyId: `${namespace}-${Math.random()}`, namespace, name: 'k', scopes: [] });
    const response = Object.assign(new PassThrough(), { writeHead: () => undefined });
    Object.defineProperty(response, 'writableLength', { value: waiting });
    streams.open(request, response as unknown as Response).send({ type: 'instance', id: '1', data: '{}' });
    return response;
  };
  const MIB = 1024 * 1024;
  const greedy = Array.from({ length: 20 }, () => open('a', 10 * MIB));
  // A third of 128 MiB.
  expect(greedy.filter(({ destroyed }) => !destroyed)).toHaveLength(4);
  expect(open('b', 10 * MIB).destroyed).toBe(false);
  greedy[0]?.emit('close');
  expect(open('a', 10 * MIB).destroyed).toBe(false);
  expect(open('c', 17 * MIB).destroyed).toBe(true);
});

describe('event streams', () => {
  let api: LoneApi;
  const ask = (tenant: string): Client =>
    api.send(
      `GET /api/v1/offers HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\nauthorization: Bearer ${tenant}\r\n\r\n`,
    );

  afterEach(() => api.close());

  it('are bounded for a tenant, and the answer says who can lift it', async () => {
    api = await startLoneApi({ tenants: ['a', 'b'], http: { a: { eventStreams: 2 } } });
    const all = [ask('a'), ask('a'), ask('a')];
    const refused = await waitFor('429', () => all.find(({ statuses }) => statuses[0] === 429));
    expect(refused.got).toContain('This tenant may have 2 event streams open');
    expect(refused.got).toContain('The operator can change http.eventStreams in TenantPolicy gold.');
    const other = ask('b');
    await waitFor('the other tenant', () => other.statuses[0] === 200);
    all.find(({ statuses }) => statuses[0] === 200)?.socket.destroy();
    await waitFor('room', async () => {
      const again = ask('a');
      await waitFor('an answer', () => again.statuses.length === 1);
      return again.statuses[0] === 200;
    });
  });

  it('of a client that left before they began take no place', async () => {
    const asked = Promise.withResolvers<void>();
    const found = Promise.withResolvers<GpuInstance>();
    const get = (): Promise<GpuInstance> => {
      asked.resolve();
      return found.promise;
    };
    api = await startLoneApi({ tenants: ['a'], http: { a: { eventStreams: 1 } }, client: { get } as never });
    const head = 'host: x\r\naccept: text/event-stream\r\nauthorization: Bearer a\r\n\r\n';
    const left = api.send(`GET /api/v1/instances/one HTTP/1.1\r\n${head}`);
    await asked.promise;
    left.socket.destroy();
    await waitFor('the end of the request', async () => (await api.metric('berth_http_requests_under_way')) === 0);
    found.resolve(gpuInstance('one'));
    await settle();
    const next = ask('a');
    await waitFor('an answer', () => next.statuses.length === 1);
    expect(next.statuses).toEqual([200]);
  });
});

it('nobody can derive the name that an Idempotency-Key makes, and every replica does', async () => {
  const [one, two] = [1, 1].map((byte) => objectNames(() => Promise.resolve(Buffer.alloc(32, byte))));
  const other = objectNames(() => Promise.resolve(Buffer.alloc(32, 2)));
  const key = idempotencyKey({ 'idempotency-key': 'run-1' }) ?? '';
  expect(await one?.('i', 'a', key)).toBe(await two?.('i', 'a', key));
  expect(await one?.('i', 'a', key)).toMatch(/^i-[a-z2-7]{20}$/);
  expect(await one?.('i', 'a', key)).not.toBe(await other('i', 'a', key));
});
