import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { Bills } from '../../../src/ledger/bills.ts';
import {
  type Account,
  drawsOn,
  firstHour,
  highestLine,
  isSpent,
  linesOf,
  lineWithoutRoom,
  nextPercentMs,
  statusOfLines,
} from '../../../src/budgets/accounts.ts';
import { type AccountInput, type Holder, KeptAccounts } from '../../../src/budgets/kept-accounts.ts';
import { intervalOf } from '../../../src/ledger/interval.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import { totalsOf, UsageReport } from '../../../src/ledger/report.ts';
import { RecordedSpending, Spending, TENANT } from '../../../src/budgets/spending.ts';
import type { Claim, GpuInstance, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { formatMoney, parseMoney } from '../../../src/resources/money.ts';
import { budgetSchema, budgetStatusSchema } from '../../../src/resources/tenants/budget.ts';
import { tokenBillsOf } from '../../../src/ledger/tokens.ts';
import type { TokenRecord } from '../../../src/resources/token-record.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import { claimOn, gpuInstance } from '../../support/inventory-world.ts';

const HOUR = 3_600_000;
const MONTH = monthOf(Date.UTC(2026, 10, 23));
const NOW = Date.UTC(2026, 10, 23, 12);

const accountsOf = (owners: string[], input: Omit<AccountInput, 'revision'>) =>
  new KeptAccounts().of(owners, { ...input, revision: 0 });

const empty = (): Account => ({ spent: new Spending(), reserved: new Spending(), perHour: new Spending() });

function accountOf(money: { spent?: string; reserved?: string; perHour?: string }, gpuMs = 0n): Account {
  const of = (text = '0') => new Spending().add({ gpuMs: 0n, cost: parseMoney(text) }, 'USD');
  const spent = of(money.spent).addAll(new Spending().add({ gpuMs, cost: 0n }, 'USD'));
  return { spent, reserved: of(money.reserved), perHour: of(money.perHour) };
}

const USD = budgetSchema.parse({ costs: [{ currency: 'USD', max: '100' }] });

test('a month is one of UTC, and ends where the next begins', () => {
  expect(monthOf(Date.UTC(2026, 11, 31, 23, 59, 59, 999))).toEqual({
    name: '2026-12',
    from: Date.UTC(2026, 11, 1),
    to: Date.UTC(2027, 0, 1),
  });
});

// The API server refuses a status with more lines, and what was spent would stand still for the gateway.
test('a status has room for the parts of a budget, whatever currencies were spent', () => {
  const spent = new Spending();
  for (let count = 1; count <= 20; count += 1)
    spent.add({ gpuMs: 0n, cost: BigInt(count) * 1_000_000n }, `X${String.fromCodePoint(64 + count)}X`);
  const budget = budgetSchema.parse({ costs: [{ currency: 'USD', max: '100' }], gpuHours: 5 });
  const status = statusOfLines(linesOf(budget, { ...empty(), spent }), MONTH, NOW);
  expect(budgetStatusSchema.parse(status)).toEqual(status);
  const units = status.lines.map(({ unit }) => unit);
  expect(units).toEqual(expect.arrayContaining(['USD', 'GPU-hours', 'XTX', 'XFX']));
  expect(units).not.toContain('XEX');
});

describe('room for a first hour', () => {
  const wanted = (claim: Partial<Claim>) => firstHour(claimOn('n', claim), MONTH, NOW);
  const full = (budget: object, account: Account, claim: Partial<Claim>) => {
    const needs = wanted(claim);
    return lineWithoutRoom(linesOf(budgetSchema.parse(budget), account, needs), needs)?.unit;
  };

  it.each([
    ['is there to the last unit', { spent: '89.999999', reserved: '0.000001' }, '10', undefined],
    ['is not there when a millionth is missing', { spent: '90', reserved: '0.000001' }, '10', 'USD'],
    ['is not there when all is spent', { spent: '100' }, '0.000001', 'USD'],
    ['is always there for what costs nothing', { spent: '250' }, '0', undefined],
  ])('%s', (_what, account, pricePerHour, unit) => {
    expect(full(USD, accountOf(account), { pricePerHour })).toBe(unit);
  });

  it('counts GPU-hours by the part of a GPU', () => {
    const budget = { gpuHours: 1 };
    expect(full(budget, accountOf({}, 0n), { gpuCount: 2 })).toBe('GPU-hours');
    expect(full(budget, accountOf({}, 0n), { gpuCount: 7, gpuShare: '1/7' })).toBeUndefined();
    expect(full(budget, accountOf({}, 1n), { gpuCount: 7, gpuShare: '1/7' })).toBe('GPU-hours');
  });

  it('is not there in a currency that the budget does not name', () => {
    expect(full(USD, empty(), { currency: 'EUR', pricePerHour: '0.01' })).toBe('EUR');
    expect(full({ gpuHours: 10 }, empty(), { currency: 'EUR', pricePerHour: '0.01' })).toBeUndefined();
  });

  it('is no more than what is left of the month', () => {
    const last = firstHour(claimOn('n', { pricePerHour: '60' }), MONTH, MONTH.to - 60_000);
    expect(last.costs.get('USD')).toBe(parseMoney('1'));
  });
});

test('the next per cent is computed to the moment, also of the last one', () => {
  const lines = linesOf(USD, accountOf({ spent: '99.5', perHour: '3600' }));
  expect(nextPercentMs(lines)).toBe(500);
  expect(nextPercentMs(linesOf(USD, accountOf({ spent: '50', perHour: '3600' })))).toBe(1000);
  expect(nextPercentMs(linesOf(USD, accountOf({ spent: '50' })))).toBe(Infinity);
  expect(nextPercentMs(linesOf(USD, accountOf({ spent: '100', perHour: '1' })))).toBe(Infinity);
});

test('a status has the per cent of the part that is used most, rounded down', () => {
  const budget = budgetSchema.parse({ costs: [{ currency: 'USD', max: '100' }], gpuHours: 3 });
  const lines = linesOf(budget, accountOf({ spent: '12.5' }, BigInt(2.9 * HOUR)));
  expect(highestLine(lines)?.unit).toBe('GPU-hours');
  expect(statusOfLines(lines, MONTH, NOW)).toEqual({
    month: '2026-11',
    renewsAt: '2026-12-01T00:00:00.000Z',
    at: '2026-11-23T12:00:00.000Z',
    percent: 96,
    lines: [
      { unit: 'USD', max: '100.00', spent: '12.50' },
      { unit: 'GPU-hours', max: '3.00', spent: '2.90' },
    ],
  });
});

test('an instance draws on the parts that it adds to, and on no other', () => {
  const budget = budgetSchema.parse({ costs: [{ currency: 'USD', max: '1' }], gpuHours: 1 });
  const [usd, hours] = linesOf(budget, empty());
  if (usd === undefined || hours === undefined) throw new Error('a line is missing');
  const free = claimOn('n', { pricePerHour: '0' });
  expect([drawsOn(usd, free), drawsOn(hours, free)]).toEqual([false, true]);
  expect(drawsOn(usd, claimOn('n', { currency: 'EUR' }))).toBe(false);
});

/** Starts of one instance, some of them ended, recorded or both, as a status and records have them. */
interface Life {
  name: string;
  instance: GpuInstance | undefined;
  records: UsageRecord[];
}

const claims = fc.record({
  gpuCount: fc.integer({ min: 1, max: 8 }),
  gpuShare: fc.constantFrom('1', '1/7', '1/4'),
  pricePerHour: fc.constantFrom('2.49', '0.000001', '98.32', '0', '0.333333'),
  currency: fc.constantFrom('USD', 'USD', 'EUR'),
  createdBy: fc.constantFrom('key/ci', 'key/other', 'person/ann', undefined),
});

const starts = fc.array(
  fc.record({
    claim: claims,
    gapMs: fc.integer({ min: 0, max: 200 * HOUR }),
    ms: fc.integer({ min: 1, max: 300 * HOUR }),
    isRecorded: fc.boolean(),
    isKept: fc.boolean(),
  }),
  { maxLength: 6 },
);

type Start = typeof starts extends fc.Arbitrary<(infer One)[]> ? One : never;

/** A life from before the month until now. The last start may still run. */
function lifeOf(index: number, all: readonly Start[], isGone: boolean, runs: boolean): Life {
  const name = `i${index}`;
  let from = MONTH.from - 100 * HOUR;
  const intervals = all.flatMap(({ claim, gapMs, ms, ...rest }, at) => {
    from += gapMs;
    const { createdBy, ...priced } = claim;
    const own = claimOn('n', { ...priced, ...(createdBy && { createdBy }) });
    const status = { claim: own, incarnation: at + 1, stages: { ready: new Date(from).toISOString() } };
    const end = Math.min(from + ms, NOW);
    const interval = intervalOf(status, end);
    from = end;
    return interval === undefined ? [] : [{ ...rest, interval, claim: own }];
  });
  const records = intervals
    .filter(({ isRecorded }) => isRecorded || isGone)
    .map(({ interval }): UsageRecord => {
      const { product, gpuCount, gpuSeconds, cost, currency, to } = interval;
      const sum = { product, gpuCount, gpuSeconds, cost, currency, endedAt: to };
      const spec = { instance: name, instanceUid: `uid-${name}`, ...sum, intervals: [interval] };
      return { metadata: { namespace: 'default', name: `${name}-${interval.start}` }, spec };
    });
  if (isGone) return { name, instance: undefined, records };
  const kept = intervals.filter(({ isRecorded, isKept }) => !isRecorded || isKept).map(({ interval }) => interval);
  const running = claimOn('n', { pricePerHour: '7', createdBy: 'key/ci' });
  const status: GpuInstanceStatus = {
    intervals: kept,
    incarnation: 99,
    ...(runs && { claim: running, stages: { ready: new Date(NOW - HOUR / 3).toISOString() } }),
  };
  return { name, instance: gpuInstance(name, {}, status), records };
}

/** Calls to models: who called, what it cost, and whether in another month. */
const calls = fc.array(
  fc.record({
    by: fc.constantFrom('key/ci', 'person/ann'),
    cost: fc.constantFrom('0.00', '0.000001', '2.50'),
    currency: fc.constantFrom('USD', 'EUR'),
    isEarlier: fc.boolean(),
  }),
  { maxLength: 4 },
);

function tokenRecordOf({
  by,
  cost,
  currency,
  isEarlier,
}: typeof calls extends fc.Arbitrary<(infer T)[]> ? T : never): TokenRecord {
  const day = new Date(isEarlier ? MONTH.from - HOUR : NOW).toISOString().slice(0, 10);
  const counts = { calls: 1, unreported: 0, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
  const prices = { inputPrice: '1', cachedInputPrice: '1', outputPrice: '1' };
  const entries = [{ by, model: 'm', ...prices, ...counts, cost }];
  return {
    metadata: { namespace: 'default', name: 't' },
    spec: { day, replica: 'r', calls: 1, cost, currency, entries },
  };
}

const lives = fc.array(fc.record({ starts, isGone: fc.boolean(), runs: fc.boolean() }), { maxLength: 6 });

test('what budgets count is what the bill of the month says, of the tenant and of each key, and nothing twice', () => {
  let recorded = 0;
  fc.assert(
    fc.property(lives, fc.boolean(), calls, (all, isCredit, called) => {
      const made = all.map((life, index) => lifeOf(index, life.starts, life.isGone, life.runs));
      const adjustment: UsageRecord = {
        metadata: { namespace: 'default', name: 'adjustment' },
        spec: {
          instance: 'i0',
          instanceUid: 'uid-i0',
          product: '',
          gpuCount: 0,
          gpuSeconds: 0,
          cost: '0.50',
          currency: 'USD',
          endedAt: new Date(NOW).toISOString(),
          adjustment: { type: isCredit ? 'Credit' : 'Charge', reason: 'test' },
        },
      };
      const records = [...made.flatMap((life) => life.records), adjustment];
      recorded += records.length;
      const instances = made.flatMap(({ instance }) => instance ?? []);
      const spending = new RecordedSpending(MONTH);
      for (const record of records) spending.count(record, 1);
      const tokens = called.map(tokenRecordOf);
      for (const record of tokens) spending.countTokens(record, 1);
      // A record that came and went leaves nothing.
      spending.count({ ...adjustment, metadata: { ...adjustment.metadata, name: 'gone' } }, 1);
      spending.count({ ...adjustment, metadata: { ...adjustment.metadata, name: 'gone' } }, -1);
      const isRecorded = (uid: string, start: number): boolean =>
        records.some(
          ({ spec }) =>
            spec.instanceUid === uid && !spec.adjustment && spec.intervals?.some((one) => one.start === start),
        );
      const accounts = accountsOf([TENANT, 'key/ci'], {
        namespace: 'default',
        holders: instances.map((instance) => ({ instance, claim: instance.status?.claim })),
        recorded: spending,
        isRecorded,
        now: NOW,
      });
      const report = new UsageReport({ from: MONTH.from, to: MONTH.to, group: 'key', most: 1000 });
      const bills = new Bills(instances, NOW, (billed) => report.add(billed));
      for (const record of records) bills.addRecord(record);
      bills.addUnrecorded();
      for (const bill of tokens.flatMap(tokenBillsOf)) report.addTokens(bill);
      const sums = (lines: ReturnType<typeof report.lines>) =>
        Object.fromEntries(totalsOf(lines).map(({ currency, cost }) => [currency, formatMoney(cost)]));
      const spent = (owner: string) =>
        Object.fromEntries(
          [...(accounts.get(owner)?.spent.costs ?? [])].map(([name, cost]) => [name, formatMoney(cost)]),
        );
      const nonzero = (amounts: Record<string, string>) =>
        Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount !== '0.00'));
      const lines = report.lines();
      expect(nonzero(spent(TENANT))).toEqual(nonzero(sums(lines)));
      expect(nonzero(spent('key/ci'))).toEqual(nonzero(sums(lines.filter(({ group }) => group === 'key/ci'))));
      const gpuMs = totalsOf(lines).reduce((sum, one) => sum + one.gpuMs, 0n);
      expect(accounts.get(TENANT)?.spent.gpuMs).toBe(gpuMs);
    }),
    { numRuns: 300 },
  );
  expect(recorded).toBeGreaterThan(500);
});

