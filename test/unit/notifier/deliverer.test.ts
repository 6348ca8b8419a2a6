import fc from 'fast-check';
import { Webhook as Verifier } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { rankEntries, type RankedEntry } from '../../../src/notifier/events.ts';
import { signingSecret } from '../../../src/resources/webhook-signing.ts';
import { MAX_SENT } from '../../../src/resources/webhook.ts';
import {
  budget,
  entry,
  history,
  HOOK_KEY,
  notifierWorld,
  type Sent,
  TENANT,
  webhook,
} from '../../support/notifier-world.ts';

const DAY_MS = 24 * 60 * 60_000;
const names = (sent: readonly Sent[]): string[] =>
  sent.map(({ data }) => `${String(data['instance_id'])} ${String(data['reason'])}`);

function startedWorld() {
  const world = notifierWorld();
  world.put(world.webhooks, webhook());
  world.put(world.histories, history('a', [entry(1, 'Accepted'), entry(2, 'Claimed'), entry(5, 'Ready')]));
  world.put(world.histories, history('b', [entry(3, 'Accepted'), entry(4, 'Claimed')]));
  return world;
}
const ALL = ['a Accepted', 'a Claimed', 'b Accepted', 'b Claimed', 'a Ready'];

describe('deliveries', () => {
  it('have every event once, in the order in which they were recorded', async () => {
    const world = startedWorld();
    const term = world.newTerm();
    await term();
    await term();
    expect(names(world.sent)).toEqual(ALL);
    world.put(world.histories, history('b', [entry(3, 'Accepted'), entry(4, 'Claimed'), entry(9, 'Deleted')]));
    await term();
    await world.newTerm()();
    expect(names(world.sent)).toEqual([...ALL, 'b Deleted']);
    expect(new Set(world.sent.map(({ id }) => id)).size).toBe(6);
  });

  it('say what the HTTP interface says of an event, and of which instance', async () => {
    const world = startedWorld();
    await world.newTerm()();
    const { type, timestamp, data } = world.sent[4] ?? {};
    expect([type, timestamp]).toEqual(['instance.ready', '2026-01-01T00:00:05Z']);
    expect(data).toEqual({
      instance_id: 'a',
      instance_name: 'the a',
      at: '2026-01-01T00:00:05Z',
      last_at: null,
      type: 'normal',
      reason: 'Ready',
      message: 'It is Ready.',
      count: 1,
      start: 1,
    });
  });

  it('are signed so that the official library takes them, with the present secret alone', async () => {
    const world = startedWorld();
    const key = Buffer.alloc(32, 7);
    world.clock.jumpWall(Date.now() - world.clock.now());
    world.answer = ({ headers, body }) => {
      const old = new Verifier(signingSecret(key, webhook()));
      const present = new Verifier(signingSecret(key, webhook({ secretVersion: 2 })));
      expect(() => old.verify(body, { ...headers })).toThrow('signature');
      expect(present.verify(body, { ...headers })).toMatchObject({ type: 'instance.accepted' });
      expect(() => present.verify(`${body} `, { ...headers })).toThrow('signature');
      return { kind: 'refused', status: 500, retryAfterMs: undefined };
    };
    world.put(world.webhooks, webhook({ secretVersion: 2 }));
    world.put(
      world.histories,
      history('a', [entry((Date.now() - Date.parse('2026-01-01T00:00:00Z')) / 1000, 'Accepted')]),
    );
    world.put(world.histories, history('b', []));
    await world.newTerm()();
    expect(world.sent).toHaveLength(1);
  });

  it('are in the order of their times, with milliseconds or without', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    const { recordedAt } = entry(9, '');
    const times = { Deleting: '05Z', Stopped: '05.200Z', StartEnded: '05.900Z', Deleted: '06Z' };
    const entries = Object.entries(times).map(([reason, time]) =>
      entry(0, reason, { at: `2026-01-01T00:00:${time}`, recordedAt }),
    );
    world.put(world.histories, history('a', entries));
    await world.newTerm()();
    expect(world.sent.map(({ data }) => data['reason'])).toEqual(Object.keys(times));
  });

  it('are of the types that the webhook asks for', async () => {
    const world = startedWorld();
    world.put(world.webhooks, webhook({ events: ['instance.ready', 'budget.spent'] }));
    world.put(world.tenantLimits, budget(120));
    await world.newTerm()();
    expect(world.sent.map(({ type }) => type)).toEqual(['budget.spent', 'instance.ready']);
  });

  it('have what is recorded again as an event of its own', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    const term = world.newTerm();
    const waiting = entry(1, 'WaitingForCapacity');
    world.put(world.histories, history('a', [waiting]));
    await term();
    const again = entry(60, 'WaitingForCapacity', { at: waiting.at, lastAt: entry(60, '').at, count: 2 });
    world.put(world.histories, history('a', [again]));
    await term();
    await term();
    expect(world.sent.map(({ data }) => data['count'])).toEqual([1, 2]);
  });

  it('have what another writer recorded late, and nothing from before the webhook was made', async () => {
    const world = startedWorld();
    world.put(world.histories, history('old', [entry(-1, 'Accepted'), entry(-5, 'Ready')]));
    const term = world.newTerm();
    await term();
    world.put(world.histories, history('late', [entry(1, 'Accepted')]));
    await term();
    expect(names(world.sent)).toEqual([...ALL, 'late Accepted']);
  });

  it('go on where the oldest entries of a history gave way', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    const entries = Array.from({ length: 3 * MAX_SENT }, (_, at) => entry(1, 'Idle', { start: at }));
    const term = world.newTerm();
    for (let from = 0; from + 100 <= entries.length; from += 50) {
      world.put(world.histories, history('a', entries.slice(from, from + 100), from));
      while (await term());
    }
    expect(world.sent.map(({ data }) => data['start'])).toEqual(
      Array.from({ length: world.sent.length }, (_, start) => start),
    );
    expect(world.sent).toHaveLength(350);
    expect(world.status().cursor?.sent).toHaveLength(MAX_SENT);
  });

  it('are over when more events are delivered than a cursor has ids for', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    for (const name of ['a', 'b', 'c'])
      world.put(
        world.histories,
        history(
          name,
          Array.from({ length: 100 }, (_, at) => entry(at + 1, 'Idle', { start: at })),
        ),
      );
    for (let turns = 0; turns < 8; turns += 1) await world.newTerm()();
    expect([world.sent.length, new Set(world.sent.map(({ id }) => id)).size]).toEqual([300, 300]);
  });
});

