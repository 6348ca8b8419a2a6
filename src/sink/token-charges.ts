import { contentHash } from '../lib/content-hash.ts';
import { monthOf } from '../ledger/month.ts';
import { costOfTokens } from '../ledger/tokens.ts';
import { parseMoney } from '../resources/money.ts';
import type { TokenEntry, TokenRecord } from '../resources/token-record.ts';
import { chargeOf, decimal } from './charge.ts';
import type { Charge } from './columns.ts';

const DAY_MS = 86_400_000;

/** One meter of an entry: what is counted, at which price, and what it cost. */
interface Meter {
  name: string;
  count: number;
  price: string;
  cost: bigint;
}

function least(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}

/** An entry is rounded once, so each meter costs the difference of two sums: together they cost what the entry says. */
function metersOf(entry: TokenEntry, currency: string): Meter[] {
  const { inputTokens: input, cachedInputTokens: cached, outputTokens: output } = entry;
  const { inputPrice, cachedInputPrice, outputPrice } = entry;
  const prices = { input: inputPrice, cachedInput: cachedInputPrice, output: outputPrice, currency };
  const whole = parseMoney(entry.cost);
  const fresh = least(whole, costOfTokens({ input: input - cached, cached: 0, output: 0 }, prices));
  const both = least(whole, costOfTokens({ input, cached, output: 0 }, prices));
  const meters = [
    { name: 'Input tokens', count: input - cached, price: inputPrice, cost: fresh },
    { name: 'Cached input tokens', count: cached, price: cachedInputPrice, cost: both - fresh },
    { name: 'Output tokens', count: output, price: outputPrice, cost: whole - both },
  ];
  return meters.filter(({ count, cost }) => count !== 0 || cost !== 0n);
}

/**
 * Whether nobody writes the record any more: its day is over by a day, which is how long a replica keeps what it could
 * not write. `now`: milliseconds since the epoch.
 */
export function isFinal({ spec }: TokenRecord, now: number): boolean {
  // A day that is none is for chargesOfTokens to refuse.
  return !(now < Date.parse(spec.day) + 2 * DAY_MS);
}

/** Throws RangeError where an amount or the day of the record cannot be read. */
export function chargesOfTokens({ metadata, spec }: TokenRecord): Charge[] {
  const { namespace = '', name } = metadata;
  const { currency } = spec;
  const from = Date.parse(spec.day);
  const month = monthOf(from);
  return spec.entries.flatMap((entry) => {
    const { by, model, inputPrice, cachedInputPrice, outputPrice } = entry;
    const key = contentHash([by, model, inputPrice, cachedInputPrice, outputPrice]);
    return metersOf(entry, currency).map((meter) =>
      chargeOf(
        {
          id: `tokens/${namespace}/${name}/${key}/${meter.name}`,
          namespace,
          month,
          period: { from, to: from + DAY_MS },
          currency,
          cost: meter.cost,
          createdBy: by,
          kind: 'Model',
        },
        {
          ChargeCategory: 'Usage',
          ChargeClass: null,
          ChargeDescription: `${meter.name} of ${model}`,
          ChargeFrequency: 'Usage-Based',
          ConsumedQuantity: String(meter.count),
          ConsumedUnit: 'Tokens',
          ListUnitPrice: meter.price,
          PricingQuantity: decimal(BigInt(meter.count), 6),
          PricingUnit: '1000000 Tokens',
          ResourceId: `model/${model}`,
          ResourceName: model,
          ResourceType: 'Model',
          SkuId: `${model}/${meter.name}`,
          SkuMeter: meter.name,
          SkuPriceDetails: null,
          SkuPriceId: `${model}/${meter.name}/${meter.price} ${currency}`,
          Tags: null,
        },
      ),
    );
  });
}
