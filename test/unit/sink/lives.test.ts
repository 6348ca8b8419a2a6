import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Bills } from '../../../src/ledger/bills.ts';
import { monthOf } from '../../../src/ledger/month.ts';
import { totalsOf, UsageReport } from '../../../src/ledger/report.ts';
import type { GpuInstance } from '../../../src/resources/instances/gpu-instance.ts';
import type { Charge } from '../../../src/sink/columns.ts';
import { chargesOfInstance, chargesOfRecord } from '../../../src/sink/usage-charges.ts';
import { live, LIVES_SHARE, op } from '../../support/ledger-lives.ts';
import type { LedgerWorld } from '../../support/ledger-world.ts';

const LIVES = 800 * LIVES_SHARE;
/** So late in a month that many starts run over its end. */
const START = Date.UTC(2026, 0, 31, 12);

/** The instance as if its current start were not: what runs is not exported. */
function ended({ claim: _claim, ...status }: NonNullable<GpuInstance['status']>): GpuInstance['status'] {
  return status;
}

function chargesOf({ stored }: LedgerWorld): Charge[] {
  const { instance, records } = stored;
  return [...(instance ? chargesOfInstance(instance) : []), ...[...records.values()].flatMap(chargesOfRecord)];
}

/** What the ledger itself says of ended starts, by month and currency. */
function reported({ stored, now }: LedgerWorld): Record<string, bigint> {
  const { instance } = stored;
  const sums: Record<string, bigint> = {};
  for (let month = monthOf(Date.UTC(2025, 11)); month.from < Date.UTC(2028, 0); month = monthOf(month.to)) {
    const report = new UsageReport({ ...month, group: 'key', most: 1000 });
    const instances = instance?.status === undefined ? [] : [{ ...instance, status: ended(instance.status) }];
    const bills = new Bills(instances, now, (billed) => report.add(billed));
    for (const record of stored.records.values()) bills.addRecord(record);
    bills.addUnrecorded();
    for (const { currency, cost, gpuMs } of totalsOf(report.lines()))
      if (cost !== 0n || gpuMs !== 0n) sums[`${month.name} ${currency}`] = cost;
  }
  return sums;
}

function summed(charges: Iterable<Charge>): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const { month, currency, cost } of charges)
    sums[`${month} ${currency}`] = (sums[`${month} ${currency}`] ?? 0n) + cost;
  return sums;
}

test(
  'whatever a life brings, and however often it was exported on the way, its rows cost what the ledger says, month by month',
  { timeout: 240_000 * LIVES_SHARE },
  async () => {
    let rows = 0;
    let split = 0;
    const calm = op.filter((one) => one.do !== 'restore');
    const ops = fc.array(calm, { minLength: 1, maxLength: 24, size: 'max' });
    const lives = fc.asyncProperty(ops, async (done) => {
      const sink = new Map<string, Charge>();
      const after = (now: LedgerWorld): void => {
        for (const charge of chargesOf(now)) {
          const before = sink.get(charge.row.x_ChargeId);
          expect(before?.cost ?? charge.cost).toBe(charge.cost);
          if (before === undefined) sink.set(charge.row.x_ChargeId, charge);
        }
      };
      const world = await live(done, { start: START, after });
      const sums = summed(sink.values());
      expect(sums).toEqual(reported(world));
      rows += sink.size;
      split += new Set(Object.keys(sums).map((key) => key.slice(0, 7))).size > 1 ? 1 : 0;
    });
    await fc.assert(lives, { numRuns: LIVES });
    // Lives that are too tame would show nothing.
    expect(rows).toBeGreaterThan(LIVES);
    expect(split).toBeGreaterThan(LIVES / 20);
  },
);
