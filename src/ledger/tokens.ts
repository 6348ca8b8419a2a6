import type { TokenPrices } from '../resources/model-servers/prices.ts';
import { parseMoney } from '../resources/money.ts';
import type { TokenRecord } from '../resources/token-record.ts';
import { readAmount, UnreadableError } from './amount.ts';

const MILLION = 1_000_000n;

/** What calls to models took. */
export interface TokenCounts {
  calls: number;
  /** Cached ones included. */
  input: number;
  cached: number;
  output: number;
}

/** What one key or person spent on one model on one day, as one record has it. */
export interface TokenBill extends TokenCounts {
  /** Such as 2026-11-23, in UTC. */
  day: string;
  /** key/NAME or person/NAME. */
  by: string;
  model: string;
  currency: string;
  /** Millionths of the currency. */
  cost: bigint;
}

export function plusTokens(left: TokenCounts, right: TokenCounts): TokenCounts {
  return {
    calls: left.calls + right.calls,
    input: left.input + right.input,
    cached: left.cached + right.cached,
    output: left.output + right.output,
  };
}

/** What tokens cost, in millionths of a millionth of the currency: no call is too small for it. */
export function exactCostOfTokens({ input, cached, output }: Omit<TokenCounts, 'calls'>, prices: TokenPrices): bigint {
  return (
    BigInt(input - cached) * parseMoney(prices.input) +
    BigInt(cached) * parseMoney(prices.cachedInput) +
    BigInt(output) * parseMoney(prices.output)
  );
}

/** What tokens cost, in millionths of the currency, rounded half up once. `cached` is no more than `input`. */
export function costOfTokens(counts: Omit<TokenCounts, 'calls'>, prices: TokenPrices): bigint {
  return (exactCostOfTokens(counts, prices) + MILLION / 2n) / MILLION;
}

/**
 * The bills of a record. What it says they cost counts, whatever today's code would compute. Throws UnreadableError where
 * an amount or the day is none.
 */
export function tokenBillsOf({ spec }: TokenRecord): TokenBill[] {
  if (Number.isNaN(Date.parse(spec.day))) throw new UnreadableError(`"${spec.day}" is not a day`);
  return spec.entries.map((entry) => ({
    day: spec.day,
    by: entry.by,
    model: entry.model,
    currency: spec.currency,
    calls: entry.calls,
    input: entry.inputTokens,
    cached: entry.cachedInputTokens,
    output: entry.outputTokens,
    cost: readAmount(entry.cost),
  }));
}
