import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { TransportError } from '../../../src/kube/errors.ts';
import { LEASES } from '../../../src/kube/types.ts';
import { ClockCheck } from '../../../src/runtime/clock-check.ts';
import { Election } from '../../../src/runtime/lease.ts';
import { type FakeClock, fakeClock, settle } from '../../support/fake-clock.ts';
import { leaseServer } from '../../support/lease-server.ts';

const REFUSED = { message: 'refused', status: 0, reason: 'ECONNREFUSED' };
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

/** A candidate that leads until it is told to stop or loses the lease. */
function candidate(
  identity: string,
  server: ReturnType<typeof leaseServer>,
  clock: FakeClock,
  serverTime: () => number = () => clock.now(),
) {
  const stop = new AbortController();
  const abort = new AbortController();
  const log: string[] = [];
  const floors: number[] = [];
  let isCut = false;
  const clockCheck = new ClockCheck(clock);
  async function told<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } finally {
      clockCheck.saw({ date: serverTime(), sentAt: clock.monotonic(), receivedAt: clock.monotonic() });
    }
  }
  const client = {
    ...server.client,
    get: (...args: Parameters<typeof server.client.get>) => told(server.client.get(...args)),
    replace: (...args: Parameters<typeof server.client.replace>) =>
      isCut ? Promise.reject(new TransportError(REFUSED)) : told(server.client.replace(...args)),
  } as typeof server.client;
  const drained = Promise.withResolvers<void>();
  const election = new Election({
    client,
    namespace: 'berth-system',
    name: 'berth-controller',
    identity,
    clock,
    random: () => 0,
    log: pino({ level: 'silent' }),
    mayRelease: () => true,
    clockCheck,
    onStatus: (leading) => log.push(leading ? 'on' : 'off'),
  });
  let ended: string | undefined;
  const done = election
    .run({ stop: stop.signal, abort: abort.signal }, async (signals, floor) => {
      floors.push(floor);
      log.push('lead');
      await new Promise<void>((resolve) => {
        signals.stop.addEventListener('abort', () => void drained.promise.then(resolve), { once: true });
        signals.abort.addEventListener('abort', () => resolve(), { once: true });
      });
      log.push('led');
    })
    .then((outcome) => (ended = outcome));
  cleanups.push(async () => {
    server.setDown(false);
    server.setHanging(false);
    drained.resolve();
    stop.abort();
    abort.abort();
    await clock.advance(30_000);
    await done;
  });
  return {
    election,
    log,
    floors,
    stop,
    drained,
    /** From now on none of its writes arrives. */
    cut: () => void (isCut = true),
    get leading() {
      return log.lastIndexOf('lead') > log.lastIndexOf('led');
    },
    get ended() {
      return ended;
    },
  };
}

test('creates the lease with microsecond times, and renews it every second without reading', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  expect(one.leading).toBe(true);
  expect(server.spec).toEqual({
    holderIdentity: 'one',
    leaseDurationSeconds: 8,
    leaseTransitions: 0,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:00.000000Z',
  });
  await clock.advance(2_000);
  expect(server.spec).toMatchObject({
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:02.000000Z',
  });
  expect(server.calls).toEqual(['get', 'create', 'replace', 'replace']);
});

test('each term begins behind the last write of all holders before, whose clocks may be ahead', async () => {
  const server = leaseServer();
  const ahead = fakeClock();
  const behind = fakeClock();
  await ahead.advance(5_000);
  const both = async (ms: number): Promise<void> => {
    await Promise.all([ahead.advance(ms), behind.advance(ms)]);
  };
  const one = candidate('one', server, ahead);
  await settle();
  expect(one.floors).toEqual([0]);
  const two = candidate('two', server, behind);
  await both(2_000);
  one.cut();
  await both(9_000);
  // Renewed at 7 s of its clock; it may write for 6 s more, and the lease lasts 8.
  const floor = Date.parse('2026-01-01T00:00:15Z');
  expect(two.floors).toEqual([floor]);
  two.stop.abort();
  two.drained.resolve();
  const three = candidate('three', server, behind);
  await both(2_000);
  expect(behind.now()).toBeLessThan(floor);
  expect(three.floors).toEqual([floor]);
});

test('a standby takes over 8 s after the last change it saw, and counts the transition', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  const two = candidate('two', server, clock);
  await clock.advance(60_000);
  expect(two.leading).toBe(false);
  one.cut();
  await clock.advance(7_900);
  expect(two.leading).toBe(false);
  await clock.advance(1_100);
  expect(two.leading).toBe(true);
  expect(server.spec).toMatchObject({ holderIdentity: 'two', leaseTransitions: 1 });
});

test('times in the record do not count: clocks of machines differ', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  candidate('one', server, clock);
  await settle();
  const two = candidate('two', server, clock);
  clock.jumpWall(3_600_000);
  await clock.advance(60_000);
  expect(two.leading).toBe(false);
  clock.jumpWall(-7_200_000);
  await clock.advance(60_000);
  expect(two.leading).toBe(false);
});

test.each(['setDown', 'setHanging'] as const)(
  'a leader whose renewals fail (%s) stops 6 s after the last',
  async (how) => {
    const server = leaseServer();
    const clock = fakeClock();
    const one = candidate('one', server, clock);
    await settle();
    server[how](true);
    await clock.advance(5_000);
    expect(one.leading).toBe(true);
    expect(one.election.mayWrite()).toBe(true);
    await clock.advance(1_100);
    expect(one.leading).toBe(false);
    expect(one.election.mayWrite()).toBe(false);
    expect(one.log.at(-1)).toBe('off');
  },
);

