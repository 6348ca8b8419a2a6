/** A longer wait counts as this one. */
const MAX_MS = 24 * 3_600_000;
const SECONDS = /^\d+(\.\d+)?$/;
// Date.parse takes many other texts for dates, "-5" among them.
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;

/**
 * Milliseconds to wait as a Retry-After header asks (RFC 9110, 10.2.3: seconds or an HTTP date; model servers also send
 * fractions of a second), from 0 to a day. A date in the past is 0. Undefined without a header and for any other text.
 */
export function retryAfterMs(header: string | string[] | undefined, now: number): number | undefined {
  const value = (Array.isArray(header) ? header[0] : header)?.trim() ?? '';
  let ms = Number.NaN;
  if (SECONDS.test(value)) ms = Number(value) * 1000;
  else if (HTTP_DATE.test(value)) ms = Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), MAX_MS);
}
