import { partsByMonth } from '../ledger/amount.ts';
import { billsOfRecord } from '../ledger/bills.ts';
import { type Billed, startOfDay } from '../ledger/report.ts';
import { silentMs } from '../ledger/silence.ts';
import type { GpuInstance } from '../resources/instances/gpu-instance.ts';
import type { Interval } from '../resources/instances/interval.ts';
import type { UsageRecord } from '../resources/usage-record.ts';
import { type Basis, chargeOf, decimal, orNull, timeText } from './charge.ts';
import type { Charge } from './columns.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000n;
/** Decimals of hours: a millisecond has more than a price could tell apart. */
const HOUR_DIGITS = 12;
const MODEL = 'model/';

/** When the charge ran. A sum that counts for a moment has that moment's day, as in a report. */
function periodOf({ from, to }: Interval, month: Basis['month']): Basis['period'] {
  if (from === to) {
    const day = startOfDay(Date.parse(to));
    return { from: day, to: day + DAY_MS };
  }
  return { from: Math.max(Date.parse(from), month.from), to: Math.min(Date.parse(to), month.to) };
}

/** What was rented, at which price. Without a price it is a sum of an earlier release. */
function skuOf(interval: Interval) {
  const { product, gpuCount, gpuShare, migProfile, isolation, diskGb, pricePerHour, currency } = interval;
  const details = {
    GpuCount: gpuCount,
    ...(gpuShare !== undefined && { x_GpuShare: gpuShare }),
    ...(isolation !== undefined && { x_Isolation: isolation }),
    ...(migProfile !== undefined && { x_MigProfile: migProfile }),
    ...(diskGb !== undefined && { x_DiskGb: diskGb }),
  };
  const isPriced = product !== '' && pricePerHour !== undefined;
  return {
    SkuId: orNull(product),
    SkuMeter: product === '' ? null : 'GPU time',
    SkuPriceId: isPriced ? `${product}/${gpuCount}x${gpuShare ?? '1'}/${pricePerHour} ${currency}` : null,
    SkuPriceDetails: isPriced ? details : null,
    ListUnitPrice: pricePerHour ?? null,
  };
}

/** Who asked for the start is there where that is another than who created the instance. */
function tagsOf({ pool, startedBy }: Interval): Record<string, string> | null {
  const tags = {
    ...(pool !== undefined && { 'berth/pool': pool }),
    ...(startedBy !== undefined && { 'berth/started-by': startedBy }),
  };
  return Object.keys(tags).length === 0 ? null : tags;
}

function hours(ms: number): string {
  return decimal((BigInt(ms) * 10n ** BigInt(HOUR_DIGITS) + HOUR_MS / 2n) / HOUR_MS, HOUR_DIGITS);
}

/**
 * The charges of a start, one for each month that it ran in. A charge is known by tenant, instance and moment: an object
 * that a backup brings back has another uid, and must not be charged again.
 */
function startCharges({ instance, uid, interval }: Billed, namespace: string): Charge[] {
  const { start, product, gpuCount, pricePerHour, currency, createdBy } = interval;
  const from = timeText(Date.parse(interval.from));
  return partsByMonth(interval).map(({ month, cost, gpuMs }) => {
    const id = `start/${namespace}/${instance}/${start}/${from}/${month.name}`;
    const period = periodOf(interval, month);
    const billedMs = period.to - period.from - silentMs(interval.silences, period.from, period.to);
    return chargeOf(
      { id, namespace, month, period, currency, cost, createdBy, kind: 'Instance' },
      {
        ChargeCategory: 'Usage',
        ChargeClass: null,
        ChargeDescription: `${gpuCount} x ${product || 'GPU'}, start ${start} of ${instance}`,
        ChargeFrequency: 'Usage-Based',
        ConsumedQuantity: decimal(gpuMs, 3),
        ConsumedUnit: 'GPU-Seconds',
        PricingQuantity: pricePerHour === undefined ? null : hours(billedMs),
        PricingUnit: pricePerHour === undefined ? null : 'Hours',
        ResourceId: orNull(uid),
        ResourceName: uid === '' ? null : instance,
        ResourceType: uid === '' ? null : 'Instance',
        ...skuOf(interval),
        Tags: tagsOf(interval),
      },
    );
  });
}

/** The charge of a correction. It names a model as model/NAME. */
function correctionCharges({ metadata, spec }: UsageRecord, { instance, uid, interval, adjustment }: Billed): Charge[] {
  const { namespace = '', name } = metadata;
  const { currency } = interval;
  const isModel = instance.startsWith(MODEL);
  const resource = isModel ? instance : uid;
  return partsByMonth(interval).map(({ month, cost }) =>
    chargeOf(
      {
        id: `adjustment/${namespace}/${name}/${timeText(Date.parse(spec.endedAt))}`,
        namespace,
        month,
        period: periodOf(interval, month),
        currency,
        cost: adjustment === 'Credit' ? -cost : cost,
        createdBy: undefined,
        kind: isModel ? 'Model' : 'Instance',
      },
      {
        ChargeCategory: adjustment === 'Credit' ? 'Credit' : 'Adjustment',
        ChargeClass: 'Correction',
        ChargeDescription: `${adjustment} for ${instance}: ${spec.adjustment?.reason}`,
        ChargeFrequency: 'One-Time',
        ConsumedQuantity: null,
        ConsumedUnit: null,
        ListUnitPrice: null,
        PricingQuantity: null,
        PricingUnit: null,
        ResourceId: orNull(resource),
        ResourceName: resource === '' ? null : instance.slice(isModel ? MODEL.length : 0),
        ResourceType: resource === '' ? null : isModel ? 'Model' : 'Instance',
        SkuId: null,
        SkuMeter: null,
        SkuPriceDetails: null,
        SkuPriceId: null,
        Tags: null,
      },
    ),
  );
}

/** Throws RangeError where an amount or a time of the record cannot be read. */
export function chargesOfRecord(record: UsageRecord): Charge[] {
  const { namespace = '' } = record.metadata;
  return billsOfRecord(record).flatMap((billed) =>
    billed.adjustment === undefined ? startCharges(billed, namespace) : correctionCharges(record, billed),
  );
}

/**
 * The charges of ended starts that are in no usage record yet. A sum that a status of an earlier release has is not among
 * them, because it still grows; it comes with the record. Throws RangeError as `chargesOfRecord` does.
 */
export function chargesOfInstance({ metadata, status }: GpuInstance): Charge[] {
  const { namespace = '', name: instance, uid = '' } = metadata;
  return (status?.intervals ?? []).flatMap((interval) =>
    startCharges({ instance, uid, interval, open: false }, namespace),
  );
}
