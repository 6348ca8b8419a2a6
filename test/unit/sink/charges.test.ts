import { expect, test } from 'vitest';
import { usageRecords } from '../../../src/controllers/gpu-instance/decide/usage.ts';
import { intervalOf } from '../../../src/ledger/interval.ts';
import type { Claim, GpuInstanceStatus } from '../../../src/resources/instances/gpu-instance.ts';
import type { Interval } from '../../../src/resources/instances/interval.ts';
import { formatMoney } from '../../../src/resources/money.ts';
import type { TokenEntry, TokenRecord } from '../../../src/resources/token-record.ts';
import type { UsageRecord } from '../../../src/resources/usage-record.ts';
import { type Charge, COLUMNS } from '../../../src/sink/columns.ts';
import { chargesOfTokens, isFinal } from '../../../src/sink/token-charges.ts';
import { chargesOfInstance, chargesOfRecord } from '../../../src/sink/usage-charges.ts';
import { A100, claimOn, gpuInstance } from '../../support/inventory-world.ts';

const DAY = 86_400_000;
const FEBRUARY = Date.UTC(2026, 1, 1);
const at = (ms: number): string => new Date(FEBRUARY + ms).toISOString();

/** A start that ran between two moments around the end of January. */
function interval(fromMs: number, toMs: number, claim: Partial<Claim> = {}, start = 1): Interval {
  const status = { claim: claimOn('n', claim), incarnation: start, stages: { ready: at(fromMs) } };
  const found = intervalOf(status, FEBRUARY + toMs);
  if (found === undefined) throw new Error('the interval is empty');
  return found;
}

const ofStatus = (status: GpuInstanceStatus): Charge[] => chargesOfInstance(gpuInstance('run-7', {}, status));
const rowsOf = (charges: readonly Charge[]) => charges.map(({ row }) => row);

function recordOf(spec: Partial<UsageRecord['spec']>): UsageRecord {
  const none = { product: '', gpuCount: 0, gpuSeconds: 0, cost: '0.50', currency: 'EUR', endedAt: at(DAY) };
  const full = { instance: 'run-7', instanceUid: 'uid-run-7', ...none, ...spec };
  return { metadata: { namespace: 'default', name: 'credit-1' }, spec: full };
}

test('a start has every column of the table, and none that is not there', () => {
  const claim = { pricePerHour: '2.49', gpuCount: 2, gpuShare: '1/7', isolation: 'mig' as const, createdBy: 'key/ci' };
  const [row] = rowsOf(ofStatus({ intervals: [interval(0, 5_400_000, claim, 3)] }));
  expect(Object.keys(row ?? {}).toSorted()).toEqual(Object.keys(COLUMNS).toSorted());
  expect(row).toEqual({
    BilledCost: '3.735',
    ContractedCost: '3.735',
    EffectiveCost: '3.735',
    ListCost: '3.735',
    BillingAccountId: 'default',
    BillingAccountName: null,
    BillingCurrency: 'USD',
    BillingPeriodStart: '2026-02-01T00:00:00.000Z',
    BillingPeriodEnd: '2026-03-01T00:00:00.000Z',
    ChargePeriodStart: '2026-02-01T00:00:00.000Z',
    ChargePeriodEnd: '2026-02-01T01:30:00.000Z',
    ChargeCategory: 'Usage',
    ChargeClass: null,
    ChargeDescription: `2 x ${A100}, start 3 of run-7`,
    ChargeFrequency: 'Usage-Based',
    ConsumedQuantity: '1542.857',
    ConsumedUnit: 'GPU-Seconds',
    InvoiceIssuerName: 'Berth',
    ListUnitPrice: '2.49',
    PricingQuantity: '1.500000000000',
    PricingUnit: 'Hours',
    ProviderName: 'Berth',
    PublisherName: 'Berth',
    ResourceId: 'uid-run-7',
    ResourceName: 'run-7',
    ResourceType: 'Instance',
    ServiceCategory: 'Compute',
    ServiceName: 'GPU instances',
    ServiceSubcategory: 'Containers',
    SkuId: A100,
    SkuMeter: 'GPU time',
    SkuPriceDetails: { GpuCount: 2, x_GpuShare: '1/7', x_Isolation: 'mig' },
    SkuPriceId: `${A100}/2x1/7/2.49 USD`,
    SubAccountId: 'key/ci',
    SubAccountName: 'ci',
    SubAccountType: 'Key',
    Tags: { 'berth/pool': 'default' },
    x_ChargeId: 'start/default/run-7/3/2026-02-01T00:00:00.000Z/2026-02',
  });
});

