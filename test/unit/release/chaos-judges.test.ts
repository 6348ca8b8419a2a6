import { expect, test } from 'vitest';
import { type Account, judgeBills, type SeenStart } from '../../chaos/bills.ts';
import { programOf, sharedGpus } from '../../chaos/programs.ts';
import { judgeVictims } from '../../chaos/victims.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';

const BEGIN = Date.parse('2026-11-26T10:00:00Z');
const at = (second: number): number => BEGIN + second * 1000;
const time = (second: number): string => new Date(at(second)).toISOString();

function bill(start: number, [from, to]: readonly [number, number], more: Partial<Interval> = {}): Interval {
  const gpuSeconds = 2 * (to - from);
  const money = { pricePerHour: '3600', currency: 'EUR', cost: String(to - from) };
  return { start, from: time(from), to: time(to), product: 'GPU', gpuCount: 2, gpuSeconds, ...money, ...more };
}

function seen(start: number, [startedAt, finishedAt]: readonly [number, number], more: Partial<SeenStart> = {}) {
  const times = { created: at(startedAt - 3), startedAt: at(startedAt), finishedAt: at(finishedAt) };
  const names = { pod: `a/one-${start}`, podUid: `p${start}`, instance: 'uid' };
  const ends = { decidedAt: at(finishedAt - 1), goneAt: at(finishedAt + 1) };
  return { start, ...names, real: true, ...times, ...ends, ...more };
}

const TWO = [seen(1, [0, 60]), seen(2, [70, 100])];
const account = (...intervals: Interval[]): Account => ({ name: 'a/one', intervals, records: [] });

test('bills that are what was seen are right, in the status and in a record', () => {
  const [first, second] = [bill(1, [0, 60]), bill(2, [70, 100])];
  const record = { intervals: [first], gpuSeconds: 120, cost: '60' };
  expect(judgeBills(account(first, second), TWO)).toEqual([]);
  expect(judgeBills({ ...account(second), records: [record], used: 180 }, TWO)).toEqual([]);
  // The record is written before the status loses the bill.
  expect(judgeBills({ ...account(first, second), records: [record], used: 180 }, TWO)).toEqual([]);
  expect(judgeBills({ ...account(first), open: 2 }, TWO)).toEqual([]);
});

test('a silence of the node is not billed', () => {
  const silences = [{ from: time(10), to: time(20) }];
  expect(judgeBills(account(bill(1, [0, 60], { silences, gpuSeconds: 100, cost: '50' })), [seen(1, [0, 60])])).toEqual(
    [],
  );
  expect(judgeBills(account(bill(1, [0, 60], { silences })), [seen(1, [0, 60])])).toHaveLength(1);
});

test('a place that others ended for is billed from its grant, and no other', () => {
  const [early, plain] = [{ byPreemption: true }, {}].map((more) => bill(1, [-4, 60], more)) as [Interval, Interval];
  expect(judgeBills(account(early), [seen(1, [0, 60])])).toEqual([]);
  expect(judgeBills(account(plain), [seen(1, [0, 60])])).toHaveLength(1);
  expect(judgeBills(account(bill(1, [-90, 60], { byPreemption: true })), [seen(1, [0, 60])])).toHaveLength(1);
});

test('what a program holds longer than the grace is not billed', () => {
  const stubborn = seen(1, [0, 95], { decidedAt: at(60) });
  expect(judgeBills(account(bill(1, [0, 90])), [stubborn])).toEqual([]);
  expect(judgeBills(account(bill(1, [0, 95])), [stubborn])).toHaveLength(1);
  expect(judgeBills(account(bill(1, [0, 60])), [stubborn])).toHaveLength(1);
});

test.each<[string, Account]>([
  ['a start without a bill', account(bill(1, [0, 60]))],
  ['a bill without a start', account(bill(1, [0, 60]), bill(2, [70, 100]), bill(3, [110, 120]))],
  ['a second that is billed twice', account(bill(1, [0, 60]), bill(2, [59, 100]))],
  ['a start that is billed before it ran', account(bill(1, [-10, 60]), bill(2, [70, 100]))],
  ['a start that is billed after it ended', account(bill(1, [0, 66]), bill(2, [70, 100]))],
  ['a start that is billed too little', account(bill(1, [0, 50]), bill(2, [70, 100]))],
  ['GPU seconds that the time is not', account(bill(1, [0, 60], { gpuSeconds: 60 }), bill(2, [70, 100]))],
  ['a cost that the time is not', account(bill(1, [0, 60], { cost: '60.01' }), bill(2, [70, 100]))],
  [
    'a record that its starts are not',
    { ...account(bill(2, [70, 100])), records: [{ intervals: [bill(1, [0, 60])], gpuSeconds: 121, cost: '60' }] },
  ],
  [
    'two bills of one start',
    {
      ...account(bill(1, [0, 61]), bill(2, [70, 100])),
      records: [{ intervals: [bill(1, [0, 60])], gpuSeconds: 120, cost: '60' }],
    },
  ],
  ['a sum that the bills are not', { ...account(bill(1, [0, 60]), bill(2, [70, 100])), used: 120 }],
])('%s is wrong', (_, wrong) => {
  expect(judgeBills(wrong, TWO)).not.toEqual([]);
});

test('what kwok says of containers bounds no bill, and what it does to pods does', () => {
  const simulated = seen(1, [0, 60], { real: false, startedAt: at(60) });
  expect(judgeBills(account(bill(1, [1, 59])), [simulated])).toEqual([]);
  expect(judgeBills(account(bill(1, [1, 200])), [simulated])).toHaveLength(1);
});

test('a victim ends once for each start of a request that runs', () => {
  const one = { name: 'gang', starts: 1, ran: true, waits: false };
  const once = [{ victim: 'v', by: 'g', start: 1 }];
  const twice = [...once, { victim: 'v', by: 'g', start: 2 }];
  const judged = (all: typeof once, request: typeof one) => judgeVictims(all, new Map([['g', request]]));
  expect(judged([...once, ...once], one)).toEqual([]);
  expect(judged(twice, one)).toEqual(['v was ended 2 times for gang, which asked 1 times']);
  expect(judged(twice, { ...one, starts: 2 })).toEqual([]);
  expect(judged(twice, { ...one, waits: true })).toEqual([]);
  expect(judged(once, { ...one, ran: false })).toEqual(['v was ended for gang, which never ran']);
  expect(judgeVictims(once, new Map())).toHaveLength(1);
});

test('a GPU with programs of two instances is shared, and one with two programs of one is not', () => {
  const environment = (name: string, gpus: string): string =>
    [`BERTH_INSTANCE_ID=${name}`, 'BERTH_NAMESPACE=alice', `NVIDIA_VISIBLE_DEVICES=${gpus}`, ''].join('\0');
  const programs = (...all: [string, string][]) => all.flatMap((one) => programOf(environment(...one)) ?? []);
  expect(programOf('HOME=/root\0')).toBeUndefined();
  expect(
    sharedGpus(programs(['a', 'GPU-1,GPU-2'], ['a', 'GPU-1'], ['b', 'GPU-3'], ['c', 'void'], ['d', 'void'])),
  ).toEqual([]);
  expect(sharedGpus(programs(['b', 'GPU-1,GPU-2'], ['a', 'GPU-2']))).toEqual([
    'programs of alice/a and alice/b ran on GPU-2 at once',
  ]);
});