it('the position and the id of an event stay when older entries of its history give way', () => {
  const entries = Array.from({ length: 10 }, (_, start) => entry(1, 'Idle', { start }));
  const all = rankEntries(history('a', entries));
  const rest = rankEntries(history('a', entries.slice(4), 4));
  const placeOf = ({ id, position }: RankedEntry): string[] => [id, position];
  expect(rest.map(placeOf)).toEqual(all.slice(4).map(placeOf));
});

describe('a budget', () => {
  it('tells once each month when it is near its end and when it is spent', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    const said: string[] = [];
    for (const [percent, month] of [
      [49],
      [51],
      [80],
      [95],
      [100],
      [60],
      [130],
      [30, '2026-02'],
      [101, '2026-02'],
      [80, '2026-01'],
    ] as const) {
      world.put(world.tenantLimits, budget(percent, month));
      await world.newTerm()();
      said.push(
        world.sent
          .splice(0)
          .map(({ type }) => type)
          .join(' '),
      );
    }
    expect(said).toEqual(['', 'budget.near', 'budget.near', '', 'budget.spent', '', '', '', 'budget.spent', '']);
  });
});

describe('a crash', () => {
  it('at any point repeats events, but loses none and changes no order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 8 }),
        fc.boolean(),
        async (steps, beforeWrite) => {
          const world = startedWorld();
          // Each term ends after so many calls, of the target and of the API server.
          for (const most of [...steps, Infinity]) {
            let calls = 0;
            const step = (): void => {
              if ((calls += 1) > most) throw new Error('killed');
            };
            world.onWrite = step;
            world.answer = () => {
              if (beforeWrite) step();
              world.clock.stall(400);
              return { kind: 'delivered' };
            };
            await world
              .newTerm()()
              .catch(() => undefined);
          }
          const first = new Map<string, string>();
          const order = names(world.sent);
          for (const name of order) first.set(name, name);
          expect([...first.values()]).toEqual(ALL);
          // A repeat goes on from an earlier event: every event is followed by the next one, or by a repeat.
          const ids = new Map(world.sent.map(({ id, data }) => [id, String(data['reason'])]));
          expect(ids.size).toBe(ALL.length);
          for (const [index, name] of order.slice(1).entries()) {
            expect(ALL.indexOf(name)).toBeLessThanOrEqual(ALL.indexOf(order[index] ?? '') + 1);
          }
        },
      ),
    );
  });

  it('of the API server in the middle repeats nothing in the same term', async () => {
    const world = startedWorld();
    const term = world.newTerm();
    world.onWrite = () => {
      throw new Error('no answer');
    };
    await expect(term()).rejects.toThrow('no answer');
    world.onWrite = () => undefined;
    await term();
    expect(names(world.sent)).toEqual(ALL);
  });
});