test('a start over the end of a month is split there, and its parts add up to its bill', () => {
  // 0.000003 in all: each third by itself would round to 0.000001, and the sum of two of them to 0.000002.
  const over = interval(-4, 2, { pricePerHour: '1.80' });
  const charges = ofStatus({ intervals: [over] });
  expect(charges.map(({ month, row }) => [month, row.BilledCost, row.ConsumedQuantity])).toEqual([
    ['2026-01', '0.000002', '0.004'],
    ['2026-02', '0.000001', '0.002'],
  ]);
  expect(over.cost).toBe('0.000003');
  expect(rowsOf(charges).map((row) => [row.ChargePeriodStart, row.ChargePeriodEnd])).toEqual([
    [at(-4), at(0)],
    [at(0), at(2)],
  ]);
  expect(new Set(rowsOf(charges).map(({ x_ChargeId: id }) => id)).size).toBe(2);
});

test('a start that ends with the month has no part in the next one, and one over a month has three', () => {
  expect(ofStatus({ intervals: [interval(-DAY, 0)] }).map(({ month }) => month)).toEqual(['2026-01']);
  expect(ofStatus({ intervals: [interval(0, DAY)] }).map(({ month }) => month)).toEqual(['2026-02']);
  const long = ofStatus({ intervals: [interval(-DAY, 40 * DAY)] });
  expect(long.map(({ month }) => month)).toEqual(['2026-01', '2026-02', '2026-03']);
});

test('a start that runs is no charge, nor is a sum of an earlier release that may grow', () => {
  const running = { claim: claimOn('n'), incarnation: 1, stages: { ready: at(0) } };
  expect(ofStatus(running)).toEqual([]);
  expect(ofStatus({ usage: { gpuSeconds: 60, cost: '0.50', currency: 'USD' }, stages: { stopped: at(0) } })).toEqual(
    [],
  );
});

test('a start is one charge, whether the status says it or the record, and also after a restore with another uid', () => {
  const instance = gpuInstance('run-7', {}, { incarnation: 2, intervals: [interval(-5, 5), interval(9, 12, {}, 2)] });
  const [record] = usageRecords(instance, FEBRUARY);
  if (record === undefined) throw new Error('no record');
  const fromStatus = chargesOfInstance(instance);
  expect(fromStatus).toHaveLength(3);
  expect(chargesOfRecord(record)).toEqual(fromStatus);
  const restored = { ...instance, metadata: { ...instance.metadata, uid: 'another' } };
  const ids = (charges: readonly Charge[]) => charges.map(({ row }) => row.x_ChargeId);
  expect(ids(chargesOfInstance(restored))).toEqual(ids(fromStatus));
});

test('a start says who asked for it where that is another than who created the instance', () => {
  const tagsOf = (claim: Partial<Claim>) => rowsOf(ofStatus({ intervals: [interval(0, 1000, claim)] }))[0]?.Tags;
  const created = tagsOf({ createdBy: 'key/ci' });
  expect(created).toEqual({ 'berth/pool': 'default' });
  expect(tagsOf({ createdBy: 'key/ci', startedBy: 'person/ada' })).toEqual({
    ...(created as object),
    'berth/started-by': 'person/ada',
  });
});

test('what was created by a client of the Kubernetes API has no sub account', () => {
  const [row] = rowsOf(ofStatus({ intervals: [interval(0, 1000)] }));
  expect(row).toMatchObject({ SubAccountId: null, SubAccountName: null, SubAccountType: null });
});

test('the record of an earlier release is one charge without a price, for the day of its end', () => {
  const sum = { product: 'L4', gpuCount: 1, gpuSeconds: 60, endedAt: at(5) };
  expect(rowsOf(chargesOfRecord(recordOf(sum)))).toMatchObject([
    {
      BilledCost: '0.50',
      ChargePeriodStart: at(0),
      ChargePeriodEnd: at(DAY),
      ConsumedQuantity: '60.000',
      ListUnitPrice: null,
      PricingQuantity: null,
      PricingUnit: null,
      SkuId: 'L4',
      SkuPriceId: null,
      SkuPriceDetails: null,
    },
  ]);
});

