import { trimEnd } from '../lib/trim-end.ts';

const DECIMALS = 6;
const UNIT = 10n ** BigInt(DECIMALS);
const HOUR_MS = 3_600_000n;

/** A price that an operator writes, which `parseMoney` reads. */
export const PRICE = /^[0-9]{1,7}(\.[0-9]{1,6})?$/;

/** Millionths of a currency unit. Throws RangeError unless the text is a decimal amount of at most 30 digits and six decimals. */
export function parseMoney(text: string): bigint {
  const match = /^(\d{1,30})(?:\.(\d{1,6}))?$/.exec(text);
  if (!match) throw new RangeError(`"${text}" is not an amount of money: write for example 2.49`);
  return BigInt(match[1] ?? '0') * UNIT + BigInt((match[2] ?? '').padEnd(DECIMALS, '0'));
}

/** As `parseMoney`, and of a sum below zero, as `formatMoney` writes it. */
export function parseBalance(text: string): bigint {
  return text.startsWith('-') ? -parseMoney(text.slice(1)) : parseMoney(text);
}

/** Millionths as text with two decimals, as prices are written, or as many more as the amount needs. */
export function formatMoney(millionths: bigint): string {
  if (millionths < 0n) return `-${formatMoney(-millionths)}`;
  const fraction = trimEnd((millionths % UNIT).toString().padStart(DECIMALS, '0'), '0').padEnd(2, '0');
  return `${millionths / UNIT}.${fraction}`;
}

export function addMoney(left: string, right: string): string {
  return formatMoney(parseMoney(left) + parseMoney(right));
}

/** A price times a whole number. */
export function multiplyMoney(price: string, count: number): string {
  return formatMoney(parseMoney(price) * BigInt(count));
}

/** Parts and whole of a share such as 1/7; a whole GPU where it is absent or is no share. */
function parseShare(share: string | undefined): { parts: bigint; of: bigint } {
  const match = /^([1-9]\d{0,5})(?:\/([1-9]\d{0,5}))?$/.exec(share ?? '1');
  return { parts: BigInt(match?.[1] ?? '1'), of: BigInt(match?.[2] ?? '1') };
}

/** A share of a GPU as a number: 0.25 for 1/4. */
export function fractionOf(share: string | undefined): number {
  if (share === undefined) return 1;
  const { parts, of } = parseShare(share);
  return Number(parts) / Number(of);
}

/** The part of an amount that falls to a share of a GPU, rounded half up. The amount is not negative. */
export function partOf(amount: bigint, share: string | undefined): bigint {
  const { parts, of } = parseShare(share);
  return (amount * parts + of / 2n) / of;
}

/** The part of a price that falls to a share of a GPU, such as 1/7, rounded half up to the sixth decimal. */
export function shareOfMoney(price: string, share: string): string {
  return share === '1' ? price : formatMoney(partOf(parseMoney(price), share));
}

/** What `ms` milliseconds cost at a price per hour, rounded half up to the sixth decimal. */
export function costOf(pricePerHour: string, ms: number): string {
  return formatMoney(costAt(parseMoney(pricePerHour), ms));
}

/** The same in millionths, of a price in millionths. */
export function costAt(pricePerHour: bigint, ms: number): bigint {
  return (pricePerHour * BigInt(Math.max(0, Math.round(ms))) + HOUR_MS / 2n) / HOUR_MS;
}

/** Negative, zero or positive, for sorting by price. */
export function compareMoney(left: string, right: string): number {
  const difference = parseMoney(left) - parseMoney(right);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}