describe('a target that takes nothing', () => {
  it('is told in the status as soon as that can be written, also while it is left alone', async () => {
    const world = startedWorld();
    world.answer = () => ({ kind: 'unreachable', why: 'timeout' });
    const term = world.newTerm();
    world.onWrite = () => {
      throw new Error('no answer');
    };
    await expect(term()).rejects.toThrow('no answer');
    world.onWrite = () => undefined;
    expect((await term())?.requeueAfterMs).toBe(5_000);
    expect(world.sent).toHaveLength(1);
    expect(world.status()).toMatchObject({ failedSince: '2026-01-01T00:00:00Z', conditions: [{ reason: 'Retrying' }] });
  });

  it('is tried from after 5 s to after an hour, and gets the same event again', async () => {
    const world = startedWorld();
    world.answer = () => ({ kind: 'unreachable', why: 'timeout' });
    const term = world.newTerm();
    const waits: number[] = [];
    for (let tries = 0; tries < 12; tries += 1) {
      const wait = (await term())?.requeueAfterMs ?? 0;
      waits.push(wait / 1000);
      // Other news in between change nothing.
      await world.clock.advance(wait - 1);
      expect((await term())?.requeueAfterMs).toBe(1);
      await world.clock.advance(1);
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
    expect(new Set(world.sent.map(({ id }) => id)).size).toBe(1);
    expect(world.status()).toMatchObject({
      host: 'example.com',
      failedSince: '2026-01-01T00:00:00Z',
      conditions: [{ status: 'False', reason: 'Retrying' }],
    });
    expect(world.lags.oldestMs(world.clock.now())).toBe(0);
    world.answer = () => ({ kind: 'delivered' });
    await term();
    expect(world.status()).toMatchObject({ conditions: [{ status: 'True', reason: 'Delivered' }], dropped: 0 });
    expect(world.status().failedSince).toBeUndefined();
    expect(names(world.sent.slice(12))).toEqual(ALL.slice(0));
  });

  it('is left alone longer each time when it takes every other event, until it takes more than it refused', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    const entries = Array.from({ length: 40 }, (_, index) => entry(index, 'Accepted'));
    world.put(world.histories, history('a', entries));
    let tries = 0;
    world.answer = () => {
      tries += 1;
      return tries % 2 === 0 ? { kind: 'refused', status: 500, retryAfterMs: undefined } : { kind: 'delivered' };
    };
    const term = world.newTerm();
    const nextWait = async () => {
      const wait = (await term())?.requeueAfterMs ?? 0;
      await world.clock.advance(wait);
      return wait / 1000;
    };
    const waits: number[] = [];
    for (let turn = 0; turn < 12; turn += 1) waits.push(await nextWait());
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
    for (const [taken, wait] of [
      [11, 3600],
      [12, 5],
    ] as const) {
      const before = world.sent.length;
      world.answer = () =>
        world.sent.length > before + taken ? { kind: 'unreachable', why: 'timeout' } : { kind: 'delivered' };
      expect(await nextWait()).toBe(wait);
    }
  });

  it('begins anew when it did well for as long as it was left alone', async () => {
    const world = notifierWorld();
    world.put(world.webhooks, webhook());
    const term = world.newTerm();
    const waits: unknown[] = [];
    for (let day = 1; day <= 3; day += 1) {
      const entries = Array.from({ length: day }, (_, index) => entry(index, 'Accepted'));
      world.put(world.histories, history('a', entries));
      let isFirst = true;
      world.answer = () => {
        if (!isFirst) return { kind: 'delivered' };
        isFirst = false;
        return { kind: 'unreachable', why: 'timeout' };
      };
      waits.push((await term())?.requeueAfterMs);
      await world.clock.advance(60_000);
      await term();
    }
    expect(waits).toEqual([5_000, 5_000, 5_000]);
  });

  it('loses an event after three days, which is counted', async () => {
    const world = startedWorld();
    world.answer = () => ({ kind: 'refused', status: 500, retryAfterMs: undefined });
    const term = world.newTerm();
    await term();
    await world.clock.advance(3 * DAY_MS + 2_500);
    await term();
    expect(world.status()).toMatchObject({ dropped: 2, conditions: [{ reason: 'TargetRefused' }] });
    expect(names(world.sent)).toEqual(['a Accepted', 'b Accepted']);
    expect(world.counted.filter((one) => one === 'dropped')).toHaveLength(2);
  });

  it('waits as long as it asks for, up to an hour', async () => {
    const world = startedWorld();
    world.answer = () => ({ kind: 'refused', status: 429, retryAfterMs: 90_000 });
    expect(await world.newTerm()()).toEqual({ requeueAfterMs: 90_000 });
    world.answer = () => ({ kind: 'refused', status: 429, retryAfterMs: DAY_MS });
    expect(await world.newTerm()()).toEqual({ requeueAfterMs: 3_600_000 });
  });

  it('that is not allowed learns nothing of the network by its status', async () => {
    const world = startedWorld();
    world.answer = () => ({ kind: 'not_allowed' });
    await world.newTerm()();
    const [condition] = world.status().conditions ?? [];
    expect(condition).toMatchObject({ status: 'False', reason: 'TargetNotAllowed' });
    expect(condition?.message).not.toMatch(/\d+\.\d+|ENOTFOUND|refused/);
  });
});