test('claims that have room, and looks at the computed moments, never spend more than the budget', () => {
  const tenant = fc.array(
    fc.record({
      price: fc.constantFrom('1', '2.49', '3600', '0.000001'),
      after: fc.integer({ min: 0, max: 3 * HOUR }),
    }),
    { minLength: 1, maxLength: 12 },
  );
  let ends = 0;
  fc.assert(
    fc.property(tenant, (wishes) => {
      const recorded = new RecordedSpending(MONTH);
      const holders: { instance: GpuInstance; claim: Claim }[] = [];
      let now = MONTH.from;
      const kept = new KeptAccounts();
      const count = () => {
        const input = { namespace: 'default', holders, recorded, isRecorded: () => false, revision: 0, now };
        return kept.of([TENANT], input).get(TENANT) ?? empty();
      };
      /** Looks until then whenever a whole per cent is due. True when the budget was spent. */
      const runUntil = (end: number): boolean => {
        for (;;) {
          const lines = linesOf(USD, count());
          if (lines.some(isSpent)) return true;
          const next = now + Math.max(1, nextPercentMs(lines));
          if (next > end) break;
          now = next;
        }
        now = end;
        return linesOf(USD, count()).some(isSpent);
      };
      for (const [index, { price, after }] of wishes.entries()) {
        if (runUntil(Math.min(MONTH.to - 1, now + after))) break;
        const claim = claimOn('n', { pricePerHour: price });
        const wanted = firstHour(claim, MONTH, now);
        if (lineWithoutRoom(linesOf(USD, count(), wanted), wanted) !== undefined) continue;
        const status = { claim, incarnation: 1, stages: { ready: new Date(now).toISOString() } };
        holders.push({ instance: gpuInstance(`i${index}`, {}, status), claim });
        // Within its first hour no start spends what another one set aside.
        expect(linesOf(USD, count()).every(({ spent, reserved, max }) => spent + reserved <= max)).toBe(true);
      }
      if (runUntil(MONTH.to - 1)) ends += 1;
      const [line] = linesOf(USD, count());
      // Two milliseconds of what runs, as times are whole milliseconds; and each start is rounded by itself.
      const most = (line?.max ?? 0n) + ((line?.perHour ?? 0n) * 2n) / BigInt(HOUR) + BigInt(holders.length);
      expect((line?.spent ?? 0n) <= most).toBe(true);
    }),
    { numRuns: 200 },
  );
  expect(ends).toBeGreaterThan(20);
});