test('a correction is a credit or an adjustment, of an instance, a model or neither', () => {
  const adjustment = { type: 'Credit' as const, reason: 'The node was slow.' };
  const [credit] = chargesOfRecord(recordOf({ adjustment }));
  expect(credit).toMatchObject({ month: '2026-02', currency: 'EUR', cost: -500_000n });
  expect(credit?.row).toMatchObject({
    BilledCost: '-0.50',
    ChargeCategory: 'Credit',
    ChargeClass: 'Correction',
    ChargeDescription: 'Credit for run-7: The node was slow.',
    ChargeFrequency: 'One-Time',
    ChargePeriodStart: at(DAY),
    ChargePeriodEnd: at(2 * DAY),
    ConsumedQuantity: null,
    PricingQuantity: null,
    ResourceId: 'uid-run-7',
    ResourceName: 'run-7',
    SkuId: null,
    x_ChargeId: `adjustment/default/credit-1/${at(DAY)}`,
  });
  // As in a report: the first moment of a month belongs to it.
  for (const [ms, month, from] of [
    [-1, '2026-01', -DAY],
    [0, '2026-02', 0],
    [1, '2026-02', 0],
  ] as const) {
    const [first] = chargesOfRecord(recordOf({ adjustment, endedAt: at(ms) }));
    const row = { ChargePeriodStart: at(from), ChargePeriodEnd: at(from + DAY) };
    expect(first).toMatchObject({ month, row });
  }
  const charge = { ...adjustment, type: 'Charge' as const };
  const model = recordOf({ adjustment: charge, instance: 'model/Qwen/Qwen3-8B', instanceUid: '' });
  expect(rowsOf(chargesOfRecord(model))).toMatchObject([
    {
      BilledCost: '0.50',
      ChargeCategory: 'Adjustment',
      ResourceId: 'model/Qwen/Qwen3-8B',
      ResourceName: 'Qwen/Qwen3-8B',
      ResourceType: 'Model',
      ServiceName: 'Model endpoints',
    },
  ]);
  const neither = recordOf({ adjustment: charge, instanceUid: '' });
  const none = { ResourceId: null, ResourceName: null, ResourceType: null, ServiceName: 'GPU instances' };
  expect(rowsOf(chargesOfRecord(neither))).toMatchObject([none]);
});

const ENTRY: TokenEntry = {
  by: 'person/ann@example.com',
  model: 'Qwen/Qwen3-8B',
  inputPrice: '0.333333',
  cachedInputPrice: '0.05',
  outputPrice: '1.10',
  calls: 3,
  unreported: 0,
  inputTokens: 303,
  cachedInputTokens: 120,
  outputTokens: 39,
  cost: '0.00011',
};

function tokens(entries: readonly TokenEntry[], day = '2026-01-31'): TokenRecord {
  const spec = { day, replica: 'api-1', calls: 3, cost: '0.00011', currency: 'EUR', entries: [...entries] };
  return { metadata: { namespace: 'team-a', name: 'tokens-1' }, spec };
}

test('tokens are three charges, which together cost what their entry says', () => {
  const charges = chargesOfTokens(tokens([ENTRY]));
  const cells = rowsOf(charges).map((row) => [row.SkuMeter, row.ConsumedQuantity, row.PricingQuantity, row.BilledCost]);
  expect(cells).toEqual([
    ['Input tokens', '183', '0.000183', '0.000061'],
    ['Cached input tokens', '120', '0.000120', '0.000006'],
    ['Output tokens', '39', '0.000039', '0.000043'],
  ]);
  expect(formatMoney(charges.reduce((sum, { cost }) => sum + cost, 0n))).toBe(ENTRY.cost);
  expect(charges[0]?.row).toMatchObject({
    BillingAccountId: 'team-a',
    BillingPeriodStart: '2026-01-01T00:00:00.000Z',
    ChargePeriodStart: '2026-01-31T00:00:00.000Z',
    ChargePeriodEnd: '2026-02-01T00:00:00.000Z',
    ConsumedUnit: 'Tokens',
    ListUnitPrice: '0.333333',
    PricingUnit: '1000000 Tokens',
    ResourceId: 'model/Qwen/Qwen3-8B',
    ServiceCategory: 'AI and Machine Learning',
    SubAccountId: 'person/ann@example.com',
    SubAccountName: 'ann@example.com',
    SubAccountType: 'Person',
  });
});

test('entries at two prices are told apart, in whatever order the record has them', () => {
  const dearer = { ...ENTRY, outputPrice: '2.20', cost: '0.000153' };
  const ids = (entries: readonly TokenEntry[]): Set<string> =>
    new Set(chargesOfTokens(tokens(entries)).map(({ row }) => row.x_ChargeId));
  expect(ids([ENTRY, dearer]).size).toBe(6);
  expect(ids([dearer, ENTRY])).toEqual(ids([ENTRY, dearer]));
});

test('calls without tokens are no charge, and a cost that today would be another stands', () => {
  const none = { ...ENTRY, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, cost: '0.00' };
  expect(chargesOfTokens(tokens([none]))).toEqual([]);
  const cheaper = chargesOfTokens(tokens([{ ...ENTRY, cost: '0.00005' }]));
  expect(cheaper.map(({ cost }) => cost)).toEqual([50n, 0n, 0n]);
});

test('a token record is final when its day is over by a day', () => {
  const record = tokens([ENTRY], '2026-01-30');
  expect([-1, 0].map((ms) => isFinal(record, FEBRUARY + ms))).toEqual([false, true]);
});

test('what cannot be read is refused, and not taken for nothing', () => {
  expect(() => chargesOfRecord(recordOf({ cost: 'much' }))).toThrow(RangeError);
  expect(() => chargesOfRecord(recordOf({ endedAt: 'soon' }))).toThrow(RangeError);
  const day = tokens([ENTRY], '2026-13-45');
  expect(isFinal(day, FEBRUARY)).toBe(true);
  expect(() => chargesOfTokens(day)).toThrow(RangeError);
});