it('a tenant with slow targets leaves deliveries to others', async () => {
  const world = notifierWorld();
  const slow = Array.from({ length: 100 }, (_, index) => webhook({}, `slow-${index}`));
  for (const one of [...slow, webhook({}, 'quick', 'others')]) world.put(world.webhooks, one);
  world.put(world.histories, history('a', [entry(1, 'Accepted')]));
  const theirs = history('b', [entry(1, 'Accepted')]);
  world.put(world.histories, { ...theirs, metadata: { ...theirs.metadata, namespace: 'others' } });
  const held = Promise.withResolvers<never>();
  world.answer = ({ data }) => (data['instance_id'] === 'a' ? held.promise : { kind: 'delivered' });
  const term = world.newTerm();
  const results = slow.map(({ metadata }) => term(`${TENANT}/${metadata.name}`));
  await world.clock.advance(0);
  expect(world.sent.length).toBe(32);
  await term('others/quick');
  expect(world.sent.at(-1)?.data['instance_id']).toBe('b');
  held.reject(new Error('over'));
  await Promise.allSettled(results);
});

it.each([true, false])(
  'a webhook that is made anew under its name has nothing of the old one (seen gone: %s)',
  async (isSeen) => {
    const world = startedWorld();
    const term = world.newTerm();
    await term();
    world.webhooks.replace([], '2');
    if (isSeen) await term();
    const anew = webhook();
    world.put(world.webhooks, {
      ...anew,
      metadata: { ...anew.metadata, uid: 'other', creationTimestamp: '2026-01-01T00:00:05Z' },
    });
    await term();
    expect(names(world.sent)).toEqual([...ALL, 'a Ready']);
    expect(world.sent.at(-1)?.headers['webhook-signature']).not.toBe(world.sent.at(-2)?.headers['webhook-signature']);
  },
);

it('without the lease nothing is delivered', async () => {
  const world = startedWorld();
  await expect(world.newTerm({ mayDeliver: () => false })(HOOK_KEY)).rejects.toThrow('lease');
  expect(world.sent).toEqual([]);
});

it('a turn ends after 64 events, and when the process stops', async () => {
  const world = notifierWorld();
  world.put(world.webhooks, webhook());
  world.put(
    world.histories,
    history(
      'a',
      Array.from({ length: 100 }, (_, at) => entry(at + 1, 'Idle', { start: at })),
    ),
  );
  expect(await world.newTerm()()).toEqual({ requeueAfterMs: 0 });
  expect(world.sent).toHaveLength(64);
  await world.newTerm({ stopping: AbortSignal.abort() })();
  expect(world.sent).toHaveLength(64);
  expect(world.status().cursor?.sent).toHaveLength(64);
});