test('accounts that are kept are those that are counted from scratch, whatever came, changed and went meanwhile', () => {
  const claim = fc.record({
    gpuCount: fc.integer({ min: 0, max: 8 }),
    gpuShare: fc.constantFrom('1', '1/7', '1/4'),
    pricePerHour: fc.constantFrom('2.49', '0.000001', '98.32', '0', '0.333333'),
    currency: fc.constantFrom('USD', 'EUR'),
    createdBy: fc.constantFrom('key/ci', 'key/other', 'person/ann'),
  });
  const name = fc.constantFrom('a', 'b', 'c');
  const step = fc.oneof(
    fc.record({ do: fc.constant('claim' as const), name, claim, isAssumed: fc.boolean() }),
    fc.record({ do: fc.constant('claim' as const), name, claim, isAssumed: fc.constant(false) }),
    ...[0, 1].map(() =>
      fc.record({ do: fc.constant('ready' as const), name, agoMs: fc.integer({ min: 0, max: 900 * HOUR }) }),
    ),
    fc.record({ do: fc.constant('assume' as const), name, claim }),
    fc.record({ do: fc.constant('end' as const), name, isWritten: fc.boolean() }),
    fc.record({ do: fc.constant('record' as const), name }),
    fc.record({ do: fc.constant('forget' as const), name }),
    fc.record({ do: fc.constant('go' as const), name }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: -HOUR, max: 200 * HOUR }) }),
  );
  const owners = [TENANT, 'key/ci', 'key/other', 'person/ann'];
  const plain = (accounts: Map<string, Account>) =>
    [...accounts].map(([owner, account]) => [
      owner,
      ...[account.spent, account.reserved, account.perHour].map(({ gpuMs, costs }) => [
        gpuMs,
        Object.fromEntries([...costs].toSorted(([x], [y]) => (x < y ? -1 : 1))),
      ]),
    ]);
  let spent = 0;
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40, size: 'max' }), (steps) => {
      let now = NOW;
      let revision = 0;
      const holders = new Map<string, Holder>();
      const recorded = new Set<string>();
      const kept = new KeptAccounts();
      const change = (one: string, status: GpuInstanceStatus, assumed?: Claim): void => {
        holders.set(one, { instance: gpuInstance(one, {}, status), claim: status.claim ?? assumed });
      };
      for (const one of steps) {
        const holder = 'name' in one ? holders.get(one.name) : undefined;
        const status = holder?.instance.status ?? {};
        const start = status.incarnation ?? 0;
        if (one.do === 'claim' && holder?.claim === undefined) {
          const made = claimOn('n', one.claim);
          const { stages: _stages, ending: _ending, ...rest } = status;
          change(one.name, { ...rest, incarnation: start + 1, ...(!one.isAssumed && { claim: made }) }, made);
        } else if (one.do === 'assume' && holder !== undefined && status.claim === undefined) {
          // The same object: a grant or its end that no cache shows yet.
          const claims = holder.claim === undefined ? claimOn('n', one.claim) : undefined;
          holders.set(one.name, { instance: holder.instance, claim: claims });
        } else if (one.do === 'ready' && status.claim !== undefined) {
          change(one.name, { ...status, stages: { ready: new Date(now - one.agoMs).toISOString() } });
        } else if (one.do === 'end' && status.claim !== undefined) {
          const ending = { reason: 'Stopped', message: '', at: new Date(now).toISOString() };
          const interval = intervalOf(status, now);
          const { claim: _claim, ...rest } = status;
          const intervals = [...(status.intervals ?? []), ...(interval ? [interval] : [])];
          change(one.name, one.isWritten ? { ...rest, intervals } : { ...status, ending });
        } else if (one.do === 'record') {
          recorded.add(`${holder?.instance.metadata.uid}/${start}`);
          revision += 1;
        } else if (one.do === 'forget' && holder !== undefined) change(one.name, { ...status, intervals: [] });
        else if (one.do === 'go') holders.delete(one.name);
        else if (one.do === 'wait') now += one.ms;
        const spending = new RecordedSpending(monthOf(now));
        const input = {
          namespace: 'default',
          holders: holders.values(),
          recorded: spending,
          isRecorded: (uid: string, number: number) => recorded.has(`${uid}/${number}`),
          now,
        };
        const found = plain(kept.of(owners, { ...input, revision }));
        expect(found).toEqual(plain(accountsOf(owners, { ...input, holders: holders.values() })));
        if (found.some(([, sum]) => (sum as [bigint])[0] > 0n)) spent += 1;
      }
    }),
    { numRuns: 300 },
  );
  expect(spent).toBeGreaterThan(500);
});