test('renewals that fail for a while and recover in time keep the lease', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  server.setDown(true);
  await clock.advance(4_500);
  server.setDown(false);
  await clock.advance(30_000);
  expect(one.leading).toBe(true);
});

test('a conflict by a foreign edit is healed by reading; the lease is kept', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  server.edit((spec) => {
    spec.strategy = 'x';
  });
  await clock.advance(1_000);
  expect(one.leading).toBe(true);
  expect(server.calls.slice(-3)).toEqual(['replace', 'get', 'replace']);
});

test('a leader that finds another holder stops at once', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  server.edit((spec) => {
    spec.holderIdentity = 'usurper';
  });
  await clock.advance(1_000);
  expect(one.leading).toBe(false);
  expect(one.election.mayWrite()).toBe(false);
});

test('a process that was suspended past its lease may not write, before any of its timers ran', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  expect(one.election.mayWrite()).toBe(true);
  clock.stall(7_000);
  expect(one.election.mayWrite()).toBe(false);
  await clock.advance(0);
  expect(one.log).toContain('led');
});

test('stopping renews while work drains, then gives the lease back, and a standby has it within a second', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  const two = candidate('two', server, clock);
  await settle();
  one.stop.abort();
  await clock.advance(20_000);
  expect(server.spec?.holderIdentity).toBe('one');
  expect(two.leading).toBe(false);
  one.drained.resolve();
  await settle();
  expect(one.ended).toBe('stopped');
  expect(server.spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
  await clock.advance(1_000);
  expect(two.leading).toBe(true);
});

test('a candidate that is stopped while it waits never leads', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  candidate('one', server, clock);
  await settle();
  const two = candidate('two', server, clock);
  await settle();
  two.stop.abort();
  await settle();
  expect(two.ended).toBe('stopped');
  expect(two.log).toEqual(['off']);
});

test('of two that start together one leads', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const both = [candidate('one', server, clock), candidate('two', server, clock)];
  await clock.advance(10_000);
  expect(both.filter(({ leading }) => leading)).toHaveLength(1);
});

test.each([
  ['gives the lease back', true, ''],
  ['leaves the lease to its end while a write of it may still arrive', false, 'a'],
])('a leader whose work ends %s', async (_words, mayRelease, holder) => {
  const server = leaseServer();
  const clock = fakeClock();
  const election = new Election({
    client: server.client,
    namespace: 'berth-system',
    name: 'berth-controller',
    identity: 'a',
    clock,
    random: () => 0,
    log: pino({ level: 'silent' }),
    mayRelease: () => mayRelease,
  });
  const { signal } = new AbortController();
  const ended = election.run({ stop: signal, abort: signal }, () => Promise.resolve());
  await clock.advance(1_000);
  expect(await ended).toBe('ended');
  expect(server.spec?.holderIdentity).toBe(holder);
});

test('a leader that lost its lease stands by, and leads again in a new term', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  server.setDown(true);
  await clock.advance(30_000);
  expect(one.log.slice(-2)).toEqual(['led', 'off']);
  server.setDown(false);
  await clock.advance(1_000);
  expect(one.log.slice(-2)).toEqual(['on', 'lead']);
  expect(one.election.mayWrite()).toBe(true);
  expect(one.ended).toBeUndefined();
});

test('the lease of a killed leader is taken before another may think that it still leads, and not sooner', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  const one = candidate('one', server, clock);
  await settle();
  const two = candidate('two', server, clock);
  await clock.advance(10_000);
  // The way of the leader to the API server is cut, that of the standby is not.
  one.cut();
  const overlap: number[] = [];
  for (let ms = 0; ms < 10_000; ms += 100) {
    await clock.advance(100);
    if (one.election.mayWrite() && two.election.mayWrite()) overlap.push(ms);
    if (two.leading) break;
  }
  expect(two.leading).toBe(true);
  expect(overlap).toEqual([]);
});

test('a candidate whose clock is not that of the API server does not lead; one whose clock is set stops at once', async () => {
  const server = leaseServer();
  const clock = fakeClock();
  let serverAhead = 0;
  const one = candidate('one', server, clock, () => clock.now() + serverAhead);
  await settle();
  expect([one.leading, one.election.mayWrite()]).toEqual([true, true]);
  const day = 86_400_000;
  clock.jumpWall(day);
  serverAhead = -day;
  expect(one.election.mayWrite()).toBe(false);
  await clock.advance(1_000);
  expect(one.leading).toBe(false);
  await clock.advance(60_000);
  expect([one.leading, one.election.mayWrite()]).toEqual([false, false]);
  clock.jumpWall(-day);
  serverAhead = 0;
  await clock.advance(2_000);
  expect([one.leading, one.election.mayWrite()]).toEqual([true, true]);
});

test('an annotation that the leader gives its own lease costs no term, and stays through renewals and other leaders', async () => {
  const [server, clock] = [leaseServer(), fakeClock()];
  const first = candidate('first', server, clock);
  await settle();
  expect(first.log).toEqual(['off', 'on', 'lead']);
  const ref = { namespace: 'berth-system', name: 'berth-controller' };
  const { metadata, ...rest } = await server.client.get(LEASES, ref);
  await server.client.replace(LEASES, { ...rest, metadata: { ...metadata, annotations: { noted: 'true' } } });
  await clock.advance(10_000);
  expect(first.log).toEqual(['off', 'on', 'lead']);
  first.drained.resolve();
  first.stop.abort();
  await settle();
  candidate('second', server, clock);
  await clock.advance(10_000);
  expect(server.spec?.holderIdentity).toBe('second');
  expect((await server.client.get(LEASES, ref)).metadata.annotations).toEqual({ noted: 'true' });
});
