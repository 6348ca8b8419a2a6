import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Bills } from '../../../src/ledger/bills.ts';
import { type Grouping, type Line, totalsOf, UsageReport } from '../../../src/ledger/report.ts';
import type { Claim, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import { formatMoney, parseMoney } from '../../../src/resources/money.ts';
import { live, LIVES_SHARE, type Op, op } from '../../support/ledger-lives.ts';
import type { LedgerWorld } from '../../support/ledger-world.ts';

const RANGE = { from: Date.UTC(2025, 0, 1), to: Date.UTC(2028, 0, 1) };
const HOUR = 3_600_000;
const LIVES = 4000 * LIVES_SHARE;

/** A leader with a view from before a program ran gives its place back. */
const OLD_VIEW: Op[] = [
  { do: 'start', ms: 1, graceMs: 0, crash: undefined },
  { do: 'reconcile', crash: undefined, age: 6 },
  { do: 'start', ms: 1, graceMs: 400, crash: { write: 1, when: 'before' } },
  { do: 'silence', ms: 1, seen: false },
  { do: 'podGone' },
  { do: 'reconcile', crash: undefined, age: 1 },
  { do: 'start', ms: 1, graceMs: 0, crash: undefined },
];

type Status = LedgerWorld['stored']['audit'][number]['status'];
type Sums = Record<string, { gpuMs: bigint; cost: bigint }>;

/** Half up, as a bill is rounded. Written anew here: the code under test must not check itself. */
function divide(numerator: bigint, denominator: bigint): bigint {
  const twice = 2n * numerator + denominator;
  return twice / (2n * denominator);
}

/** The silences of a start whose instance vanished, with what its node says: no status could say it any more. */
function heardLast({ silences = [], claim }: Status, { at, node }: NonNullable<LedgerWorld['stored']['vanished']>) {
  const [ready] = node.status?.conditions ?? [];
  const changed = Date.parse(ready?.lastTransitionTime ?? '');
  const last = silences.at(-1);
  const since = last !== undefined && last.to === undefined ? Date.parse(last.from) : undefined;
  const isSilent = ready?.status !== 'True';
  if (isSilent && since === undefined) {
    const began = Math.min(at, Number.isNaN(changed) ? at : changed);
    const from = Math.max(began, Date.parse(claim?.grantedAt ?? ''), Date.parse(last?.to ?? '') || 0);
    return [...silences, { from: new Date(from).toISOString() }];
  }
  if (isSilent || since === undefined || last === undefined) return silences;
  const back = changed > since && changed <= at ? changed : at;
  return [...silences.slice(0, -1), { ...last, to: new Date(back).toISOString() }];
}

/**
 * What an instance cost, from nothing but the statuses that the API server took, in order, and the time: each start from
 * its first run, or the end of the start before it, until its container had ended, or until its ending where nothing is
 * known of that; of a start that still runs until now. Without the times in which its node did not answer.
 */
function replay({ stored, now }: LedgerWorld): Sums {
  const sums: Sums = {};
  let last = -Infinity;
  const bill = (claim: Claim, { stages, silences = [] }: Status, end: number): void => {
    const began = stages?.started ?? stages?.ready;
    if (began === undefined) return;
    // Leaders have clocks that are ten seconds apart at most, or one of them was wrong.
    const isClose = last - Date.parse(claim.grantedAt) <= 10_000;
    const from = Math.max(Date.parse(began), isClose ? last : 0);
    let heard = Math.max(0, end - from);
    for (const silence of silences) {
      const to = Math.min(end, silence.to === undefined ? end : Date.parse(silence.to));
      heard -= Math.max(0, to - Math.max(from, Date.parse(silence.from)));
    }
    if (heard <= 0) return;
    last = end;
    const [parts = '1', of = '1'] = (claim.gpuShare ?? '1').split('/');
    const ms = BigInt(heard);
    const before = sums[claim.currency] ?? { gpuMs: 0n, cost: 0n };
    sums[claim.currency] = {
      gpuMs: before.gpuMs + divide(ms * BigInt(claim.gpuCount) * BigInt(parts), BigInt(of)),
      cost: before.cost + divide(parseMoney(claim.pricePerHour) * ms, BigInt(HOUR)),
    };
  };
  const statuses = stored.audit.map(({ status }) => status);
  for (const [index, status] of statuses.entries()) {
    const { claim, ending } = status;
    const next = statuses[index + 1];
    if (claim === undefined || next?.claim !== undefined) continue;
    const final = next?.ending ?? ending;
    const { vanished } = stored;
    const end = final === undefined ? (vanished?.at ?? now) : Date.parse(final.finishedAt ?? final.at);
    const isLast = final === undefined && vanished !== undefined;
    bill(claim, isLast ? { ...status, silences: heardLast(status, vanished) } : status, end);
  }
  return Object.fromEntries(Object.entries(sums).filter(([, { gpuMs, cost }]) => gpuMs > 0n || cost > 0n));
}

function report({ stored, now }: LedgerWorld, group: Grouping): Line[] {
  const made = new UsageReport({ ...RANGE, group, most: 10_000 });
  const bills = new Bills(stored.instance ? [stored.instance] : [], now, (billed) => made.add(billed));
  for (const record of stored.records.values()) bills.addRecord(record);
  bills.addUnrecorded();
  return made.lines();
}

function sumsOf(lines: readonly Line[]): Sums {
  return Object.fromEntries(totalsOf(lines).map(({ currency, gpuMs, cost }) => [currency, { gpuMs, cost }]));
}

/** Whether the node was silent when the end was decided: then it may say later that the container had ended before. */
function decidedInSilence({ ending, silences = [] }: GpuInstanceStatus): boolean {
  const decided = Date.parse(ending?.at ?? '');
  return silences.some(({ from, to }) => Date.parse(from) <= decided && !(Date.parse(to ?? '') < decided));
}

/** The bills of a world that are wrong in themselves. */
function faultsOf({ stored, wentBackMs }: LedgerWorld): string[] {
  const faults: string[] = [];
  const records = [...stored.records.values()].map(({ spec }) => spec);
  for (const { intervals = [], cost, gpuSeconds } of records) {
    const sum = intervals.reduce((total, one) => total + parseMoney(one.cost), 0n);
    if (formatMoney(sum) !== cost) faults.push(`a record says ${cost} and its starts ${formatMoney(sum)}`);
    const ms = intervals.reduce((total, one) => total + Math.round(one.gpuSeconds * 1000), 0);
    if (ms !== Math.round(gpuSeconds * 1000)) faults.push(`a record says ${gpuSeconds} GPU seconds`);
    if (new Set(intervals.map((one) => one.currency)).size > 1) faults.push('a record has two currencies');
  }
  const statuses = stored.audit.map(({ status }) => status);
  // The status that gives the place back no longer has the silences.
  const unheard = new Set(statuses.filter(decidedInSilence).map(({ ending }) => ending?.at));
  for (const { ending } of statuses) {
    const late = Date.parse(ending?.finishedAt ?? ending?.at ?? '') - Date.parse(ending?.at ?? '');
    const isEarly = late < 0 && !unheard.has(ending?.at);
    if (isEarly || late > 30_000) faults.push(`a container ended ${late} ms after its end was decided`);
  }
  const intervals = [...records.flatMap((spec) => spec.intervals ?? []), ...(stored.instance?.status?.intervals ?? [])];
  const ordered = [...new Map(intervals.map((one) => [one.start, one])).values()].toSorted((a, b) => a.start - b.start);
  for (const [index, { from, to }] of ordered.entries()) {
    if (from >= to) faults.push(`a start ends at ${to}, and began at ${from}`);
    const isBack = wentBackMs > 10_000;
    if (from < (ordered[index - 1]?.to ?? '') && !isBack) faults.push(`two starts are billed at ${from}`);
  }
  const kept = stored.instance?.status?.intervals?.length ?? 0;
  if (kept > 8) faults.push(`the status has ${kept} ended starts`);
  return faults;
}

test(
  'whatever a life brings, its bill is what a replay of the audit log says, to the millisecond and the smallest unit',
  { timeout: 240_000 * LIVES_SHARE },
  async () => {
    let starts = 0;
    let recorded = 0;
    const lives = fc.asyncProperty(fc.array(op, { minLength: 1, maxLength: 24, size: 'max' }), async (ops) => {
      const world = await live(ops);
      const expected = replay(world);
      for (const group of ['day', 'instance', 'key'] as const) expect(sumsOf(report(world, group))).toEqual(expected);
      expect(faultsOf(world)).toEqual([]);
      starts += world.stored.instance?.status?.incarnation ?? 0;
      recorded += world.stored.records.size;
    });
    await fc.assert(lives, { numRuns: LIVES, examples: [[OLD_VIEW]] });
    // Lives that are too tame would show nothing.
    expect([starts, recorded].map((count) => Math.min(count, LIVES / 4))).toEqual([LIVES / 4, LIVES / 4]);
  },
);
